/**
 * A key that a message has twice. Servers take the last one, so nothing that the policy denies may be named by any of
 * them.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { configFromValue, type Gateway, openHttpDoor } from '../../src/index.ts';
import { readMessage, requireUniqueKeys } from '../../src/protocol/read.ts';
import { type Ask, DOORS, openAsk, TOOLS_ONLY } from '../support/asking.ts';
import { atEnd } from '../support/cleanup.ts';
import { createGateway } from '../support/in-process-gateway.ts';
import { serverEntry } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';

const cwd = tempFolder();
const LOG = join(cwd, 'store.log');
const flags = ['--name', 'store', '--whole', '--log', LOG, '--tools', 'open,secret', '--prompts', 'open,secret'];
const items = ['--resources', 'note://open,note://secret', '--templates', 'memo://{id}'];
const config = configFromValue(
  {
    mcpServers: { store: serverEntry('basic', ...flags, ...items) },
    http: { trust_agent_header: true },
    denied_tools: { store: ['secret'] },
    denied_resources: { store: ['note://secret', 'memo://secret'] },
    denied_prompts: { store: ['secret'] },
    conditions: [{ tools: ['store.open'], arguments: { path: 'open*', 'opts.mode': 'open' } }],
  },
  { cwd, env: {} },
);

let gateway: Gateway;
let origin: string;

beforeAll(async () => {
  gateway = createGateway(config);
  atEnd(() => gateway.close());
  const door = await openHttpDoor(gateway, { host: '127.0.0.1', port: 0, token: null });
  atEnd(() => door.close());
  origin = `http://127.0.0.1:${door.port}`;
  await gateway.tried();
});

/** What the server was asked for, as it reads it. */
const received = () =>
  readFileSync(LOG, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { method: string; params?: unknown });

/** An object that may have a key twice. */
type Tree = string | readonly (readonly [string, Tree])[];

const print = (tree: Tree): string =>
  typeof tree === 'string'
    ? JSON.stringify(tree)
    : `{${tree.map(([key, value]) => `${JSON.stringify(key)}:${print(value)}`).join(',')}}`;

const toTree = (value: unknown): Tree =>
  typeof value === 'string' ? value : Object.entries(value as object).map(([key, one]) => [key, toTree(one)] as const);

/** The same with what is denied in place of what is allowed. */
const toSecret = (tree: Tree): Tree =>
  typeof tree === 'string'
    ? tree.replace('open', 'secret')
    : tree.map(([key, value]) => [key, toSecret(value)] as const);

/** The tree with one member twice, at each level, before and after the good one, spelled in several ways. */
function* doubled(tree: Tree): Generator<{ readonly path: string; readonly tree: Tree }> {
  if (typeof tree === 'string') return;
  for (const [i, [key, value]] of tree.entries()) {
    for (const copy of [key, key.toUpperCase()]) {
      const bad = [copy, toSecret(value)] as const;
      yield { path: key, tree: [...tree.slice(0, i), bad, ...tree.slice(i)] };
      yield { path: key, tree: [...tree, bad] };
    }
    for (const inner of doubled(value))
      yield { path: `${key}.${inner.path}`, tree: tree.map((one, at) => (at === i ? [key, inner.tree] : one)) };
  }
}

const REQUESTS: readonly (readonly [string, object])[] = [
  [
    'tools/call',
    { name: 'store_open', arguments: { path: 'open.txt', opts: { mode: 'open' } }, _meta: { a: { b: 'open' } } },
  ],
  ['prompts/get', { name: 'store_open', arguments: { topic: 'open' } }],
  ['resources/read', { uri: 'store_note://open', other: { uri: 'open' } }],
  ['resources/subscribe', { uri: 'store_note://open' }],
  ['resources/unsubscribe', { uri: 'store_note://open' }],
  ['logging/setLevel', { level: 'info' }],
  [
    'completion/complete',
    { ref: { type: 'ref/prompt', name: 'store_open' }, argument: { name: 'topic', value: 'open' } },
  ],
  [
    'completion/complete',
    {
      ref: { type: 'ref/resource', uri: 'store_note://open' },
      argument: { name: 'id', value: 'x' },
      context: { arguments: { a: 'open' } },
    },
  ],
];

const OF_MODERN_ONLY = ['resources/subscribe', 'resources/unsubscribe', 'logging/setLevel'];

describe('a key twice', () => {
  it.each(DOORS.filter((door) => door !== 'local'))('at the door %s never leads to what is denied', async (door) => {
    const ask: Ask = await openAsk(door, gateway, origin, 'alice', { 'x-agent-id': 'alice' });
    let accepted = 0;
    for (const [method, params] of REQUESTS) {
      if (TOOLS_ONLY.includes(door) && method !== 'tools/call') continue;
      if (door.startsWith('modern') && OF_MODERN_ONLY.includes(method)) continue;
      // The envelope of a modern request is in `_meta`, of which a message has one.
      if (door.startsWith('modern')) delete (params as { _meta?: object })._meta;
      const plain = await ask(method, params);
      expect(plain.error, `${method} ${JSON.stringify(params)}`).toBeUndefined();
      for (const { path, tree } of doubled(toTree(params))) {
        if (door === 'rest' && !path.startsWith('arguments.')) continue;
        const { result, error } = await ask(method, print(tree));
        const isInside = path.startsWith('arguments.');
        if (error === undefined && result?.isError !== true) accepted++;
        // Exactly equal keys are an error of the message, apart from those of a call's arguments.
        if (!isInside && !print(tree).includes(path.split('.').at(-1)!.toUpperCase()))
          expect(error?.message, print(tree)).toMatch(/twice/);
      }
    }
    const wrong = received().filter(
      ({ method, params }) =>
        method !== 'initialize' && JSON.stringify(params ?? {}).includes('secret') && isNamed(params),
    );
    expect(wrong).toEqual([]);
    if (door !== 'rest')
      expect(accepted, 'duplicates in the arguments of a prompt are the server’s business').toBeGreaterThan(0);
  });

  it('is found in an object of many keys, of which there may be so many', () => {
    const many = Array.from({ length: 9_000 }, (_, i) => `"k${i}":${i}`).join();
    const check = (bytes: Buffer) => requireUniqueKeys(readMessage(bytes));
    const text = (params: string) =>
      Buffer.from(`{"jsonrpc":"2.0","id":1,"method":"completion/complete","params":${params}}`);
    check(text(`{${many}}`));
    expect(() => check(text(`{${many},"k5":1}`))).toThrow('"k5" twice');
    expect(() => check(text(`{${many},"x":{${many}},"y":{${many}}}`))).toThrow('keys outside of "arguments"');
    expect(() => check(text(`{${many},${many}}`))).toThrow('more than 10000 members');
  });
});

/** Whether a name, URI or condition says what is denied. */
function isNamed(params: unknown): boolean {
  const { name, uri, ref, arguments: args } = params as Record<string, Record<string, unknown> | string | undefined>;
  const { path, opts } = (typeof args === 'object' ? args : {}) as { path?: string; opts?: { mode?: string } };
  const inner = typeof ref === 'object' ? [ref.name, ref.uri] : [];
  return [name, uri, ...inner, path, opts?.mode].some((one) => String(one).includes('secret'));
}
