/** For tests, which are checked by the compiler. */
export function schemasText(text: string): string;
