/**
 * A place in a text where a secret is to stand. NUL can be neither in a configuration nor in the environment, so nobody
 * but us can make such a place: what comes out of a variable is never taken for one.
 */

const PLACE = /\0([^\0]*)\0/g;

export function referTo(name: string): string {
  return `\0${name}\0`;
}

/** The names of the secrets that a text has places for. */
export function referencesIn(text: string): string[] {
  return [...text.matchAll(PLACE)].map((match) => match[1]!);
}

/** With the values in their places; what is missing leaves nothing. */
export function fillIn(text: string, lookUp: (name: string) => string | undefined): string {
  return text.replace(PLACE, (_, name: string) => lookUp(name) ?? '');
}

/** `${secret:NAME}` in a text that has no other variables, as places. */
export function referToSecrets(text: string): string {
  return text.replace(/\$\{secret:([A-Za-z_]\w*)\}/g, (_, name: string) => referTo(name));
}
