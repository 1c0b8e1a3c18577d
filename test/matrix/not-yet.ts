/** What is not built yet, of features and of clients' sides, and why. To be emptied. */
export const notYet: Readonly<Record<string, string>> = {};

export function isBuilt(what: string): boolean {
  return !(what in notYet);
}
