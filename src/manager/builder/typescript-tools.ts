/**
 * Tools in TypeScript and JavaScript: both versions of the official SDK (`registerTool`, `tool`, `registerToolTask`, lists
 * for `tools/list`), `addTool` of FastMCP, and classes of mcp-framework.
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

/** How many names are followed for one value. */
const MAX_STEPS = 40;

export function typescriptTools(files: readonly SourceFile[]): FoundTools {
  return findTools(files, { definedIn, reader, writtenIn, references: ['identifier', 'member_expression'] });
}

function* writtenIn({ root }: SourceFile, read: CodeReader): Iterable<ToolInCode> {
  const seen = new Set<number>();
  type Maybe = Node | null | undefined;
  const written = (at: Node, name: Node, description: Maybe, schema: Maybe): ToolInCode => ({
    at,
    name,
    description: read.text(description ?? null) ?? '',
    parameters: read.parameters(schema ?? null),
  });
  for (const call of all(root, 'call_expression')) {
    const callee = call.field('function');
    const args = named(call.field('arguments'));
    const method = callee?.is('member_expression') ? callee.field('property')?.text() : undefined;
    if ((method === 'registerTool' || method === 'registerToolTask') && args.length >= 2) {
      const config = read.object(args[1]!);
      yield written(call, args[0]!, config.get('description') ?? config.get('title'), config.get('inputSchema'));
    } else if (method === 'tool' && args.length >= 2 && read.text(args[0]!) !== null) {
      const description = args.slice(1).find((arg) => read.text(arg) !== null);
      const schema = args.slice(1, -1).find((arg) => read.isObject(arg) || read.isSchema(arg));
      yield written(call, args[0]!, description, schema);
    } else if (method === 'addTool' && args.length >= 1) {
      const config = read.object(args[0]!);
      const own = read.follow(args[0]!);
      if (own !== null) seen.add(own.id());
      const name = config.get('name');
      const schema = config.get('parameters') ?? config.get('inputSchema');
      if (name !== undefined) yield written(call, name, config.get('description'), schema);
    }
  }
  for (const object of all(root, 'object')) {
    if (seen.has(object.id())) continue;
    const config = read.object(object);
    const name = config.get('name');
    const schema = config.get('inputSchema') ?? config.get('input_schema');
    if (schema !== undefined && name !== undefined) yield written(object, name, config.get('description'), schema);
  }
  for (const type of all(root, 'class_declaration')) {
    if (!/\bextends\s+MCPTool\b/.test(type.text().slice(0, 500))) continue;
    const fields = new Map(
      named(type.field('body'))
        .filter((member) => member.is('public_field_definition') || member.is('field_definition'))
        .map((member) => [
          member.field('name')?.text() ?? member.field('property')?.text() ?? '',
          member.field('value'),
        ]),
    );
    const name = fields.get('name');
    if (name) yield written(type, name, fields.get('description'), fields.get('schema'));
  }
}

function* definedIn({ root }: SourceFile): Iterable<readonly [string, Node]> {
  for (const declarator of all(root, 'variable_declarator')) {
    const [name, value] = [declarator.field('name'), declarator.field('value')];
    if (name?.is('identifier') && value) yield [name.text(), value];
  }
  for (const declaration of all(root, 'enum_declaration'))
    for (const member of named(declaration.field('body'))) {
      const [name, value] = [member.field('name') ?? named(member)[0], member.field('value') ?? named(member)[1]];
      if (name && value) yield [`${declaration.field('name')?.text()}.${name.text()}`, value];
    }
  // Enums in compiled JavaScript: Names["Echo"] = "echo".
  for (const assignment of all(root, 'assignment_expression')) {
    const left = assignment.field('left');
    const index = left?.is('subscript_expression') ? left.field('index')?.text() : undefined;
    const value = assignment.field('right');
    if (index !== undefined && value?.is('string'))
      yield [`${left!.field('object')!.text()}.${unquoted(index)}`, value];
  }
}

