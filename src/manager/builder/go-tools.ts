/** Tools in Go: mcp-go (`mcp.NewTool(…)`) and the official SDK (`mcp.AddTool(server, &mcp.Tool{…}, handler)`). */
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

export function goTools(files: readonly SourceFile[]): FoundTools {
  return findTools(files, { definedIn, reader, writtenIn, references: ['identifier', 'selector_expression'] });
}

function* writtenIn({ root }: SourceFile, read: CodeReader): Iterable<ToolInCode> {
  const described = (node: Node | null | undefined) => read.text(node ?? null) ?? '';
  for (const at of all(root, 'call_expression')) {
    const method = calleeOf(at);
    const [name, ...rest] = named(at.field('arguments'));
    if (name === undefined) continue;
    if (method === 'NewTool') {
      const option = rest.find((arg) => calleeOf(arg) === 'WithDescription');
      const description = described(option && argumentOf(option, 0));
      yield { at, name, description, parameters: read.options(rest) };
    } else if (method === 'NewToolWithRawSchema' && rest.length > 0)
      yield { at, name, description: described(rest[0]), parameters: [] };
  }
  for (const at of all(root, 'composite_literal')) {
    if (!/(?:^|\.)Tool$/.test(at.field('type')?.text() ?? '')) continue;
    const fields = keyed(at);
    const name = fields.get('Name');
    if (name === undefined) continue;
    yield { at, name, description: described(fields.get('Description')), parameters: read.handlerParameters(at) };
  }
}

function* definedIn({ root }: SourceFile): Iterable<readonly [string, Node]> {
  for (const kind of ['const_spec', 'var_spec'])
    for (const spec of all(root, kind)) {
      const [name] = named(spec).filter((one) => one.is('identifier'));
      const value = named(spec.field('value'))[0];
      if (name && value) yield [name.text(), value];
    }
  for (const declaration of all(root, 'short_var_declaration')) {
    const [name, value] = [named(declaration.field('left'))[0], named(declaration.field('right'))[0]];
    if (name?.is('identifier') && value) yield [name.text(), value];
  }
  for (const kind of ['function_declaration', 'method_declaration', 'type_spec'])
    for (const declaration of all(root, kind)) yield [declaration.field('name')?.text() ?? '', declaration];
}

function calleeOf(node: Node): string {
  const callee = node.is('call_expression') ? node.field('function') : null;
  const generic = callee?.is('type_instantiation_expression') ? (named(callee)[0] ?? null) : callee;
  return (generic?.is('selector_expression') ? generic.field('field')?.text() : generic?.text()) ?? '';
}

function argumentOf(call: Node, index: number): Node | null {
  return named(call.field('arguments'))[index] ?? null;
}

/** The elements `Key: value` of a literal. */
function keyed(literal: Node): Map<string, Node> {
  const pairs = named(literal.field('body')).filter((element) => element.is('keyed_element'));
  return new Map(
    pairs.flatMap((pair) => {
      const [key, value] = named(pair);
      const inner = value?.is('literal_element') ? named(value)[0] : value;
      return key && inner ? [[key.text(), inner] as const] : [];
    }),
  );
}

const TYPES: Readonly<Record<string, string>> = {
  WithString: 'string',
  WithNumber: 'number',
  WithInteger: 'integer',
  WithBoolean: 'boolean',
  WithArray: 'array',
  WithObject: 'object',
  WithAny: 'any',
};

interface CodeReader {
  text(node: Node | null): string | null;
  /** Parameters that options of `NewTool` define. */
  options(args: readonly Node[]): FoundParameter[];
  /** Parameters of the function that handles the tool of this literal. */
  handlerParameters(literal: Node): FoundParameter[];
}

