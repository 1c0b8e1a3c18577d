/** Real servers over every transport, all of them test/fixtures/wordy.mjs, and what they report about themselves. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { childEnv, startChild } from './child.ts';
import { alive, waitFor } from './processes.ts';
import { type ServerEntry, toml } from './running-gateway.ts';
import { fixture, server } from './server.ts';
import { tempFolder } from './temp.ts';

export const UPSTREAMS = ['pipe', 'http', 'events', 'modernpipe', 'modernhttp'] as const;
export type Upstream = (typeof UPSTREAMS)[number];

/** What wordy.mjs records about itself. */
export interface State {
  readonly name: Upstream;
  readonly pid: number;
  /** The number of running calls, and details of some. */
  readonly open: number;
  readonly words: readonly string[];
  readonly calls: number;
  readonly cancelled: number;
  readonly asked: number;
  readonly foreign: number;
  /** Calls that were cancelled before they arrived. */
  readonly overtaken: number;
  readonly sent: number;
  readonly sockets: number;
}

export interface Upstreams {
  readonly config: string;
  /** Of every process, including those that have ended. */
  states(): State[];
  /** Waits until no call is running. Returns those that still run at the end. */
  calm(): Promise<string[]>;
  sum(what: 'open' | 'calls' | 'cancelled' | 'asked' | 'foreign' | 'overtaken' | 'sent', name?: Upstream): number;
}

export async function startUpstreams(
  servers: Record<string, unknown>,
  settings: Record<string, unknown>,
): Promise<Upstreams> {
  const folder = tempFolder();
  const flags = (name: Upstream) => ['--name', name, '--state', folder];
  const web = async (name: Upstream, ...more: string[]) => {
    const args = [fixture('wordy'), '--port', '0', ...flags(name), ...more];
    const child = startChild(process.execPath, args, { cwd: tempFolder(), env: childEnv() });
    const port = await waitFor(() => /listening (\d+)/.exec(child.stdout())?.[1], 20_000);
    return `http://127.0.0.1:${port}`;
  };
  const [http, events, modernhttp] = await Promise.all([
    web('http'),
    web('events', '--sse'),
    web('modernhttp', '--era', 'modern'),
  ]);
  const entries: ServerEntry[] = [
    { namespace: 'pipe', command: server('wordy', ...flags('pipe')) },
    { namespace: 'http', url: `${http}/mcp` },
    { namespace: 'events', url: `${events}/sse`, transport: 'sse' },
    { namespace: 'modernpipe', command: server('wordy', ...flags('modernpipe'), '--era', 'modern') },
    { namespace: 'modernhttp', url: `${modernhttp}/mcp` },
  ];
  const states = () =>
    readdirSync(folder)
      .filter((file) => file.endsWith('.json'))
      .map((file) => JSON.parse(readFileSync(join(folder, file), 'utf8')) as State)
      // A process that ended in the middle of a call has no open call.
      .map((state) => (alive(state.pid) ? state : { ...state, open: 0, words: [], sockets: 0 }));
  return {
    config: toml(
      entries.map((entry) => ({ ...entry, ...servers })),
      { controls: [], ...settings },
    ),
    states,
    async calm() {
      const open = () => states().flatMap(({ name, words }) => words.map((word) => `${name}: ${word}`));
      await waitFor(() => open().length === 0, 30_000).catch(() => {});
      return open();
    },
    sum: (what, name) =>
      states()
        .filter((state) => name === undefined || state.name === name)
        .reduce((sum, state) => sum + state[what], 0),
  };
}
