/** `${NAME}`, `${NAME:-default}` and `${secret:NAME}` in the strings of a configuration. */
import { nameProblem } from '../secrets/secret-names.ts';

export type EnvVars = Readonly<Record<string, string | undefined>>;

/**
 * The text with every variable replaced, or the reason why that failed. Problems never show the value of a variable.
 */
export type Expansion = { readonly text: string } | { readonly problem: string };

/**
 * Replaces variables by their values, once: a value from the environment is never expanded again. As in a shell, a
 * default also replaces an empty value. `secret` returns what replaces a secret; null if secrets are not allowed.
 */
export function expand(text: string, env: EnvVars, secret: ((name: string) => string) | null = null): Expansion {
  let result = '';
  let at = 0;
  for (let open = text.indexOf('${'); open >= 0; open = text.indexOf('${', at)) {
    const close = text.indexOf('}', open);
    const inside = close < 0 ? '' : text.slice(open + 2, close);
    if (inside.startsWith(SECRET)) {
      const named = inside.slice(SECRET.length);
      const problem = secret === null ? NO_SECRETS_HERE : nameProblem(named);
      if (problem !== null) return { problem };
      result += text.slice(at, open) + secret!(named);
      at = close + 1;
      continue;
    }
    const [, name, fallback] = FORM.exec(inside) ?? [];
    if (name === undefined || fallback?.includes('${')) return { problem: malformed(text.slice(open)) };
    if (name === 'SECRETS_KEY')
      return { problem: 'SECRETS_KEY decrypts all secrets and is never passed on. Remove it here' };
    const value = Object.hasOwn(env, name) ? env[name] : undefined;
    const chosen = fallback === undefined ? value : value || fallback;
    if (chosen === undefined) {
      return {
        problem: `the environment variable ${name} is not set. Set it, or give a default: \${${name}:-default}`,
      };
    }
    result += text.slice(at, open) + chosen;
    at = close + 1;
  }
  return { text: result + text.slice(at) };
}

/** The variables that a text refers to. */
export function variablesIn(text: string): string[] {
  return [...text.matchAll(/\$\{(?!secret:)([A-Za-z_]\w*)/g)].map((match) => match[1]!);
}

const SECRET = 'secret:';
const NO_SECRETS_HERE =
  '${secret:NAME} is allowed in the command, args, env, url and headers of servers, and nowhere else. Remove it here';

const FORM = /^([A-Za-z_]\w*)(?::-(.*))?$/s;

/** Shows only the name: what follows it may be a secret. */
function malformed(text: string): string {
  const [start] = /^\$\{\w*/.exec(text) ?? [];
  return `"${start}…" is not a variable such as \${NAME}, \${NAME:-default} or \${secret:NAME}. A default cannot contain another variable. Correct it`;
}