interface CodeReader {
  /** What a name stands for, without casts and parentheses. */
  follow(node: Node): Node | null;
  text(node: Node | null): string | null;
  /** The properties of an object; empty for anything else. */
  object(node: Node): Map<string, Node>;
  isObject(node: Node): boolean;
  /** Whether it is a schema of zod. */
  isSchema(node: Node): boolean;
  parameters(schema: Node | null): FoundParameter[];
}

function reader(file: SourceFile, definitions: Definitions): CodeReader {
  const follow = (start: Node): Node | null => {
    let node: Node | null = start;
    for (let step = 0; node !== null && step < MAX_STEPS; step += 1) {
      const kind = String(node.kind());
      if (/^(?:as|satisfies|parenthesized|non_null|await)_expression$/.test(kind)) node = named(node)[0] ?? null;
      else if (kind === 'identifier' || kind === 'shorthand_property_identifier')
        node = definitions.find(file, node.text());
      else if (kind === 'member_expression') {
        const left: Node | null = node.field('object');
        const property: Node | null = node.field('property');
        const direct = definitions.find(file, `${left?.text()}.${property?.text()}`);
        if (direct !== null) node = direct;
        else if (property?.text() === 'shape' || property?.text() === 'value') node = left;
        else {
          const target: Node | null = left === null ? null : follow(left);
          if (target?.is('object')) node = object(target).get(property?.text() ?? '') ?? null;
          // A module: schemas.Issue
          else node = left?.is('identifier') && target === null ? definitions.find(file, property?.text() ?? '') : null;
        }
      } else return node;
    }
    return null;
  };
  const text = (start: Node | null, depth = 0): string | null => {
    const node = start === null || depth > MAX_STEPS ? null : follow(start);
    if (node === null) return null;
    switch (String(node.kind())) {
      case 'string':
        return unescaped(node.text().slice(1, -1));
      case 'template_string': {
        const parts = named(node).map((part) => {
          if (part.is('template_substitution')) return text(named(part)[0] ?? null, depth + 1);
          return unescaped(part.text());
        });
        return parts.map((part) => part ?? '…').join('');
      }
      case 'binary_expression': {
        if (!node.text().includes('+')) return null;
        const [left, right] = [text(node.field('left'), depth + 1), text(node.field('right'), depth + 1)];
        return left === null && right === null ? null : `${left ?? '…'}${right ?? '…'}`;
      }
      case 'call_expression': {
        // ['a', 'b'].join('\n'), `…`.trim(), dedent`…`
        const callee = node.field('function');
        const args = node.field('arguments');
        if (args?.is('template_string')) return text(args, depth + 1);
        const target = callee?.is('member_expression') ? callee.field('object') : null;
        const method = callee?.is('member_expression') ? callee.field('property')?.text() : '';
        if (target?.is('array') && method === 'join')
          return named(target)
            .map((one) => text(one, depth + 1) ?? '…')
            .join(text(named(args)[0] ?? null, depth + 1) ?? ',');
        return method === 'trim' ? text(target, depth + 1) : null;
      }
      default:
        return null;
    }
  };
  const object = (start: Node, depth = 0): Map<string, Node> => {
    const node = depth > 5 ? null : follow(start);
    const properties = new Map<string, Node>();
    if (!node?.is('object')) return properties;
    for (const property of named(node)) {
      if (property.is('pair')) properties.set(unquoted(property.field('key')!.text()), property.field('value')!);
      else if (property.is('shorthand_property_identifier')) properties.set(property.text(), property);
      else if (property.is('spread_element'))
        for (const [key, value] of object(named(property)[0]!, depth + 1)) properties.set(key, value);
    }
    return properties;
  };
  /** The calls of a chain from its start: z.string().optional() gives [string, optional]. */
  const chain = (start: Node): { calls: { method: string; args: Node[] }[]; base: Node | null } => {
    const calls: { method: string; args: Node[] }[] = [];
    let node: Node | null = follow(start);
    while (node?.is('call_expression')) {
      const callee: Node | null = node.field('function');
      const isMember = callee?.is('member_expression') === true;
      calls.unshift({
        method: (isMember ? callee.field('property')?.text() : callee?.text()) ?? '',
        args: named(node.field('arguments')),
      });
      const target: Node | null = isMember ? callee.field('object') : null;
      node = target?.is('identifier') ? (follow(target) ?? target) : target;
    }
    return { calls, base: node };
  };
  const isSchema = (node: Node) => {
    const found = follow(node);
    return found?.is('call_expression') === true && /^z(?:od)?\d?\b|\bz\d?\.|zod/i.test(found.text().slice(0, 80));
  };
  const fieldsOf = (schema: Node, depth: number): Map<string, Node> => {
    if (depth > 6) return new Map();
    const plain = object(schema);
    if (plain.size > 0) return plain;
    const { calls, base } = chain(schema);
    const fields = base === null ? new Map<string, Node>() : object(base);
    for (const { method, args } of calls) {
      if (/^(?:object|strictObject|looseObject|extend|safeExtend)$/.test(method) && args[0])
        for (const [key, value] of fieldsOf(args[0], depth + 1)) fields.set(key, value);
      // zodToJsonSchema(X), z.toJSONSchema(X), toJsonSchemaCompat(X)
      else if (/json_?schema/i.test(method) && args[0])
        for (const [key, value] of fieldsOf(args[0], depth + 1)) fields.set(key, value);
    }
    return fields;
  };
  const zodParameter = (name: string, value: Node): FoundParameter => {
    const { calls } = chain(value);
    const methods = calls.map(({ method }) => method);
    const described = calls.findLast(({ method }) => method === 'describe')?.args[0] ?? null;
    return {
      name,
      type: typeOf(methods),
      required: !methods.some((method) => /^(?:optional|nullish|default|prefault|catch)$/.test(method)),
      description: tidy(text(described) ?? ''),
    };
  };
  const jsonParameters = (schema: Map<string, Node>): FoundParameter[] => {
    const properties = schema.get('properties');
    const requiredNode = schema.get('required');
    const list = requiredNode === undefined ? null : follow(requiredNode);
    const required = new Set(named(list).map((one) => text(one)));
    if (properties === undefined) return [];
    return [...object(properties)].map(([name, value]) => {
      const own = object(value);
      const type = text(own.get('type') ?? null);
      return {
        name,
        type: type ?? 'any',
        required: required.has(name),
        description: tidy(text(own.get('description') ?? null) ?? ''),
      };
    });
  };
  const parameters = (schema: Node | null): FoundParameter[] => {
    if (schema === null) return [];
    const plain = object(schema);
    if (plain.has('type') && text(plain.get('type')!) === 'object') return jsonParameters(plain);
    return [...fieldsOf(schema, 0)].map(([name, value]) => zodParameter(name, value));
  };
  return { follow, text, object, isObject: (node) => follow(node)?.is('object') === true, isSchema, parameters };
}

