/** Valid names for secrets, which become environment variables. */

const NAME = /^[A-Za-z_][A-Za-z0-9_]{0,127}$/;
/** These would change how a worker starts. */
export const RESERVED = /^(LD_.*|DYLD_.*|NODE_.*|PYTHON.*|PATH|HOME|ENV|BASH_ENV|SECRETS_KEY.*)$/;
/** Namespaces of servers may have more characters than those of folders. */
const NAMESPACE = /^[A-Za-z0-9_.-]{1,128}$/;

/** Why a secret cannot have this name; null if it can. An invalid name is not quoted: it may be a value by mistake. */
export function nameProblem(name: string): string | null {
  if (!NAME.test(name)) return 'A secret is named like an environment variable: letters, digits and "_"';
  if (RESERVED.test(name)) return `${name} would change how tools are started, so it cannot be the name of a secret`;
  if (name === '__proto__') return '"__proto__" cannot be the name of a secret';
  return null;
}

export function isNamespace(text: string): boolean {
  return NAMESPACE.test(text) && text !== '__proto__';
}
