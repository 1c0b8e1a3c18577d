/** Finds the configuration file, without reading it. Nothing large is loaded here, because every start does this first. */
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { GatewayError } from '../base/errors.ts';
import type { EnvVars } from './expand.ts';

const FILE_NAMES = [
  'tools.toml',
  'toolgate.toml',
  'toolgate.yaml',
  'toolgate.yml',
  'toolgate.json',
  '.mcp.json',
] as const;

/** Used if the working directory has none. It may be missing, so that a container needs nothing but its volume. */
export const IN_DATA_DIR = 'config.yaml';
const DATA_DIR = '.toolgate';

/** Where folders of tools are in the data folder. */
export const TOOL_FOLDERS = 'tools';

const EXAMPLE = `[[servers]]
namespace = "files"
command = "npx -y @modelcontextprotocol/server-filesystem ."`;

/** Where a configuration is looked for, and which variables it may use. */
export interface LoadOptions {
  readonly cwd: string;
  readonly env: EnvVars;
  /**
   * The file that the user named; else `TOOLGATE_CONFIG`, else the first of the usual names in `cwd`, else `config.yaml` in
   * the data folder: `DATA_DIR`, or `.toolgate`. A data folder needs no configuration.
   */
  readonly path?: string | undefined;
}

export interface FoundConfig {
  /** The absolute path of the file to use. */
  readonly file: string;
  /** Whether the user named it, or its data folder. Otherwise it was found in the working directory. */
  readonly isNamed: boolean;
  /** Names of the configuration files in the same folder that are ignored. */
  readonly others: readonly string[];
  /** The data folder that the file is in; absent for a file elsewhere. The file may be missing. */
  readonly dataDir?: string;
}

export function findConfig({ cwd, env, path }: LoadOptions): FoundConfig {
  const named = path ?? (env.TOOLGATE_CONFIG || undefined);
  if (named !== undefined) {
    const file = resolve(cwd, named);
    if (existsSync(file)) return { file, isNamed: true, others: [] };
    const by = path === undefined ? 'TOOLGATE_CONFIG' : '--config';
    throw new GatewayError(
      'config_missing',
      `There is no file ${file}, which ${by} names. Create it, or name another.`,
    );
  }
  const [first, ...others] = FILE_NAMES.filter((name) => existsSync(resolve(cwd, name)));
  if (first === undefined) {
    const dataDir = resolve(cwd, env.DATA_DIR || DATA_DIR);
    const file = join(dataDir, IN_DATA_DIR);
    if (env.DATA_DIR || [file, join(dataDir, TOOL_FOLDERS)].some((path) => existsSync(path)))
      return { file, isNamed: Boolean(env.DATA_DIR), others: [], dataDir };
    const message = `There is no configuration in ${cwd}. Create tools.toml there, or name a file with --config. An example:\n\n${EXAMPLE}\n`;
    throw new GatewayError('config_missing', message);
  }
  return { file: resolve(cwd, first), isNamed: false, others };
}

/** The file of `findConfig`, or `tools.toml` in `cwd`, or the file that was named, if there is none yet. */
export function findOrNewConfig(options: LoadOptions): FoundConfig {
  const named = options.path ?? (options.env.TOOLGATE_CONFIG || undefined);
  if (named !== undefined && !existsSync(resolve(options.cwd, named)))
    return { file: resolve(options.cwd, named), isNamed: true, others: [] };
  try {
    return findConfig(options);
  } catch (error) {
    if (!(error instanceof GatewayError) || error.code !== 'config_missing') throw error;
    return { file: resolve(options.cwd, FILE_NAMES[0]), isNamed: false, others: [] };
  }
}