const TYPES: Readonly<Record<string, string>> = {
  string: 'string',
  number: 'number',
  int: 'integer',
  boolean: 'boolean',
  array: 'array',
  tuple: 'array',
  enum: 'string',
  nativeEnum: 'string',
  literal: 'string',
  object: 'object',
  strictObject: 'object',
  looseObject: 'object',
  record: 'object',
  url: 'string',
  email: 'string',
  uuid: 'string',
  iso: 'string',
};

function typeOf(methods: readonly string[]): string {
  const found = methods.find((method) => Object.hasOwn(TYPES, method));
  if (found === undefined) return 'any';
  return found === 'number' && methods.includes('int') ? 'integer' : TYPES[found]!;
}

function unquoted(text: string): string {
  return /^['"`]/.test(text) ? text.slice(1, -1) : text;
}

const ESCAPES: Readonly<Record<string, string>> = { n: '\n', t: '\t', r: '\r', '\n': '' };

function unescaped(text: string): string {
  return text.replace(/\\(u\{[0-9a-fA-F]{1,6}\}|u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|[\s\S])/g, (_, code: string) => {
    if (code.length === 1) return ESCAPES[code] ?? code;
    const point = Number.parseInt(code.replace(/[^0-9a-fA-F]/g, ''), 16);
    return point <= 0x10ffff ? String.fromCodePoint(point) : '�';
  });
}
