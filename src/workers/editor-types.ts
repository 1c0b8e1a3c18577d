/**
 * Writes what an editor needs for the tool files of the data folder: the types of what they can import without
 * installing it, and a `tsconfig.json` that finds them. The types are copies, so that they also work where Toolgate
 * is not installed, for example outside of its container.
 */
import { cp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ownFile } from '../base/own-files.ts';

/** These two differ between versions. */
const COMPARED = ['toolgate.d.ts', 'zod/v4/core/versions.d.ts'];

const SETTINGS = `{
  // For editors and tsc; Toolgate itself does not read it. Yours to change. The types are in types/, which Toolgate updates.
  "compilerOptions": {
    "target": "ES2023",
    "lib": ["ES2023", "DOM", "DOM.Iterable"],
    "module": "ESNext",
    "moduleResolution": "bundler",
    "allowImportingTsExtensions": true,
    "resolveJsonModule": true,
    "allowJs": true,
    "strict": true,
    "skipLibCheck": true,
    "noEmit": true,
    "paths": {
      "toolgate": ["./types/toolgate.d.ts"],
      "zod": ["./types/zod/index.d.ts"],
      "zod/v4": ["./types/zod/v4/index.d.ts"],
      "zod/mini": ["./types/zod/mini/index.d.ts"],
      "zod/v4-mini": ["./types/zod/v4-mini/index.d.ts"]
    }
  },
  "include": ["tools/*/**/*"]
}
`;

/** Leaves a `tsconfig.json` that exists as it is. */
export async function writeEditorTypes(dataDir: string): Promise<void> {
  await writeFile(join(dataDir, 'tsconfig.json'), SETTINGS, { flag: 'wx' }).catch(unlessThere);
  const own = ownFile('dist/editor');
  const types = join(dataDir, 'types');
  if ((await marksOf(types).catch(() => null)) === (await marksOf(own))) return;
  const draft = `${types}.${process.pid}.new`;
  try {
    await cp(own, draft, { recursive: true });
    await rm(types, { recursive: true, force: true });
    await rename(draft, types);
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
}

async function marksOf(folder: string): Promise<string> {
  const texts = await Promise.all(COMPARED.map((file) => readFile(join(folder, file), 'utf8')));
  return texts.join('\0');
}

function unlessThere(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EEXIST') throw error;
}
