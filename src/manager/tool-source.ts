/** Reads, writes and deletes tool files. A file is replaced as a whole, and its earlier versions are kept next to it. */
import { lstat, readdir, rm, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { GatewayError } from '../base/errors.ts';
import { replaceFile, replaceFileDurably } from '../base/files.ts';
import type { Config } from '../config/config.ts';
import type { EnvVars } from '../config/expand.ts';
import { toolLanguage } from '../workers/tool-files.ts';
import { checkCode } from './check-code.ts';
import {
  findManaged,
  findOwn,
  MOST_CODE,
  readFileIn,
  requirePlainFile,
  requireToolFile,
  whileLocked,
} from './managed-namespace.ts';
import type { CheckedCode, CodeProblem } from './read-typescript.ts';

/** Its name begins with a dot, so that it is not part of the tools. */
const HISTORY = '.history';
const MOST_VERSIONS = 20;
const STAMP = /^\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-\d{3}Z(?:-\d+)?$/;

export async function readToolSource(config: Config, namespace: string, filename: string): Promise<string> {
  requireToolFile(filename);
  const { found } = await findManaged(config, namespace);
  const source = await readFileIn(found.folder, filename);
  if (source === null)
    throw missingFile(
      namespace,
      filename,
      found.parts.flatMap(({ files }) => files),
    );
  return source;
}

export type WriteOutcome =
  | { readonly written: true; readonly filename: string; readonly tools_found: readonly string[] }
  | { readonly written: false; readonly error: string; readonly details: string };

/** Checks the code first. If it is wrong, nothing is written. */
export async function writeTool(
  config: Config,
  env: EnvVars,
  namespace: string,
  filename: string,
  code: string,
): Promise<WriteOutcome> {
  requireToolFile(filename);
  const { found } = await findOwn(config, namespace);
  await requirePlainFile(found.folder, filename);
  const unreadable = refusalOf(filename, code);
  if (unreadable !== null) return unreadable;
  const checked = await checkCode(filename, code, env);
  const refused = codeRefusal(filename, checked);
  if (refused !== null) return refused;
  await whileLocked(config, namespace, async () => {
    await requireFolder(config, namespace);
    await keepVersion(found.folder, filename, code);
    await replaceFileDurably(join(found.folder, filename), code);
  });
  return { written: true, filename, tools_found: checked.tools.map(({ name }) => name) };
}

function refusalOf(filename: string, code: string): WriteOutcome | null {
  const size = Buffer.byteLength(code);
  if (size > MOST_CODE)
    return refuse(
      'The code is too large',
      `${filename} would have ${size} bytes; at most ${MOST_CODE} are allowed. Split it into several files.`,
    );
  if (code.includes('\0')) return refuse('The code contains a NUL character', 'Remove it.');
  return null;
}

function codeRefusal(filename: string, { tools, problems, isBroken }: CheckedCode): WriteOutcome | null {
  const details = problems.map(({ line, message }) => `${filename}:${line}: ${message}`).join('\n');
  if (isBroken) return refuse(errorOf(problems), details);
  if (tools.length === 0) {
    const [error, pattern] = NO_TOOL[toolLanguage(filename) ?? 'python'];
    return refuse(error, [details, pattern].filter((text) => text !== '').join('\n'));
  }
  return problems.length > 0 ? refuse(errorOf(problems), details) : null;
}

const NO_TOOL = {
  python: [
    'No @tool decorator found',
    'Decorate at least one function at the top level of the file:\nfrom fastmcp.tools import tool\n\n@tool\ndef my_tool(param: str) -> str:\n    """What it does."""',
  ],
  typescript: [
    'No exported tool found',
    "Export at least one tool:\nimport { z } from 'zod';\nexport const my_tool = { description: 'What it does.', inputSchema: z.object({ param: z.string() }), execute: ({ param }) => param };",
  ],
} as const;

function errorOf([first, ...more]: readonly CodeProblem[]): string {
  const text = `Line ${first!.line}: ${first!.message}`;
  return more.length === 0 ? text : `${text} (and ${more.length} more)`;
}

function refuse(error: string, details: string): WriteOutcome {
  return { written: false, error, details };
}

/** The file can be restored afterwards. */
export async function deleteTool(config: Config, namespace: string, filename: string): Promise<void> {
  requireToolFile(filename);
  const { found } = await findOwn(config, namespace);
  await requirePlainFile(found.folder, filename);
  await whileLocked(config, namespace, async () => {
    if (!(await keepVersion(found.folder, filename, null)))
      throw missingFile(
        namespace,
        filename,
        found.parts.flatMap(({ files }) => files),
      );
    await unlink(join(found.folder, filename));
  });
}

export interface ToolVersion {
  /** When the version was replaced; names it. */
  readonly version: string;
  readonly filename: string;
}

/** The newest first. */
export async function listVersions(config: Config, namespace: string, filename: string): Promise<ToolVersion[]> {
  requireToolFile(filename);
  const { found } = await findManaged(config, namespace);
  return (await versionsOf(found.folder, filename)).reverse().map((version) => ({ version, filename }));
}

/** Puts an earlier version in the place of the file, which becomes a version itself. Returns which one it was. */
export async function restoreTool(
  config: Config,
  namespace: string,
  filename: string,
  version?: string,
): Promise<string> {
  requireToolFile(filename);
  const { found } = await findOwn(config, namespace);
  await requirePlainFile(found.folder, filename);
  return whileLocked(config, namespace, async () => {
    const versions = await versionsOf(found.folder, filename);
    const wanted = version ?? versions.at(-1);
    if (wanted === undefined || !versions.includes(wanted))
      throw new GatewayError(
        'usage',
        versions.length === 0
          ? `There is no earlier version of ${filename} in "${namespace}".`
          : `There is no such version of ${filename}. There are: ${[...versions].reverse().join(', ')}.`,
      );
    const text = await readFileIn(join(found.folder, HISTORY, filename), wanted);
    if (text === null) throw new GatewayError('usage', `The version ${wanted} of ${filename} is gone. Choose another.`);
    await keepVersion(found.folder, filename, text);
    await replaceFileDurably(join(found.folder, filename), text);
    return wanted;
  });
}

/** Keeps the file as it is, unless it is equal to what will replace it. False if there is no file. */
async function keepVersion(folder: string, filename: string, next: string | null): Promise<boolean> {
  const text = await readFileIn(folder, filename);
  if (text === null) return false;
  if (text === next) return true;
  const versions = await versionsOf(folder, filename);
  const stamp = new Date().toISOString().replace(/[:.]/g, '-');
  const clashes = versions.filter((one) => one.startsWith(stamp)).length;
  await replaceFile(join(folder, HISTORY, filename, clashes === 0 ? stamp : `${stamp}-${clashes}`), text);
  for (const old of versions.slice(0, Math.max(0, versions.length + 1 - MOST_VERSIONS)))
    await rm(join(folder, HISTORY, filename, old), { force: true });
  return true;
}

/** The oldest first. */
async function versionsOf(folder: string, filename: string): Promise<string[]> {
  for (const path of [join(folder, HISTORY), join(folder, HISTORY, filename)]) {
    const stats = await lstat(path).catch(() => null);
    if (stats === null) return [];
    // A link could lead anywhere.
    if (!stats.isDirectory())
      throw new GatewayError('usage', `${path} is in the place of the earlier versions. Remove it yourself.`);
  }
  const names = await readdir(join(folder, HISTORY, filename)).catch(() => []);
  return names.filter((name) => STAMP.test(name)).sort();
}

/** A namespace that was deleted meanwhile must not come back with one file in it. */
async function requireFolder(config: Config, namespace: string): Promise<void> {
  await findOwn(config, namespace);
}

function missingFile(namespace: string, filename: string, files: readonly string[]): GatewayError {
  const known = files.length === 0 ? 'It has no tool files.' : `It has: ${files.join(', ')}.`;
  return new GatewayError('usage', `There is no file ${filename} in the namespace "${namespace}". ${known}`);
}
