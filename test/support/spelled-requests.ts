/**
 * Random policies, and requests in random spellings of names, URIs and JSON, at some doors. Whatever reaches a server is
 * held against an independent oracle, as a lax server would read it: the last of two equal keys, URIs decoded.
 */
import { existsSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import fc from 'fast-check';
import { expect } from 'vitest';
import { type Door, isOffered } from './asking.ts';
import { usePolicedGateway } from './policed-gateway.ts';
import {
  AGENTS,
  NAMES,
  naivelyAllowed,
  naivelyReadable,
  type RandomPolicy,
  randomPolicy,
  SERVERS,
} from './policies.ts';
import { createRandom, type Random } from './random.ts';
import { tempFolder } from './temp.ts';

const REQUESTS = 25;
const DENIED = ['note://7', 'memo://7'] as const;
/** What `write` may be called with, at any server. */
const CONDITIONS = [{ tools: ['*.write'], arguments: { 'opts.mode': 'soft' }, paths: { path: 'src/*' } }];
type Arguments = Record<string, unknown>;

/** Everything that a server could take for the value of this argument, whatever the case of its name. */
const valuesOf = (args: unknown, name: string): unknown[] =>
  [args].flat().flatMap((one) =>
    Object.entries((one ?? {}) as Arguments)
      .filter(([key]) => key.toLowerCase() === name)
      .flatMap(([, value]) => value),
  );
const modesOf = (args: Arguments) => [...valuesOf(valuesOf(args, 'opts'), 'mode'), ...valuesOf(args, 'opts.mode')];

/** Expressions for `drop` and `read_all`, and when a call may reach a server. */
const EXPRESSIONS: readonly (readonly [string, (agent: string, args: Arguments) => boolean])[] = [
  ['true', () => true],
  ['agent.like("ci-*") || agent == "alice"', (agent) => agent === 'ci-1' || agent === 'alice'],
  ['has(args.opts) && args.opts.mode == "soft"', (_, args) => [...new Set(modesOf(args))].join() === 'soft'],
  ['!has(args.opts) || args.opts.mode == "soft"', (_, args) => !modesOf(args).includes('hard')],
  ['!has(args.path) || args.path != "/etc"', (_, args) => !valuesOf(args, 'path').includes('/etc')],
  [
    'args.all(key, key != "path") || agent != "bob"',
    (agent, args) => agent !== 'bob' || valuesOf(args, 'path').length === 0,
  ],
];
const EXPRESSED = ['drop', 'read_all'];

const conditionsOf = (when: string) => ({
  conditions: [...CONDITIONS, { tools: EXPRESSED.map((name) => `*.${name}`), when }],
});
// The spellings

const escaped = (char: string) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`;
const spelledText = (text: string, random: Random) =>
  `"${[...JSON.stringify(text).slice(1, -1)].map((char) => (/\w/.test(char) && !text.includes('\\') && random.chance(0.05) ? escaped(char) : char)).join('')}"`;
const space = (random: Random) => (random.chance(0.1) ? random.pick([' ', '\t', '\r\n', '  ']) : '');

/** JSON in a random spelling, sometimes with a key twice, of which one has the value from `other`. */
function spelled(value: unknown, other: unknown, random: Random): string {
  if (typeof value === 'string') return spelledText(value, random);
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map((one) => spelled(one, one, random)).join()}]`;
  const others = (typeof other === 'object' ? other : {}) as Record<string, unknown>;
  const members = Object.entries(value).flatMap(([key, one]) => {
    const print = (what: unknown) =>
      `${space(random)}${spelledText(key, random)}${space(random)}:${space(random)}${spelled(what, others[key] ?? what, random)}`;
    if (!random.chance(0.06)) return [print(one)];
    return random.chance(0.5) ? [print(one), print(others[key] ?? one)] : [print(others[key] ?? one), print(one)];
  });
  return `{${random.chance(0.2) ? random.shuffle(members).join() : members.join()}${space(random)}}`;
}

