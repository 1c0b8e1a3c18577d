/** Warns the author of the program. Programs can listen to warnings, and Node prints them. */
export function warn(message: string): void {
  process.emitWarning(message, { type: 'ToolgateWarning' });
}
