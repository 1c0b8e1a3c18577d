// `node scripts/api-schemas.mjs`: writes src/dashboard/api-schemas.ts, the JSON Schemas of the types in api-types.ts. So the
// OpenAPI document says what the types say. A test holds the file against them.
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseSync } from 'rolldown/utils';

const folder = join(dirname(dirname(fileURLToPath(import.meta.url))), 'src/dashboard');

/** The schemas of all types that the file exports, by name. */
export function schemasOf(text) {
  const { program, comments, errors } = parseSync('api-types.ts', text);
  if (errors.length > 0) throw new Error(errors[0].message);
  const describe = (node) => {
    const before = comments.filter(({ type, end }) => type === 'Block' && end <= node.start).at(-1);
    if (
      before === undefined ||
      !before.value.startsWith('*') ||
      !/^\s*(export\s+)?$/.test(text.slice(before.end, node.start))
    )
      return {};
    const words = before.value
      .slice(1)
      .split('\n')
      .map((line) => line.replace(/^\s*\*?\s?/, '').trim())
      .filter((line) => line !== '')
      .join(' ');
    return { description: words };
  };
  const schemas = {};
  for (const statement of program.body) {
    const node = statement.declaration ?? statement;
    if (node.type === 'TSInterfaceDeclaration')
      schemas[node.id.name] = { ...describe(statement), ...ofInterface(node, describe) };
    else if (node.type === 'TSTypeAliasDeclaration')
      schemas[node.id.name] = { ...describe(statement), ...ofType(node.typeAnnotation, describe) };
  }
  return schemas;
}

function ofInterface(node, describe) {
  const own = ofMembers(node.body.body, describe);
  const parents = (node.extends ?? []).map(({ expression }) => ({ $ref: ref(expression.name) }));
  return parents.length === 0 ? own : { allOf: [...parents, own] };
}

function ofMembers(members, describe) {
  const properties = {};
  const required = [];
  let more = {};
  for (const member of members) {
    if (member.type === 'TSIndexSignature')
      more = { additionalProperties: ofType(member.typeAnnotation.typeAnnotation, describe) };
    if (member.type !== 'TSPropertySignature') continue;
    const name = member.key.name ?? member.key.value;
    const schema = ofType(member.typeAnnotation.typeAnnotation, describe);
    const about = describe(member);
    properties[name] =
      '$ref' in schema && 'description' in about ? { allOf: [schema], ...about } : { ...schema, ...about };
    if (!member.optional) required.push(name);
  }
  return { type: 'object', properties, ...(required.length > 0 && { required }), ...more };
}

const ref = (name) => `#/components/schemas/${name}`;
const KEYWORDS = {
  TSStringKeyword: { type: 'string' },
  TSNumberKeyword: { type: 'number' },
  TSBooleanKeyword: { type: 'boolean' },
  TSNullKeyword: { type: 'null' },
  TSUnknownKeyword: {},
  TSNeverKeyword: { not: {} },
};

function ofType(node, describe) {
  if (node.type in KEYWORDS) return KEYWORDS[node.type];
  switch (node.type) {
    case 'TSTypeLiteral':
      return ofMembers(node.members, describe);
    case 'TSLiteralType':
      return { const: node.literal.value };
    case 'TSArrayType':
      return { type: 'array', items: ofType(node.elementType, describe) };
    case 'TSTypeOperator':
    case 'TSParenthesizedType':
      return ofType(node.typeAnnotation, describe);
    case 'TSUnionType': {
      const parts = node.types.map((one) => ofType(one, describe));
      const words = parts.filter((one) => typeof one.const === 'string');
      if (words.length < 2) return { anyOf: parts };
      const choice = { type: 'string', enum: words.map((one) => one.const) };
      const others = parts.filter((one) => typeof one.const !== 'string');
      return others.length === 0 ? choice : { anyOf: [choice, ...others] };
    }
    case 'TSTypeReference':
      return ofReference(node, describe);
    default:
      throw new Error(`api-types.ts has a type that the schemas cannot have: ${node.type}`);
  }
}

function ofReference({ typeName, typeArguments }, describe) {
  const given = typeArguments?.params ?? [];
  if (typeName.name === 'Readonly') return ofType(given[0], describe);
  if (typeName.name === 'Record') return { type: 'object', additionalProperties: ofType(given[1], describe) };
  if (typeName.name === 'Exclude') return { type: 'string' };
  return { $ref: ref(typeName.name) };
}

export function schemasText(text) {
  return `/** Made by scripts/api-schemas.mjs from api-types.ts. */\nexport const API_SCHEMAS: Readonly<Record<string, object>> = JSON.parse(\n  ${JSON.stringify(
    JSON.stringify(schemasOf(text)),
  )
    .replace(/^"|"$/g, "'")
    .replaceAll('\\"', '"')
    .replaceAll(/(?<!^)'(?!$)/g, "\\'")},\n);\n`;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href)
  writeFileSync(join(folder, 'api-schemas.ts'), schemasText(readFileSync(join(folder, 'api-types.ts'), 'utf8')));
