/** Makes and removes folders of tools, each in one step: whoever watches sees all of it or nothing. */
import { mkdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { GatewayError } from '../base/errors.ts';
import { toolsFolder } from './namespaces.ts';
import { type Language, METADATA_FILE, nameProblem } from './tool-files.ts';

const PYTHON = `from fastmcp.tools import tool


@tool
def say_hello(name: str = "World") -> str:
    """Greet someone by name.

    Args:
        name: Whom to greet.
    """
    return f"Hello, {name}!"
`;

const TYPESCRIPT = `export const say_hello = {
  title: 'Say hello',
  description: 'Greet someone by name.',
  inputSchema: {
    type: 'object',
    properties: { name: { type: 'string', description: 'Whom to greet.', default: 'World' } },
  },
  annotations: { readOnlyHint: true },
  execute({ name = 'World' }: { name?: string }) {
    return \`Hello, \${name}!\`;
  },
};
`;

const FIRST: Readonly<Record<Language, { readonly file: string; readonly text: string }>> = {
  python: { file: 'hello.py', text: PYTHON },
  typescript: { file: 'hello.ts', text: TYPESCRIPT },
};

/** Endings of the folders below `venvs/` that are made for a namespace. */
const MADE_FOR = ['', '.node'];

/** Throws where there can be no namespace of that name: it is a part of paths. */
export function requireName(name: string): void {
  const why = nameProblem(name);
  if (why !== null) throw new GatewayError('usage', `${JSON.stringify(name)} cannot be a namespace: ${why}.`);
}

export interface CreatedNamespace {
  readonly name: string;
  readonly folder: string;
  /** The first tool file. */
  readonly file: string;
}

export async function createNamespace(
  dataDir: string,
  name: string,
  language: Language,
  description: string,
): Promise<CreatedNamespace> {
  requireName(name);
  const root = toolsFolder(dataDir);
  const folder = join(root, name);
  const { file, text } = FIRST[language];
  const beside = join(root, `.${name}.${process.pid}.new`);
  try {
    await mkdir(beside, { recursive: true });
    await writeFile(join(beside, file), text);
    await writeFile(join(beside, METADATA_FILE), `description: ${JSON.stringify(description)}\nversion: "0.1.0"\n`);
    // A folder that is there and empty would be replaced.
    if (await isThere(folder)) throw taken(name, folder);
    await rename(beside, folder);
  } catch (error) {
    throw explain(error, `${folder} cannot be made`);
  } finally {
    await rm(beside, { recursive: true, force: true }).catch(() => {});
  }
  return { name, folder, file: join(folder, file) };
}

function taken(name: string, folder: string): GatewayError {
  return new GatewayError('usage', `There is a namespace "${name}" already. Put further tools into ${folder}.`);
}

/** With what was made for it. False where there is none. */
export async function deleteNamespace(dataDir: string, name: string): Promise<boolean> {
  requireName(name);
  const root = toolsFolder(dataDir);
  const folder = join(root, name);
  const aside = join(root, `.${name}.${process.pid}.old`);
  if (!(await isThere(folder))) return false;
  try {
    await rename(folder, aside);
    await rm(aside, { recursive: true, force: true });
    for (const made of MADE_FOR) await rm(join(dataDir, 'venvs', `${name}${made}`), { recursive: true, force: true });
    return true;
  } catch (error) {
    throw explain(error, `${folder} cannot be deleted`);
  }
}

/** What the system says of a folder is for the user, not for us. */
function explain(error: unknown, what: string): unknown {
  const { code } = error as NodeJS.ErrnoException;
  if (error instanceof GatewayError || code === undefined) return error;
  return new GatewayError('usage', `${what} (${code}). Look at who may write there, and whether there is room.`);
}

function isThere(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}
