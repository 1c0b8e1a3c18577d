/** Windows of one project that share a gateway in the background, which is a process. So are the windows in a wide run. */
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { ClientCapabilities } from '@modelcontextprotocol/sdk/types.js';
import { atEnd } from './cleanup.ts';
import { type Run, runCli } from './cli.ts';
import { type ModernStdioGateway, type StdioGateway, startModernStdio, startStdio } from './gateway.ts';
import { alive, waitFor } from './processes.ts';
import { type Files, tempFolder } from './temp.ts';
import { isWide } from './wide.ts';

export interface Project {
  readonly cwd: string;
  /** Where the sockets are. */
  readonly runtime: string;
  readonly env: Record<string, string>;
  window(options?: WindowOptions): Promise<StdioGateway>;
  modernWindow(options?: Pick<WindowOptions, 'args' | 'env'>): Promise<ModernStdioGateway>;
  /** `toolgate daemon VERB`. */
  daemon(verb: string, ...args: readonly string[]): Promise<Run>;
  /** The gateways in the background. */
  gateways(): Promise<{ pid: number; windows: number; log: string; version: string }[]>;
  /** The process of the only gateway. */
  pid(): Promise<number>;
  /** The names of sockets and locks. */
  left(): string[];
}

interface WindowOptions {
  readonly args?: readonly string[];
  readonly env?: Record<string, string>;
  readonly capabilities?: ClientCapabilities;
  readonly connect?: boolean;
}

/** Ends its gateways at the end of the test. */
export function openProject(config: string, files: Files = {}): Project {
  const cwd = tempFolder({ 'tools.toml': config, ...files });
  const runtime = tempFolder();
  const folder = join(runtime, 'toolgate');
  const env = { HOME: tempFolder(), XDG_RUNTIME_DIR: runtime, TOOLGATE_SHARED: '1' };
  const optionsFor = (options: WindowOptions) => ({
    cwd,
    process: isWide,
    ...options,
    env: { ...env, ...options.env },
  });
  const project: Project = {
    cwd,
    runtime: folder,
    env,
    window: (options = {}) => startStdio(optionsFor(options)),
    modernWindow: ({ args = [], env: more = {} } = {}) =>
      startModernStdio({ cwd, process: isWide, args, env: { ...env, ...more } }),
    daemon: (verb, ...args) => runCli(['daemon', verb, ...args], { cwd, env, process: false }),
    async gateways() {
      const { stdout } = await project.daemon('status', '--json');
      return JSON.parse(stdout).gateways;
    },
    async pid() {
      const all = await project.gateways();
      if (all.length !== 1) throw new Error(`${all.length} gateways run`);
      return all[0]!.pid;
    },
    left: () => (existsSync(folder) ? readdirSync(folder) : []),
  };
  atEnd(async () => {
    const all = await project.gateways();
    await project.daemon('stop');
    await waitFor(() => all.every(({ pid }) => !alive(pid)));
  });
  return project;
}
