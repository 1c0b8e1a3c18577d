import { accessSync, constants, existsSync, statSync } from 'node:fs';
import { delimiter, resolve } from 'node:path';

export type Executable = { readonly path: string; readonly code?: undefined } | { readonly code: 'ENOENT' | 'EACCES' };

/** Looks for a program as the system would. The error code says why it cannot be run. */
export function findExecutable(file: string, cwd: string, path = '/usr/local/bin:/usr/bin:/bin'): Executable {
  const folders = file.includes('/') ? [''] : path.split(delimiter);
  let code: 'ENOENT' | 'EACCES' = 'ENOENT';
  for (const folder of folders) {
    const candidate = resolve(cwd, folder, file);
    if (!existsSync(candidate) || statSync(candidate).isDirectory()) continue;
    try {
      accessSync(candidate, constants.X_OK);
      return { path: candidate };
    } catch {
      code = 'EACCES';
    }
  }
  return { code };
}
