/** The variables in a URI that comes from a template: `{name}` without slashes, `{name*}` and `{+name}` with any text. */
import { percentDecoded } from '../base/text.ts';

interface Variable {
  readonly name: string;
  readonly takesSlashes: boolean;
}

type UriPart = string | Variable;

const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;

/** Throws an error that says what is wrong with the template. */
export function parseUriTemplate(template: string): readonly UriPart[] {
  const parts: UriPart[] = [];
  const names = new Set<string>();
  for (const [index, part] of template.split(/\{([^}]*)\}/).entries()) {
    if (index % 2 === 0) {
      if (part !== '') parts.push(part);
      continue;
    }
    const name = part.replace(/^\+/, '').replace(/\*$/, '');
    if (!NAME.test(name))
      throw new Error(`has an expression {${part}} that is not a name; use {name}, {name*} or {+name}`);
    if (names.has(name)) throw new Error(`has the variable {${name}} twice`);
    if (typeof parts.at(-1) === 'object') throw new Error(`has nothing between {${name}} and the variable before it`);
    names.add(name);
    parts.push({ name, takesSlashes: name !== part });
  }
  return parts;
}

/** The decoded values, or null if the URI does not come from the template. A variable ends where the next text begins. */
export function variablesIn(parts: readonly UriPart[], uri: string): Record<string, string> | null {
  const values: Record<string, string> = {};
  let at = 0;
  for (const [index, part] of parts.entries()) {
    if (typeof part === 'string') {
      if (!uri.startsWith(part, at)) return null;
      at += part.length;
      continue;
    }
    const next = parts[index + 1] as string | undefined;
    const isLast = index + 2 === parts.length;
    const end = next === undefined ? uri.length : isLast ? uri.lastIndexOf(next) : uri.indexOf(next, at + 1);
    const value = uri.slice(at, end);
    if (end <= at || (!part.takesSlashes && value.includes('/'))) return null;
    const decoded = percentDecoded(value);
    if (decoded === null) return null;
    values[part.name] = decoded;
    at = end;
  }
  return at === uri.length ? values : null;
}