function spelledUri(uri: string, random: Random): string {
  if (random.chance(0.4)) return uri;
  const [scheme = '', rest = ''] = uri.split('://');
  const percent = (char: string) => `%${char.charCodeAt(0).toString(16)}`;
  const ways = [
    () => `${scheme}://${[...rest].map((char) => (random.chance(0.5) ? percent(char) : char)).join('')}`,
    () => `${scheme}://${[...rest].map((char) => percent(char).replace('%', '%25')).join('')}`,
    () => `${scheme}://./${rest}`,
    () => `${scheme}://x/../${rest}`,
    () => `${scheme}:///${rest}`,
    () => `${uri}?`,
    () => `${uri}?a=b`,
    () => `${uri}#`,
    () => `${uri}#part`,
    () => `${uri}/`,
    () => `${uri}/.`,
    () => `${scheme}://x%2F..%2F${rest}`,
    () => `${scheme.toUpperCase()}://${rest}`,
  ];
  return random.pick(ways)();
}

const spelledName = (server: string, name: string, random: Random) =>
  random.pick([
    `${server}_${name}`,
    `${server}_${name}`,
    `${server}:${name}`,
    `${server}.${name}`,
    `${server}+${name}`,
    name,
  ]);

function randomArguments(random: Random): object {
  const mode = random.pick(['soft', 'hard']);
  const path = random.pick(['src/a', './src/b/', 'src/../etc', '/etc', 'src//x/./y', ['src/a', 'etc']]);
  return random.pick<object>([
    {},
    { path, opts: { mode } },
    { path, 'opts.mode': 'soft', opts: { mode } },
    { path, opts: [{ mode }] },
    { path: 'src/a', Path: path, opts: { mode: 'soft', MODE: mode } },
    { PATH: path, Opts: { mode } },
  ]);
}

/** A request for a random item, and what a key that is there twice may say instead. */
function randomRequest(random: Random): readonly [string, object, object] {
  const server = random.pick(SERVERS);
  const named = (kind: 'tool' | 'prompt') => ({ name: spelledName(server, random.pick(NAMES[kind]), random) });
  const uri = () => {
    const own = spelledUri(random.pick([...NAMES.resource, ...DENIED, ...DENIED, 'memo://1']), random);
    return { uri: spelledName(server, own, random) };
  };
  const argument = { name: 'topic', value: 'x' };
  switch (random.number(6)) {
    case 0:
    case 1:
      return [
        'tools/call',
        { ...named('tool'), arguments: randomArguments(random) },
        { ...named('tool'), arguments: randomArguments(random) },
      ];
    case 2:
      return ['prompts/get', { ...named('prompt'), arguments: {} }, named('prompt')];
    case 3:
      return ['resources/subscribe', uri(), uri()];
    case 4: {
      const ref = () =>
        random.chance(0.5)
          ? { type: 'ref/prompt', ...named('prompt') }
          : {
              type: 'ref/resource',
              ...random.pick([uri(), { uri: spelledName(server, random.pick(NAMES.template), random) }]),
            };
      return ['completion/complete', { ref: ref(), argument }, { ref: ref(), argument }];
    }
    default:
      return ['resources/read', uri(), uri()];
  }
}

// What a server got, and the oracle

interface Got {
  readonly server: string;
  readonly method: string;
  readonly params: Record<string, unknown>;
}

/** Reads what the servers of a gateway have got since the last time. */
function watchLogs(folder: string): () => Got[] {
  const seen = new Map<string, number>();
  return () =>
    SERVERS.flatMap((server) => {
      const log = logOf(folder, server);
      // A server that is still starting has got nothing.
      const text = existsSync(log) ? readFileSync(log, 'utf8') : '';
      const lines = text.slice(seen.get(server) ?? 0).trim();
      seen.set(server, text.length);
      return lines === ''
        ? []
        : lines.split('\n').map((line) => ({ server, params: {}, ...(JSON.parse(line) as object) }) as Got);
    });
}

const logOf = (folder: string, server: string) => join(folder, `${server}.log`);