function reader(file: SourceFile, definitions: Definitions): CodeReader {
  const text = (start: Node | null, depth = 0): string | null => {
    if (start === null || depth > MAX_STEPS) return null;
    switch (String(start.kind())) {
      case 'interpreted_string_literal':
        return unescaped(start.text());
      case 'raw_string_literal':
        return start.text().slice(1, -1);
      case 'identifier':
        return text(definitions.find(file, start.text()), depth + 1);
      case 'selector_expression':
        return text(definitions.find(file, start.field('field')?.text() ?? ''), depth + 1);
      case 'parenthesized_expression':
        return text(named(start)[0] ?? null, depth + 1);
      case 'binary_expression': {
        const [left, right] = [text(start.field('left'), depth + 1), text(start.field('right'), depth + 1)];
        return left === null && right === null ? null : `${left ?? '…'}${right ?? '…'}`;
      }
      case 'call_expression': {
        // string(ToolName), and translations: t("KEY", "the text")
        const args = named(start.field('arguments'));
        return args.length === 0 ? null : text(args.at(-1)!, depth + 1);
      }
      default:
        return null;
    }
  };
  const options = (args: readonly Node[]): FoundParameter[] =>
    args.flatMap((arg) => {
      const type = TYPES[calleeOf(arg)];
      const [name, ...rest] = type === undefined ? [] : named(arg.field('arguments'));
      const spelled = text(name ?? null);
      if (type === undefined || spelled === null)
        return /^(?:\w+\.)?WithInputSchema\[/.test(arg.text()) ? generic(arg) : [];
      const described = rest.find((one) => calleeOf(one) === 'Description');
      return {
        name: spelled,
        type,
        required: rest.some((one) => calleeOf(one) === 'Required'),
        description: tidy(text(described ? argumentOf(described, 0) : null) ?? ''),
      };
    });
  /** mcp.WithInputSchema[Input]() */
  const generic = (call: Node): FoundParameter[] => {
    const type = /\[\s*\*?([\w.]+)\s*\]/.exec(call.text())?.[1];
    return type === undefined ? [] : structFields(type.split('.').at(-1)!);
  };
  const structFields = (name: string): FoundParameter[] => {
    const spec = definitions.find(file, name);
    const struct = spec?.is('type_spec') ? spec.field('type') : null;
    return structParameters(struct);
  };
  const handlerParameters = (literal: Node): FoundParameter[] => {
    // The literal, or its address, or a variable that holds it.
    let argument = literal.parent()?.is('unary_expression') ? literal.parent()! : literal;
    let list = argument.parent();
    if (!list?.is('argument_list')) {
      const name = named(
        literal
          .ancestors()
          .find((one) => one.is('short_var_declaration'))
          ?.field('left') ?? null,
      )[0]?.text();
      const use = all(file.root, 'call_expression').find(
        (call) => calleeOf(call) === 'AddTool' && named(call.field('arguments')).some((arg) => arg.text() === name),
      );
      list = use?.field('arguments') ?? null;
      argument = named(list).find((arg) => arg.text() === name) ?? argument;
    }
    const handler = named(list).at(-1);
    if (list === null || handler === undefined || handler.id() === argument.id()) return [];
    const name = handler.is('selector_expression') ? handler.field('field')?.text() : handler.text();
    const fn = handler.is('func_literal') ? handler : definitions.find(file, name ?? '');
    const last = named(fn?.field('parameters') ?? null).at(-1);
    const type = last?.field('type');
    if (type?.is('struct_type')) return structParameters(type);
    const named_ = type?.text().replace(/^\*/, '').split('.').at(-1);
    return named_ === undefined ? [] : structFields(named_);
  };
  return { text, options, handlerParameters };
}

function structParameters(struct: Node | null | undefined): FoundParameter[] {
  if (!struct?.is('struct_type')) return [];
  return all(struct, 'field_declaration')
    .filter((field) => field.parent()?.parent()?.id() === struct.id())
    .flatMap((field) => {
      const tag = field.field('tag')?.text().slice(1, -1) ?? '';
      const [json = '', ...flags] = (/json:"([^"]*)"/.exec(tag)?.[1] ?? '').split(',');
      const name = json || (field.field('name')?.text() ?? '');
      if (name === '' || name === '-') return [];
      const type = field.field('type')?.text() ?? '';
      const schema = /jsonschema(?:_description)?:"((?:[^"\\]|\\.)*)"/.exec(tag)?.[1] ?? '';
      const description =
        /(?:^|,)description=([^,]*)/.exec(schema)?.[1] ?? (/^(?:required|enum=|\w+=)/.test(schema) ? '' : schema);
      const isOptional = flags.some((flag) => flag.startsWith('omit')) || type.startsWith('*');
      return { name, type: goType(type), required: !isOptional || /(?:^|,)required(?:,|$)/.test(schema), description };
    });
}

function goType(type: string): string {
  const bare = type.replace(/^\*/, '');
  if (bare === 'string') return 'string';
  if (bare === 'bool') return 'boolean';
  if (/^u?int\d*$/.test(bare)) return 'integer';
  if (/^float/.test(bare)) return 'number';
  if (bare.startsWith('[]')) return 'array';
  return bare.startsWith('map[') || /^[A-Z]/.test(bare) ? 'object' : 'any';
}

function unescaped(literal: string): string {
  try {
    return JSON.parse(literal) as string;
  } catch {
    // Go knows escapes that JSON does not.
    return literal.slice(1, -1);
  }
}
