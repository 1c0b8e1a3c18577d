/** For tests, which are checked by the compiler. */
export function sameInWide(root: string, files: readonly string[]): string[];