/** What a lax server takes the URI for. */
function laxUri(uri: string): string {
  let text = uri;
  for (let i = 0; i < 3; i++) text = decodeURIComponent(text.replace(/%(?![0-9a-f]{2})/gi, '%25'));
  const [scheme = '', rest = ''] = text.replace(/[?#].*$/s, '').split('://');
  return `${scheme.toLowerCase()}://${posix.normalize(rest).replace(/^\/+|\/+$/g, '')}`;
}

function mayRead(policy: RandomPolicy, agent: string, server: string, uri: string): boolean {
  const meant = laxUri(uri);
  if ((NAMES.resource as readonly string[]).includes(meant)) {
    // Through a template, an item that is listed under that name counts.
    return naivelyAllowed(policy, agent, server, 'resource', meant);
  }
  return naivelyReadable(policy, agent, server, meant);
}

function meetsCondition(args: Record<string, unknown>): boolean {
  const paths = [args.path].flat();
  const modes = [args.opts].flat().map((one) => (one as { mode?: unknown } | undefined)?.mode);
  const isInside = (path: unknown) => typeof path === 'string' && posix.normalize(path).startsWith('src/');
  // A server without nested options reads the key with a dot.
  const isSoft = args.opts === undefined ? args['opts.mode'] === 'soft' : modes.every((mode) => mode === 'soft');
  return paths.length > 0 && paths.every(isInside) && isSoft;
}

function isDue(
  policy: RandomPolicy,
  agent: string,
  { server, method, params }: Got,
  holds: (agent: string, args: Arguments) => boolean,
): boolean {
  const {
    name,
    uri,
    ref,
    arguments: args,
  } = params as {
    name: string;
    uri: string;
    ref?: { type: string; name: string; uri: string };
    arguments?: Record<string, unknown>;
  };
  switch (method) {
    case 'tools/call':
      if (EXPRESSED.includes(name) && !holds(agent, args ?? {})) return false;
      return naivelyAllowed(policy, agent, server, 'tool', name) && (name !== 'write' || meetsCondition(args ?? {}));
    case 'prompts/get':
      return naivelyAllowed(policy, agent, server, 'prompt', name);
    case 'resources/read':
    case 'resources/subscribe':
      return mayRead(policy, agent, server, uri);
    case 'completion/complete':
      if (ref!.type === 'ref/prompt') return naivelyAllowed(policy, agent, server, 'prompt', ref!.name);
      if (ref!.uri.includes('{')) return naivelyAllowed(policy, agent, server, 'template', ref!.uri);
      return mayRead(policy, agent, server, ref!.uri);
    default:
      return true;
  }
}

/** The policy with a URI denied by name, which a template makes. Not all policies have one, and it is the hard case. */
const withDenied = (policy: RandomPolicy, random: Random): RandomPolicy => {
  const before = policy.denied_resources ?? {};
  const server = random.pick([...SERVERS, '*']);
  return { ...policy, denied_resources: { ...before, [server]: [...(before[server] ?? []), random.pick(DENIED)] } };
};

/** A gateway with these doors, and what holds for them: for so many policies, nothing reaches a server that is denied. */
export function useSpelledRequests(
  doors: readonly Door[],
  config: object = {},
): { reachOnlyWhatIsAllowed(policies: number): Promise<void> } {
  const folder = tempFolder();
  const received = watchLogs(folder);
  const policed = usePolicedGateway({
    doors,
    flags: (name) => ['--whole', '--log', logOf(folder, name)],
    config: { ...config, ...conditionsOf('true') },
  });

  async function askOne(door: Door, agent: string, random: Random): Promise<readonly [string, readonly Got[]]> {
    const [method, params, other] = randomRequest(random);
    if (!isOffered(door, method)) return ['', []];
    const text = spelled(params, other, random);
    const ask = policed.ask(door, agent);
    await ask(method, text);
    const got = received().filter((one) => one.method === method);
    // It would be resumed under a later policy.
    if (method === 'resources/subscribe') await ask('resources/unsubscribe', text);
    return [`${method} ${text}`, got];
  }

  return {
    async reachOnlyWhatIsAllowed(policies) {
      let reached = 0;
      await fc.assert(
        fc.asyncProperty(randomPolicy, fc.nat(), async (written, seed) => {
          const random = createRandom(seed);
          const policy = withDenied(written, random);
          const [when, holds] = random.pick(EXPRESSIONS);
          policed.apply(policy, conditionsOf(when));
          received();
          for (let i = 0; i < REQUESTS; i++) {
            const door = random.pick(doors);
            const agent = random.pick(AGENTS);
            const [text, got] = await askOne(door, agent, random);
            reached += got.length;
            for (const one of got)
              expect(
                isDue(policy, agent, one, holds),
                `${door} ${agent}: ${text} reached ${JSON.stringify(one)} in spite of ${when}`,
              ).toBe(true);
          }
        }),
        { numRuns: policies },
      );
      // Otherwise the comparison says little.
      expect(reached).toBeGreaterThan(policies / 2);
    },
  };
}
