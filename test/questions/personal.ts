/** A gateway in front of test/fixtures/personal.mjs, which keeps a state for each connection. */
import { type GatewayOptions, startHttp } from '../support/gateway.ts';
import { runningServers } from '../support/in-process-server.ts';
import { server, startListening } from '../support/server.ts';
import { isWide, onePart, some } from '../support/wide.ts';

const ALL = ['stdio', 'http', 'sse'] as const;
export type Over = (typeof ALL)[number];
/** Those that a claim about every transport is tested with. */
export const OVER: readonly Over[] = isWide ? ALL : onePart(2, ['stdio', 'http']);

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
  /** Its processes, if it is on a pipe. */
  processes(): number[];
}

export async function placeOf(over: Over): Promise<Place> {
  const name = `personal-${process.pid}-${++names}`;
  if (over === 'stdio') {
    const toml = `command = ${JSON.stringify(server('personal', '--name', name))}\n`;
    const processes = () => runningServers(name);
    return { toml, count: async () => processes().length, processes };
  }
  const { origin } = await startListening('personal', '--over', over, '--name', name);
  const path = over === 'http' ? '/mcp' : '/sse';
  return {
    toml: `url = "${origin}${path}"\n${over === 'sse' ? 'transport = "sse"\n' : ''}`,
    count: async () => Number(await (await fetch(`${origin}/count`)).text()),
    processes: () => [],
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
