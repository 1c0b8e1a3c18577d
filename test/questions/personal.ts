/** A gateway in front of test/fixtures/personal.mjs, which keeps a state for each connection. */
import { childEnv, startChild } from '../support/child.ts';
import { type GatewayOptions, startHttp } from '../support/gateway.ts';
import { running, waitFor } from '../support/processes.ts';
import { fixture, server } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';
import { some } from '../support/wide.ts';

const ALL = ['stdio', 'http', 'sse'] as const;
export type Over = (typeof ALL)[number];
export const OVER: readonly Over[] = some(ALL, ['stdio', 'http']);

/** The transport of a server, and whether clients share it. */
export const SHARED_OVER: readonly (readonly [Over, 'project' | 'session'])[] = some(
  ALL.flatMap((over) => [[over, 'project'] as const, [over, 'session'] as const]),
  [
    ['stdio', 'project'],
    ['http', 'session'],
  ],
);

let names = 0;

export interface Place {
  /** The configuration lines of the server. */
  readonly toml: string;
  /** The number of its processes or connections. */
  count(): Promise<number>;
}

export async function placeOf(over: Over): Promise<Place> {
  const name = `personal-${process.pid}-${++names}`;
  if (over === 'stdio') {
    const toml = `command = ${JSON.stringify(server('personal', '--name', name))}\n`;
    // The command line of the shell contains the name too.
    return { toml, count: async () => running(name).length };
  }
  const args = [fixture('personal'), '--over', over, '--name', name];
  const child = startChild(process.execPath, args, { cwd: tempFolder(), env: childEnv() });
  const port = await waitFor(() => /listening (\d+)/.exec(child.stdout())?.[1]);
  const origin = `http://127.0.0.1:${port}`;
  const path = over === 'http' ? '/mcp' : '/sse';
  return {
    toml: `url = "${origin}${path}"\n${over === 'sse' ? 'transport = "sse"\n' : ''}`,
    count: async () => Number(await (await fetch(`${origin}/count`)).text()),
  };
}

export function configOf(place: Place, more = 'share = "session"\n'): string {
  return `controls = []\n[[servers]]\nnamespace = ""\n${place.toml}${more}`;
}

export async function startPersonal(over: Over, more?: string, options: GatewayOptions = {}) {
  const place = await placeOf(over);
  const gateway = await startHttp({ config: configOf(place, more), ...options });
  return { gateway, place };
}
