/** Reads the tools that a TypeScript or JavaScript module exports from its syntax tree. Nothing is run. */
import { parseSync } from 'rolldown/utils';
import { isObject } from '../base/objects.ts';

/** A tool as its source shows it. */
export interface WrittenTool {
  readonly name: string;
  readonly description: string;
  readonly line: number;
}

export interface CodeProblem {
  readonly line: number;
  readonly message: string;
}

export interface CheckedCode {
  readonly tools: readonly WrittenTool[];
  readonly problems: readonly CodeProblem[];
  /** Whether it cannot be parsed. */
  readonly isBroken: boolean;
}

/** A node of the syntax tree. Only members that are read below are of interest. */
interface ModuleNode {
  readonly type: string;
  readonly start: number;
  readonly [member: string]: unknown;
}

interface ExportedValue {
  readonly name: string;
  readonly value: ModuleNode;
}

const NAME = /^[A-Za-z0-9_.-]{1,128}$/;
/** Nodes that only add a type to the expression inside. */
const WRAPPERS = ['TSAsExpression', 'TSSatisfiesExpression', 'TSNonNullExpression', 'ParenthesizedExpression'];
/** How often a name is followed to its value. */
const MOST_STEPS = 10;

export function readTypeScript(filename: string, code: string): CheckedCode {
  const { program, errors } = parseSync(filename, code, { sourceType: 'module' });
  const lineAt = (offset: number) => code.slice(0, offset).split('\n').length;
  if (errors.length > 0) {
    const problems = errors.map(({ message, labels }) => ({
      line: lineAt(labels[0]?.start ?? 0),
      message: `SyntaxError: ${message}`,
    }));
    return { tools: [], problems, isBroken: true };
  }
  const body = program.body as unknown as readonly ModuleNode[];
  const constants = constantsIn(body);
  const tools: WrittenTool[] = [];
  const problems: CodeProblem[] = [];
  for (const { name: exported, value } of exportsOf(body)) {
    const object = toolObject(value, constants);
    if (object === null) continue;
    const members = membersOf(object);
    const own = textOf(members.get('name') ?? members.get('id'), constants);
    const name = own || (exported === 'default' ? stemOf(filename) : exported);
    const line = lineAt(object.start);
    const refuse = (message: string) => problems.push({ line, message: `"${name}" ${message}` });
    const description = textOf(members.get('description'), constants);
    // With a spread, or a value that is computed, nobody knows what is missing.
    const isOpen = hasSpread(object);
    if (!NAME.test(name)) refuse('is not a valid name: use at most 128 letters, digits, "_", "-" and ".".');
    if (description?.trim() === '' || (!members.has('description') && !isOpen))
      refuse('has no description. Say in `description` what the tool does, for the model that uses it.');
    const run = members.get('execute') ?? members.get('handler');
    const hasSchema = ['inputSchema', 'parameters'].some((key) => members.has(key));
    if (takesInput(run, constants) && !hasSchema && !isOpen)
      refuse(
        'takes arguments but has no `inputSchema` that describes them. Write, for example, inputSchema: z.object({ … })',
      );
    if (tools.some((tool) => tool.name === name)) refuse('is the name of two tools. Rename one of them.');
    tools.push({ name, description: description ?? '', line });
  }
  return { tools, problems, isBroken: false };
}

/** The values of `const` and functions at the top level of the module, by name. */
function constantsIn(body: readonly ModuleNode[]): ReadonlyMap<string, ModuleNode> {
  const constants = new Map<string, ModuleNode>();
  for (const statement of body) {
    const node = isNode(statement.declaration) ? statement.declaration : statement;
    if (node.type === 'FunctionDeclaration' && isNode(node.id)) constants.set(String(node.id.name), node);
    if (node.type !== 'VariableDeclaration') continue;
    for (const { id, init } of node.declarations as readonly ModuleNode[])
      if (isNode(id) && id.type === 'Identifier' && isNode(init)) constants.set(String(id.name), init);
  }
  return constants;
}

