/** The name under which an item of a server is exposed. */

export function exposedName(namespace: string, name: string): string {
  return namespace === '' ? name : `${namespace}_${name}`;
}
