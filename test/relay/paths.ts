/** The paths that a message can take through a gateway: clients and upstreams of both eras, over every transport. */
import { join } from 'node:path';
import { beforeAll } from 'vitest';
import { type Client, type Door, type Era, metaOf, openClients } from '../support/relay-clients.ts';
import { server, startListening } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';
import { some } from '../support/wide.ts';

export type { Era };

export type Carrier = 'stdio' | 'http json' | 'http sse';

export interface Path {
  /** The era of the client. */
  readonly client: Era;
  readonly door: Door;
  /** The era of the upstream. */
  readonly upstream: Era;
  readonly carrier: Carrier;
}

export const eras = ['legacy', 'modern'] as const;
export const doors = ['stdio', 'http'] as const;
export const carriers = ['stdio', 'http json', 'http sse'] as const;

/** All combinations. */
const all: readonly Path[] = doors.flatMap((door) =>
  eras.flatMap((client) =>
    carriers.flatMap((carrier) => eras.map((upstream) => ({ client, door, upstream, carrier }))),
  ),
);

/** Every door with every carrier and every era with every other, but not all combinations of the four. */
export const paths: readonly Path[] = some(
  all,
  all.filter(({ door, carrier, upstream }) => {
    const isEven = (doors.indexOf(door) + carriers.indexOf(carrier)) % 2 === 0;
    return (upstream === 'modern') === isEven;
  }),
);

/** Paths under their titles, for `describe.each`. */
export function titled(chosen: readonly Path[]): [string, Path][] {
  return chosen.map((path) => {
    const { client, door, upstream, carrier } = path;
    return [`a ${client} client on ${door}, a ${upstream} upstream on ${carrier}`, path];
  });
}

/** The arrays of an upstream's lists as JSON text. */
export interface RawOffer {
  readonly tools: string;
  readonly resources: string;
  readonly templates: string;
  readonly prompts: string;
}

const plainOffer: RawOffer = {
  tools: '[{"name":"any","inputSchema":{"type":"object"}}]',
  resources: '[{"uri":"test://any","name":"any"}]',
  templates: '[]',
  prompts: '[{"name":"any"}]',
};

export const methods = ['tools/call', 'resources/read', 'prompts/get'] as const;

/** The methods that reach an upstream. */
export type Method = (typeof methods)[number];

/** A client and one of the upstreams behind its gateway. */
export interface Route extends Path, Pick<Client, 'request' | 'exchange'> {
  readonly namespace: string;
  /** The member that routes a request of that method to the upstream. */
  target(method: Method): string;
  /** The same member as the upstream receives it. */
  upstreamTarget(method: Method): string;
  /** The `"_meta":{…}` with these members, and with an envelope if the client is modern. */
  meta(members?: string): string;
  /** The params of a request that the upstream answers with exactly this text, after the id. */
  dictate(method: Method, outcome: string, more?: string): string;
}

/** An upstream, and its namespace in every gateway. */
export interface Upstream {
  readonly era: Era;
  readonly carrier: Carrier;
  readonly namespace: string;
  /** How the lines of its events end. */
  readonly newline?: 'cr' | 'crlf';
}

export const upstreams: readonly Upstream[] = carriers.flatMap((carrier) =>
  eras.map((era) => ({ era, carrier, namespace: `${era}-${carrier.split(' ').at(-1)}` })),
);

/**
 * Opens all routes before the tests of a file. The gateways are shared, because starting them takes longer than most
 * tests.
 */
export function useRoutes(behind: readonly Upstream[] = upstreams, offer = plainOffer): { readonly all: Route[] } {
  const all: Route[] = [];
  beforeAll(async () => {
    const clients = await openClients(await upstreamsToml(behind, offer));
    all.push(...clients.flatMap((client) => behind.map((upstream) => routeOf(client, upstream))));
  }, 60_000);
  return { all };
}

export function findRoute({ all }: { readonly all: readonly Route[] }, path: Path): Route {
  const keys = ['client', 'door', 'upstream', 'carrier'] as const;
  return all.find((route) => keys.every((key) => route[key] === path[key]))!;
}

function routeOf({ era: client, door, request, exchange }: Client, { era, carrier, namespace }: Upstream): Route {
  const target = (method: Method, prefix: string) =>
    method === 'resources/read' ? `"uri":"${prefix}test://any"` : `"name":"${prefix}any"`;
  const meta = (members?: string) => metaOf(client, members);
  return {
    client,
    door,
    upstream: era,
    carrier,
    namespace,
    request,
    exchange,
    meta,
    target: (method) => target(method, `${namespace}_`),
    upstreamTarget: (method) => target(method, ''),
    dictate: (method, outcome, more = '') =>
      `{${target(method, `${namespace}_`)},${meta(`"test/answer":${JSON.stringify(outcome)}${more}`)}}`,
  };
}

/** The configuration of a gateway with these upstreams. Those over HTTP share one process, which is started here. */
export async function upstreamsToml(behind: readonly Upstream[], offer = plainOffer): Promise<string> {
  const lines = [offer.tools, offer.resources, offer.templates, offer.prompts].join('\n');
  const file = join(tempFolder({ 'offer.txt': lines }), 'offer.txt');
  const { origin } = await startListening('../relay/upstream', '--offer', file, '--http');
  const servers = behind.map(({ era, carrier, namespace, newline }) => {
    const launch =
      carrier === 'stdio'
        ? `command = ${JSON.stringify(server('../relay/upstream', '--offer', file, '--era', era))}`
        : `url = "${origin}/${era}/${carrier.split(' ')[1]}?newline=${newline ?? 'lf'}"`;
    return `[[servers]]\nnamespace = "${namespace}"\nstart_timeout = "60s"\n${launch}\n`;
  });
  // A busy machine may be slow to start them all, and these tests are not about incomplete lists.
  return `controls = []\nstart_wait = "60s"\n${servers.join('\n')}`;
}

/**
 * The `"result":…` or `"error":…` of a response, to compare with the requested one. The id may come before or after
 * it.
 */
export function outcomeOf(response: Buffer): string {
  return response
    .toString()
    .replace(/^\{"jsonrpc":"2\.0",(?:"id":(?:"[^"]*"|\d+),)?/, '')
    .replace(/(?:,"id":(?:"[^"]*"|\d+))?\}$/, '');
}