function exportsOf(body: readonly ModuleNode[]): ExportedValue[] {
  return body.flatMap((node): ExportedValue[] => {
    if (node.type === 'ExportDefaultDeclaration' && isNode(node.declaration))
      return [{ name: 'default', value: node.declaration }];
    if (node.type !== 'ExportNamedDeclaration' || node.source != null) return [];
    if (isNode(node.declaration)) {
      if (node.declaration.type !== 'VariableDeclaration') return [];
      return (node.declaration.declarations as readonly ModuleNode[]).flatMap(({ id, init }) =>
        isNode(id) && id.type === 'Identifier' && isNode(init) ? [{ name: String(id.name), value: init }] : [],
      );
    }
    return (node.specifiers as readonly ModuleNode[]).flatMap(({ local, exported }) =>
      isNode(local) && isNode(exported) ? [{ name: String(exported.name ?? exported.value), value: local }] : [],
    );
  });
}

/** The object that describes a tool: written as it is, or passed to a function such as `defineTool`. Null for anything else. */
function toolObject(given: ModuleNode, constants: ReadonlyMap<string, ModuleNode>): ModuleNode | null {
  let node = resolved(given, constants);
  if (node.type === 'CallExpression') {
    const [first] = node.arguments as readonly ModuleNode[];
    if (first === undefined) return null;
    node = resolved(first, constants);
  }
  if (node.type !== 'ObjectExpression') return null;
  const members = membersOf(node);
  const isTool =
    (members.has('execute') || members.has('handler')) &&
    (hasSpread(node) || ['description', 'inputSchema', 'parameters', 'name'].some((key) => members.has(key)));
  return isTool ? node : null;
}

function resolved(given: ModuleNode, constants: ReadonlyMap<string, ModuleNode>): ModuleNode {
  let node = given;
  for (let step = 0; step < MOST_STEPS; step++) {
    if (WRAPPERS.includes(node.type) && isNode(node.expression)) node = node.expression;
    else if (node.type === 'Identifier' && constants.has(String(node.name))) node = constants.get(String(node.name))!;
    else break;
  }
  return node;
}

function membersOf(object: ModuleNode): ReadonlyMap<string, ModuleNode> {
  const members = new Map<string, ModuleNode>();
  for (const property of object.properties as readonly ModuleNode[]) {
    if (property.type !== 'Property' || property.computed === true) continue;
    const { key, value } = property;
    if (isNode(key) && isNode(value)) members.set(String(key.name ?? key.value), value);
  }
  return members;
}

function hasSpread(object: ModuleNode): boolean {
  return (object.properties as readonly ModuleNode[]).some(({ type }) => type === 'SpreadElement');
}

/** The text of an expression; undefined if it is absent or known only when it runs. */
function textOf(given: ModuleNode | undefined, constants: ReadonlyMap<string, ModuleNode>): string | undefined {
  if (given === undefined) return undefined;
  const node = resolved(given, constants);
  if (node.type === 'Literal') return typeof node.value === 'string' ? node.value : undefined;
  if (node.type === 'TemplateLiteral') {
    const quasis = node.quasis as readonly { readonly value: { readonly cooked: string | null } }[];
    return quasis.length === 1 ? (quasis[0]!.value.cooked ?? undefined) : undefined;
  }
  if (node.type !== 'BinaryExpression' || node.operator !== '+') return undefined;
  const [left, right] = [node.left, node.right].map((side) => textOf(side as ModuleNode, constants));
  return left === undefined || right === undefined ? undefined : left + right;
}

function takesInput(given: ModuleNode | undefined, constants: ReadonlyMap<string, ModuleNode>): boolean {
  if (given === undefined) return false;
  const { params } = resolved(given, constants);
  const [first] = Array.isArray(params) ? (params as readonly ModuleNode[]) : [];
  // `_` and `{}` say that the arguments are not used.
  if (first === undefined) return false;
  if (first.type === 'Identifier') return !String(first.name).startsWith('_');
  return first.type !== 'ObjectPattern' || (first.properties as readonly unknown[]).length > 0;
}

function stemOf(filename: string): string {
  return filename.replace(/\.[^.]+$/, '');
}

function isNode(value: unknown): value is ModuleNode {
  return isObject(value) && typeof value.type === 'string';
}
