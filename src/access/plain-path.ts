/**
 * The usual spelling of a path to a file: `./.env`, `.env/`, `.env/.` and `a/../.env` are `.env`. It is not looked up, so
 * links are not followed.
 */
export function plainPath(path: string): string {
  const isAbsolute = /^[\\/]/.test(path);
  const kept: string[] = [];
  for (const part of path.split(/[\\/]/)) {
    if (part === '' || part === '.') continue;
    if (part !== '..') kept.push(part);
    else if (kept.length > 0 && kept.at(-1) !== '..') kept.pop();
    else if (!isAbsolute) kept.push(part);
  }
  return `${isAbsolute ? '/' : ''}${kept.join('/')}`;
}

/** Some programs end a path at such a character. */
export function hasNul(path: string): boolean {
  return path.includes('\0');
}
