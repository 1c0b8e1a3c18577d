// Reads what index.ts exports, and every type that the exports mention, from the compiler's declaration files. In these files
// every type is written out, so a parser is enough to follow them.
import { readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { parseAst } from 'rolldown/parseAst';

/**
 * @typedef {object} Declaration
 * @property {string} name Its name in the result: its own, unless two declarations share it.
 * @property {boolean} isPublic
 * @property {string} comment Its TSDoc without the stars, or empty.
 * @property {string} text Its code without `export` and `declare`, with the names of the result.
 */

/**
 * The declarations that `entry` exports or mentions, sorted by name (an overloaded function has several), and the names that
 * they import from packages.
 */
export function readDeclarations(folder, entry = 'index.d.ts') {
  const modules = new Map();
  const moduleOf = (path) => {
    if (modules.has(path)) return modules.get(path);
    const module = readModule(readFileSync(join(folder, path), 'utf8'), path);
    modules.set(path, module);
    for (const all of module.all)
      for (const name of moduleOf(all).exported.keys()) module.exported.set(name, { path: all, name });
    return module;
  };

  /** Where a name that a module uses is declared: `{ path, name }`, or `{ from, name }` in a package. */
  const resolve = (path, name) => {
    const module = moduleOf(path);
    const known = module.own.get(name);
    if (known !== undefined) return { path, name };
    const other = module.imported.get(name);
    if (other === undefined) return null;
    return other.path === undefined ? other : resolveExport(other.path, other.name);
  };
  const resolveExport = (path, name) => {
    const { exported } = moduleOf(path);
    const target = exported.get(name);
    if (target === undefined) throw new Error(`${path} exports no ${name}.`);
    return target.path === undefined ? resolve(path, target.name) : resolveExport(target.path, target.name);
  };

  const found = new Map();
  const packages = new Map();
  const visit = (target, publicName) => {
    const key = `${target.path} ${target.name}`;
    if (found.has(key)) {
      if (publicName !== undefined) Object.assign(found.get(key), { publicName });
      return;
    }
    const parts = moduleOf(target.path).own.get(target.name);
    found.set(key, { key, name: target.name, parts, publicName });
    for (const part of parts) {
      part.links = [];
      for (const reference of part.references) {
        if (reference.imports !== undefined)
          throw new Error(`import("${reference.imports}") in the public type ${target.name}: name the type.`);
        const to = resolve(target.path, reference.name);
        if (to === null) continue;
        if (to.from === undefined) visit(to);
        else packages.set(to.from, new Set([...(packages.get(to.from) ?? []), to.name]));
        part.links.push({ ...reference, to });
      }
    }
  };
  const exports = [...moduleOf(entry).exported.keys()];
  for (const name of exports) visit(resolveExport(entry, name), name);

  const names = nameAll([...found.values()]);
  const all = [...found.values()].flatMap(({ key, parts, publicName }) =>
    parts.map((part) => ({
      name: names.get(key),
      isPublic: publicName !== undefined,
      comment: part.comment,
      text: rename(part, names.get(key), names),
    })),
  );
  all.sort((a, b) => Number(a.name > b.name) - Number(a.name < b.name));
  return { declarations: all, packages };
}

/** Public names stay. Among other declarations with the same name, all but the first get a number. */
function nameAll(items) {
  const taken = new Set(items.flatMap(({ publicName }) => publicName ?? []));
  const names = new Map();
  const rest = items.filter(({ publicName }) => publicName === undefined);
  for (const { key, publicName } of items) if (publicName !== undefined) names.set(key, publicName);
  for (const { key, name: own } of rest.sort((a, b) => (a.key < b.key ? -1 : 1))) {
    let name = own;
    for (let n = 2; taken.has(name); n += 1) name = `${own}${n}`;
    taken.add(name);
    names.set(key, name);
  }
  return names;
}

/** The code of a declaration, with every reference renamed to the name in the result. */
function rename({ code: given, start: origin, nameSpan, parameters, links }, name, names) {
  const changes = links
    .filter(({ to }) => to.from === undefined)
    .map(({ start, end, to }) => ({ start, end, text: names.get(`${to.path} ${to.name}`) }));
  changes.push({ ...nameSpan, text: name }, ...parameters);
  changes.sort((a, b) => b.start - a.start);
  let code = given;
  for (const { start, end, text } of changes) code = code.slice(0, start - origin) + text + code.slice(end - origin);
  return code;
}

function readModule(text, path) {
  const module = { own: new Map(), imported: new Map(), exported: new Map(), all: [] };
  const place = (from) =>
    from.startsWith('.') ? { path: posix.join(posix.dirname(path), from).replace(/\.[jt]s$/, '.d.ts') } : { from };
  for (const node of parseAst(text, { lang: 'dts' }).body) {
    if (node.type === 'ImportDeclaration') {
      for (const { imported, local } of node.specifiers)
        module.imported.set(local.name, { ...place(node.source.value), name: imported?.name ?? '*' });
    } else if (node.type === 'ExportAllDeclaration') {
      module.all.push(place(node.source.value).path);
    } else if (node.type === 'ExportNamedDeclaration' && node.declaration === null) {
      const target = node.source === null ? {} : place(node.source.value);
      for (const { local, exported } of node.specifiers)
        module.exported.set(exported.name, { ...target, name: local.name });
    } else {
      const declaration = node.declaration ?? node;
      for (const own of readNames(declaration, text, commentBefore(text, node.start))) {
        // A function with several signatures is declared several times.
        module.own.set(own.name, [...(module.own.get(own.name) ?? []), own]);
        if (node !== declaration) module.exported.set(own.name, { name: own.name });
      }
    }
  }
  return module;
}

/** The names that a statement declares: several for `const a, b`. */
function readNames(node, text, comment) {
  const variables = node.type === 'VariableDeclaration';
  return (variables ? node.declarations : [node]).map((part) => {
    const keyword = variables ? `${node.kind} ` : '';
    const declared = /^(declare )?/.exec(text.slice(part.start, part.end))[0].length;
    return {
      name: part.id.name,
      // The span of a variable includes its type.
      nameSpan: { start: part.id.start, end: part.id.start + part.id.name.length },
      start: part.start + declared - keyword.length,
      code: keyword + text.slice(part.start + declared, part.end).replace(/;$/, ''),
      comment,
      references: referencesIn(part),
      parameters: destructuredParameters(part),
    };
  });
}

/** Destructured parameters. That is an implementation detail, so they are named by the last word of their type. */
function destructuredParameters({ params = [] }) {
  return params
    .filter(({ type }) => type === 'ObjectPattern')
    .map(({ start, optional, typeAnnotation }) => {
      const { typeName, typeArguments } = typeAnnotation.typeAnnotation;
      const type = typeName === undefined || typeArguments != null ? 'Options' : typeName.name;
      const word = /[A-Z]?[a-z\d]*$/.exec(type)[0].toLowerCase();
      return { start, end: typeAnnotation.start, text: optional ? `${word}?` : word };
    });
}

/** All references to names of the module, as types or values. */
function referencesIn(root) {
  const references = [];
  const bound = new Set();
  const add = ({ name, start, end }) => references.push({ name, start, end });
  const leftmost = (node) => (node.type === 'TSQualifiedName' ? leftmost(node.left) : node);
  const visit = (node) => {
    if (Array.isArray(node)) return node.forEach(visit);
    if (node === null || typeof node !== 'object') return;
    if (node.type === 'TSTypeParameter') bound.add(node.name.name);
    if (node.type === 'TSTypeReference') add(leftmost(node.typeName));
    else if (node.type === 'TSTypeQuery' && node.exprName.type !== 'TSImportType') add(leftmost(node.exprName));
    else if (node.type === 'TSInterfaceHeritage' || node.type === 'TSClassImplements') add(leftmost(node.expression));
    else if (node.type === 'TSImportType') references.push({ imports: node.source?.value });
    if (node.superClass?.type === 'Identifier') add(node.superClass);
    for (const [key, value] of Object.entries(node)) if (key !== 'type') visit(value);
  };
  visit(root);
  return references.filter(({ name }) => !bound.has(name));
}

/** The text of the TSDoc comment right before a declaration. */
function commentBefore(text, at) {
  const found = /\/\*\*((?:[^*]|\*(?!\/))*)\*\/\s*$/.exec(text.slice(0, at));
  return found === null ? '' : plainComment(found[1]);
}

/** A text as a TSDoc comment with a line break at the end. */
export function toComment(text) {
  if (text === '') return '';
  return text.includes('\n') ? `/**\n${text.replace(/^/gm, ' * ').replace(/ +$/gm, '')}\n */\n` : `/** ${text} */\n`;
}

/** The texts of the TSDoc comments inside a declaration. */
export function commentsIn(code) {
  return [...code.matchAll(/\/\*\*([\s\S]*?)\*\//g)].map(([, inner]) => plainComment(inner));
}

function plainComment(inner) {
  return inner
    .split('\n')
    .map((line) => line.replace(/^\s*\* ?/, '').trimEnd())
    .join('\n')
    .trim();
}

/** Code without its comments. */
export function withoutComments(code) {
  const parts = /'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|`(?:\\.|[^`\\])*`|[ \t]*\/\*[\s\S]*?\*\/\n?|[ \t]*\/\/[^\n]*\n?/g;
  return code.replace(parts, (part) => (/^\s*\//.test(part) ? '' : part));
}

/** `declare ` for everything but interfaces and types, which need none. */
export function head(declaration) {
  return /^(interface|type) /.test(declaration.text) ? '' : 'declare ';
}
