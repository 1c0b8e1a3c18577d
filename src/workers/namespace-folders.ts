/** Creates and deletes namespaces. Each happens in one step, so that watchers never see half of a folder. */
import { mkdir, readdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { GatewayError } from '../base/errors.ts';
import { isAlive } from '../base/lock.ts';
import { writeEditorTypes } from './editor-types.ts';
import { toolsFolder } from './namespaces.ts';
import { type Language, METADATA_FILE, nameProblem, toolLanguage } from './tool-files.ts';
import { removeEnvironments } from './unused-environments.ts';

const PYTHON = `from fastmcp.tools import tool


@tool
def say_hello(name: str = "World") -> str:
    """Greet someone by name.

    Args:
        name: Whom to greet.
    """
    return f"Hello, {name}!"
`;

const TYPESCRIPT = `import { defineTool } from 'toolgate';
import { z } from 'zod';

export const say_hello = defineTool({
  title: 'Say hello',
  description: 'Greet someone by name.',
  inputSchema: z.object({ name: z.string().default('World').describe('Whom to greet.') }),
  annotations: { readOnlyHint: true },
  execute: ({ name }) => \`Hello, \${name}!\`,
});
`;

/** The first tool file of a new namespace. */
const FIRST: Readonly<Record<Language, { readonly file: string; readonly text: string }>> = {
  python: { file: 'hello.py', text: PYTHON },
  typescript: { file: 'hello.ts', text: TYPESCRIPT },
};

/** Throws if the name is not valid for a namespace. It becomes part of paths. */
export function requireName(name: string): void {
  const why = nameProblem(name);
  if (why !== null)
    throw new GatewayError('usage', `${JSON.stringify(name.slice(0, 100))} cannot be a namespace: ${why}.`);
}

export interface CreatedNamespace {
  readonly name: string;
  readonly folder: string;
  readonly file: string;
}

export async function createNamespace(
  dataDir: string,
  name: string,
  language: Language,
  description: string,
): Promise<CreatedNamespace> {
  const { file, text } = FIRST[language];
  const { folder } = await createNamespaceOf(dataDir, name, {
    [file]: text,
    [METADATA_FILE]: `description: ${JSON.stringify(description)}\nversion: "0.1.0"\n`,
  });
  return { name, folder, file: join(folder, file) };
}

/** Creates a namespace with these files, by name. */
export async function createNamespaceOf(
  dataDir: string,
  name: string,
  files: Readonly<Record<string, string>>,
): Promise<{ readonly folder: string }> {
  requireName(name);
  const root = toolsFolder(dataDir);
  const folder = join(root, name);
  const draft = join(root, `.${name}.${process.pid}.new`);
  try {
    await mkdir(draft, { recursive: true });
    for (const [file, text] of Object.entries(files)) await writeFile(join(draft, file), text);
    // `rename` would replace an empty folder.
    if (await exists(folder)) throw taken(name, folder);
    if (Object.keys(files).some((file) => toolLanguage(file) === 'typescript')) await writeEditorTypes(dataDir);
    await rename(draft, folder);
  } catch (error) {
    throw explain(error, `${folder} cannot be created`);
  } finally {
    await rm(draft, { recursive: true, force: true }).catch(() => {});
  }
  return { folder };
}

/** Creates a namespace without a tool. */
export async function createEmptyNamespace(dataDir: string, name: string): Promise<string> {
  requireName(name);
  const folder = join(toolsFolder(dataDir), name);
  try {
    await mkdir(toolsFolder(dataDir), { recursive: true });
    await mkdir(folder);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') throw taken(name, folder);
    throw explain(error, `${folder} cannot be created`);
  }
  return folder;
}

/** What a process that was killed while it created or deleted a namespace left behind. */
const LEFT = /^\.[a-z0-9-]+\.(\d+)\.(?:old|new)$/;

export async function removeLeftNamespaces(dataDir: string): Promise<void> {
  const root = toolsFolder(dataDir);
  for (const name of await readdir(root).catch(() => [])) {
    const pid = LEFT.exec(name)?.[1];
    if (pid !== undefined && !isAlive(Number(pid)))
      await rm(join(root, name), { recursive: true, force: true }).catch(() => {});
  }
}

function taken(name: string, folder: string): GatewayError {
  return new GatewayError('usage', `The namespace "${name}" exists already. Put more tools into ${folder}.`);
}

/** Also deletes the environments of the namespace. Returns false if it does not exist. */
export async function deleteNamespace(dataDir: string, name: string): Promise<boolean> {
  requireName(name);
  const root = toolsFolder(dataDir);
  const folder = join(root, name);
  const aside = join(root, `.${name}.${process.pid}.old`);
  if (!(await exists(folder))) return false;
  try {
    await rename(folder, aside);
    await rm(aside, { recursive: true, force: true });
    await removeEnvironments(dataDir, name);
    return true;
  } catch (error) {
    throw explain(error, `${folder} cannot be deleted`);
  }
}

/** A file system error is for the user to fix, so it becomes a usage error. */
function explain(error: unknown, what: string): unknown {
  const { code } = error as NodeJS.ErrnoException;
  if (error instanceof GatewayError || code === undefined) return error;
  return new GatewayError('usage', `${what} (${code}). Check who may write there, and whether the disk is full.`);
}

function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}
