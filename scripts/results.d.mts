/** For tests, which are checked by the compiler. */
export function cpuMs(): number;
