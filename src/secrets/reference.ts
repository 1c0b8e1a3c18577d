/**
 * A reference to a secret inside a text, until the secret is filled in. It is marked with NUL, which neither a
 * configuration nor the environment can contain. So the value of a variable is never mistaken for a reference.
 */

const REFERENCE = /\0([^\0]*)\0/g;

export function referTo(name: string): string {
  return `\0${name}\0`;
}

/** The names of the secrets that a text refers to. */
export function referencesIn(text: string): string[] {
  return [...text.matchAll(REFERENCE)].map((match) => match[1]!);
}

/** The text with the values filled in; a missing one becomes empty. */
export function fillIn(text: string, lookUp: (name: string) => string | undefined): string {
  return text.replace(REFERENCE, (_, name: string) => lookUp(name) ?? '');
}

/** Turns `${secret:NAME}` into references, in a text without other variables. */
export function referToSecrets(text: string): string {
  return text.replace(/\$\{secret:([A-Za-z_]\w*)\}/g, (_, name: string) => referTo(name));
}
