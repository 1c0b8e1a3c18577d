/**
 * Tools in Python: FastMCP (`@mcp.tool`, `@tool`, `mcp.tool(…)(function)`, `add_tool`) and the low level of the official
 * SDK (`Tool(name=…, inputSchema=…)`).
 */
import {
  all,
  type Definitions,
  type FoundParameter,
  type FoundTools,
  findTools,
  type Node,
  named,
  type SourceFile,
  type ToolInCode,
  tidy,
} from './syntax.ts';

const MAX_STEPS = 20;

export function pythonTools(files: readonly SourceFile[]): FoundTools {
  return findTools(files, { definedIn, reader, writtenIn, references: ['identifier', 'attribute'] });
}

function* writtenIn({ root }: SourceFile, read: CodeReader): Iterable<ToolInCode> {
  // A bare @tool is also the decorator of other libraries.
  const hasBareTool = /^\s*from\s+(?:fastmcp|mcp)[\w.]*\s+import\s[^#\n]*\btool\b/m.test(root.text());
  const ofFunction = (at: Node, fn: Node | null, options: Node | null, fallback: string): ToolInCode => {
    const given = keywords(options);
    const first = positional(options).find((arg) => read.text(arg) !== null && !isFunctionName(arg, fn));
    return {
      at,
      name: given.get('name') ?? first ?? fn?.field('name')?.text() ?? fallback,
      description: read.text(given.get('description') ?? null) ?? docstring(fn),
      parameters: fn === null ? [] : signature(fn, read),
    };
  };
  for (const definition of all(root, 'decorated_definition')) {
    const fn = definition.field('definition');
    if (!fn?.is('function_definition')) continue;
    for (const decorator of named(definition).filter((child) => child.is('decorator'))) {
      const [expression] = named(decorator);
      const callee = expression?.is('call') ? expression.field('function') : expression;
      const isTool = callee?.is('attribute')
        ? callee.field('attribute')?.text() === 'tool'
        : hasBareTool && callee?.text() === 'tool';
      if (isTool) yield ofFunction(fn, fn, expression!.is('call') ? expression!.field('arguments') : null, '');
    }
  }
  for (const call of all(root, 'call')) {
    const callee = call.field('function');
    const args = call.field('arguments');
    const last = callee?.is('attribute') ? callee.field('attribute')?.text() : callee?.text();
    const given = keywords(args);
    const [target] = positional(args);
    if (
      last === 'Tool' &&
      given.has('name') &&
      ['inputSchema', 'input_schema', 'description'].some((key) => given.has(key))
    ) {
      yield {
        at: call,
        name: given.get('name')!,
        description: read.text(given.get('description') ?? null) ?? '',
        parameters: read.schemaParameters(given.get('inputSchema') ?? given.get('input_schema') ?? null),
      };
    } else if (callee?.is('call') && callee.field('function')?.is('attribute')) {
      // mcp.tool(name="x")(function)
      if (callee.field('function')!.field('attribute')?.text() !== 'tool') continue;
      yield ofFunction(call, read.functionOf(target ?? null), callee.field('arguments'), lastName(target));
    } else if ((last === 'add_tool' || last === 'from_function') && callee?.is('attribute')) {
      const fn = read.functionOf(target ?? null);
      // add_tool(Tool(…)) is found above.
      if (fn !== null) yield ofFunction(call, fn, args, lastName(target));
    } else if (
      last === 'tool' &&
      callee?.is('attribute') &&
      positional(args).length === 1 &&
      !call.parent()?.is('decorator')
    ) {
      // mcp.tool(function)
      const fn = read.functionOf(target!);
      if (fn !== null) yield ofFunction(call, fn, args, '');
    }
  }
}

function isFunctionName(arg: Node, fn: Node | null): boolean {
  return arg.is('identifier') && arg.text() === fn?.field('name')?.text();
}

function lastName(node: Node | undefined): string {
  return node?.text().split('.').at(-1) ?? '';
}

function* definedIn({ root }: SourceFile): Iterable<readonly [string, Node]> {
  for (const type of all(root, 'class_definition')) {
    const name = type.field('name')?.text() ?? '';
    yield [name, type];
    for (const assignment of named(type.field('body')).flatMap((one) =>
      one.is('expression_statement') ? named(one) : [],
    )) {
      const [left, right] = [assignment.field('left'), assignment.field('right')];
      if (assignment.is('assignment') && left?.is('identifier') && right) yield [`${name}.${left.text()}`, right];
    }
  }
  for (const fn of all(root, 'function_definition')) yield [fn.field('name')?.text() ?? '', fn];
  for (const assignment of all(root, 'assignment')) {
    const [left, right] = [assignment.field('left'), assignment.field('right')];
    if (left?.is('identifier') && right) yield [left.text(), right];
  }
}

interface CodeReader {
  text(node: Node | null): string | null;
  functionOf(node: Node | null): Node | null;
  schemaParameters(schema: Node | null): FoundParameter[];
}

function reader(file: SourceFile, definitions: Definitions): CodeReader {
  const follow = (start: Node): Node | null => {
    let node: Node | null = start;
    for (let step = 0; node !== null && step < MAX_STEPS; step += 1) {
      if (node.is('parenthesized_expression')) node = named(node)[0] ?? null;
      else if (node.is('identifier')) node = definitions.find(file, node.text());
      else if (node.is('attribute')) {
        const target: Node | null = node.field('object');
        const attribute: string = node.field('attribute')?.text() ?? '';
        // Enum.X.value
        node = attribute === 'value' ? target : definitions.find(file, `${lastName(target ?? undefined)}.${attribute}`);
      } else return node;
    }
    return null;
  };
  const text = (start: Node | null, depth = 0): string | null => {
    const node = start === null || depth > MAX_STEPS ? null : follow(start);
    if (node === null) return null;
    if (node.is('string')) return stringText(node, (part) => text(part, depth + 1));
    if (node.is('concatenated_string'))
      return named(node)
        .map((one) => text(one, depth + 1) ?? '…')
        .join('');
    if (node.is('binary_operator') && node.field('operator')?.text() === '+') {
      const [left, right] = [text(node.field('left'), depth + 1), text(node.field('right'), depth + 1)];
      return left === null && right === null ? null : `${left ?? '…'}${right ?? '…'}`;
    }
    // dedent("…"), "…".strip()
    if (node.is('call')) {
      const callee = node.field('function');
      const [first] = positional(node.field('arguments'));
      if (/dedent|cleandoc/.test(callee?.text() ?? '')) return text(first ?? null, depth + 1);
      if (callee?.is('attribute') && /^(?:strip|format)$/.test(callee.field('attribute')?.text() ?? ''))
        return text(callee.field('object'), depth + 1);
    }
    return null;
  };
  const functionOf = (node: Node | null): Node | null => {
    if (node === null || !(node.is('identifier') || node.is('attribute'))) return null;
    const found = definitions.find(file, lastName(node));
    return found?.is('function_definition') ? found : null;
  };
  const entries = (node: Node | null): Map<string, Node> => {
    const found = node === null ? null : follow(node);
    const pairs = new Map<string, Node>();
    if (!found?.is('dictionary')) return pairs;
    for (const pair of named(found).filter((one) => one.is('pair'))) {
      const key = text(pair.field('key'));
      if (key !== null) pairs.set(key, pair.field('value')!);
    }
    return pairs;
  };
  const schemaParameters = (schema: Node | null): FoundParameter[] => {
    // Model.model_json_schema()
    const callee = schema?.is('call') ? schema.field('function') : null;
    const model = callee?.is('attribute') ? callee.field('object') : null;
    const type = model === null || model === undefined ? null : definitions.find(file, lastName(model));
    if (type?.is('class_definition')) return modelFields(type, { text, functionOf, schemaParameters });
    const top = entries(schema);
    const requiredNode = top.get('required');
    const required = new Set(named(requiredNode === undefined ? null : follow(requiredNode)).map((one) => text(one)));
    return [...entries(top.get('properties') ?? null)].map(([name, value]) => {
      const own = entries(value);
      return {
        name,
        type: text(own.get('type') ?? null) ?? 'any',
        required: required.has(name),
        description: tidy(text(own.get('description') ?? null) ?? ''),
      };
    });
  };
  return { text, functionOf, schemaParameters };
}

/** The fields of a pydantic model. */
function modelFields(type: Node, read: CodeReader): FoundParameter[] {
  return named(type.field('body')).flatMap((statement) => {
    const [assignment] = statement.is('expression_statement') ? named(statement) : [];
    const annotation = assignment?.is('assignment') ? assignment.field('type') : null;
    const left = assignment?.field('left');
    if (!annotation || !left?.is('identifier')) return [];
    return parameter(left.text(), annotation, assignment!.field('right'), '', read);
  });
}

/** What callers of the function pass: no `self`, and nothing that the framework fills in. */
function signature(fn: Node, read: CodeReader): FoundParameter[] {
  const documented = documentedArguments(docstring(fn));
  return named(fn.field('parameters')).flatMap((node) => {
    const name = node.is('identifier') ? node.text() : (node.field('name')?.text() ?? named(node)[0]?.text() ?? '');
    if (!/^[A-Za-z]\w*$/.test(name) || /^(?:self|cls|ctx)$/.test(name)) return [];
    const annotation = node.field('type');
    const value = node.field('value');
    if (/\bContext\b/.test(annotation?.text() ?? '') || /^(?:Depends|CurrentContext)\b/.test(value?.text() ?? ''))
      return [];
    return parameter(name, annotation, value, documented.get(name) ?? '', read);
  });
}

function parameter(
  name: string,
  annotation: Node | null,
  value: Node | null,
  documented: string,
  read: CodeReader,
): FoundParameter[] {
  const calls = [value, ...(annotation === null ? [] : all(annotation, 'call'))].filter(
    (one): one is Node => one?.is('call') === true && /(?:^|\.)Field$/.test(one.field('function')?.text() ?? ''),
  );
  const given = new Map(calls.flatMap((call) => [...keywords(call.field('arguments'))]));
  const isField = value !== null && calls.includes(value);
  const defaulted = isField
    ? given.has('default') ||
      given.has('default_factory') ||
      positional(value.field('arguments')).some((one) => one.text() !== '...')
    : value !== null;
  return [
    {
      name,
      type: typeOf(annotation?.text() ?? ''),
      required: !defaulted,
      description: tidy(read.text(given.get('description') ?? null) ?? documented),
    },
  ];
}

const TYPES: readonly (readonly [RegExp, string])[] = [
  [/^(?:str|Literal|AnyUrl|HttpUrl|Path|datetime|date)\b/, 'string'],
  [/^int\b/, 'integer'],
  [/^float\b/, 'number'],
  [/^bool\b/, 'boolean'],
  [/^(?:list|set|tuple|Sequence|Iterable)\b/i, 'array'],
  [/^(?:dict|Mapping)\b/i, 'object'],
];

function typeOf(annotation: string): string {
  const bare = annotation
    .replace(/^(?:typing\.)?(?:Annotated|Optional)\[\s*(?:typing\.)?/, '')
    .replace(/^Optional\[/, '');
  return TYPES.find(([form]) => form.test(bare))?.[1] ?? 'any';
}

function docstring(fn: Node | null): string {
  const [first] = named(fn?.field('body') ?? null);
  const [text] = first?.is('expression_statement') ? named(first) : [];
  return text?.is('string') ? (stringText(text, () => null) ?? '') : '';
}

/** The lines below "Args:", by name. */
function documentedArguments(text: string): Map<string, string> {
  const lines = (/(?:Args|Arguments|Parameters):[ \t]*\n([\s\S]*?)(?:\n[ \t]*\n|$)/.exec(text)?.[1] ?? '').split('\n');
  const found = new Map<string, string>();
  let last = '';
  for (const line of lines) {
    const [, name, words] = /^\s*\*{0,2}(\w+)\s*(?:\([^)]*\))?:\s*(.*)$/.exec(line) ?? [];
    if (name !== undefined) {
      last = name;
      found.set(name, words!);
    } else if (last !== '') found.set(last, `${found.get(last)} ${line.trim()}`.trim());
  }
  return found;
}

/** Without prefix and quotes. What stands between braces of an f-string is read if it can be. */
function stringText(node: Node, inner: (part: Node) => string | null): string | null {
  return node
    .children()
    .filter((part) => part.is('string_content') || part.is('interpolation'))
    .map((part) => {
      if (part.is('interpolation')) return inner(named(part)[0]!) ?? '…';
      return part.text().replace(/\\(['"\\]|n|\n)/g, (_, code: string) => ({ n: '\n', '\n': '' })[code] ?? code);
    })
    .join('');
}

function keywords(args: Node | null): Map<string, Node> {
  return new Map(
    named(args)
      .filter((arg) => arg.is('keyword_argument'))
      .map((arg) => [arg.field('name')!.text(), arg.field('value')!]),
  );
}

function positional(args: Node | null): Node[] {
  return named(args).filter(
    (arg) => !arg.is('keyword_argument') && !arg.is('dictionary_splat') && !arg.is('list_splat'),
  );
}
