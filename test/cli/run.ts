export { type Run, type RunOptions, runCli, startCli } from '../support/cli.ts';

/** Characters that a terminal would execute instead of showing: everything except text, tabs and line feeds. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: exactly these are meant
export const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/;
