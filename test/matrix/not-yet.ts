/** Features and kinds of clients that are not supported yet, and why. This list should become empty. */
export const notYet: Readonly<Record<string, string>> = {};

export function isBuilt(what: string): boolean {
  return !(what in notYet);
}
