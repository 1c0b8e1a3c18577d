/** The key `store`: the engine that several replicas of one gateway share. */
import * as z from 'zod';
import { percentDecoded } from '../base/text.ts';
import type { ResolveContext } from './context.ts';
import { choice, duration, section, text, textList, toolList } from './fields.ts';

/** What replicas share, and where. */
export interface StoreConfig {
  /** The address with its password. A function, so that printing a configuration does not print it. */
  readonly url: () => string;
  /** The beginning of every key, so that two gateways can use one engine. */
  readonly prefix: string;
  /** What happens to limits while the engine cannot be reached. */
  readonly limits: 'local' | 'refuse';
  /** The tools whose calls are run again if their replica was killed. */
  readonly repeat: readonly string[];
  /** The servers whose hints `readOnlyHint` and `idempotentHint` count for that. */
  readonly trustHints: readonly string[];
  /** Files with former keys of the secrets, which still open what was sealed with them. */
  readonly formerKeys: readonly string[];
  /** Milliseconds for which a replica that is told to stop still takes requests, so that balancers notice. */
  readonly drainPause: number;
}

const USUAL_PAUSE = 3_000;

const storeShape = {
  url: text().describe(
    'Address of Redis or Valkey: `redis://host:6379`, or `rediss://user:password@host:6379` with TLS.',
  ),
  prefix: text()
    .regex(/^[\w.-]{1,64}$/, { error: 'expected at most 64 letters, digits, ".", "-" and "_"' })
    .prefault('toolgate')
    .describe('What every key begins with. Gateways that do not belong together need different ones.'),
  limits: choice(['local', 'refuse'])
    .prefault('local')
    .describe(
      'What happens to `rate` and `calls_per_day` while the store cannot be reached. `local`: each replica allows its part of ' +
        'them. `refuse`: calls that have such a limit are refused.',
    ),
  repeat: toolList()
    .prefault([])
    .describe(
      'Tools that are called again if the replica that called them was killed: names, patterns or categories. Calls of ' +
        'other tools end with "outcome unknown" then.',
    ),
  trust_hints: textList()
    .prefault([])
    .describe(
      'Servers, or patterns over them, whose hints count for `repeat`: their tools with `readOnlyHint` or `idempotentHint` are called again.',
    ),
  former_key_files: textList()
    .prefault([])
    .describe('Files with former keys of the secrets. What was sealed with them can still be opened.'),
  drain_pause: duration(0)
    .prefault('3s')
    .describe(
      'How long a replica that is told to stop still takes requests. `/ready` says at once that it is going, so that balancers ' +
        'notice in this time and send it nothing more.',
    ),
};

export const storeSchema = z.union([text(), section(storeShape)], { error: 'expected an address, or a map' });

type WrittenStore = z.output<typeof storeSchema>;

const PROTOCOLS = new Set(['redis:', 'rediss:']);

export function resolveStore(written: WrittenStore | null, context: ResolveContext): StoreConfig | null {
  if (written === null) return null;
  const isPlain = typeof written === 'string';
  const place = isPlain ? ['store'] : ['store', 'url'];
  const url = context.text(place, isPlain ? written : written.url);
  const isAddress = URL.canParse(url) && PROTOCOLS.has(new URL(url).protocol) && new URL(url).hostname !== '';
  if (!isAddress && !context.issues.some(({ path }) => path.join() === place.join()))
    context.add(place, 'is not an address such as "redis://host:6379" or "rediss://user:password@host:6379"');
  const defaults = { prefix: 'toolgate', limits: 'local', repeat: [], trustHints: [] } as const;
  if (isPlain) return { ...defaults, url: () => url, formerKeys: [], drainPause: USUAL_PAUSE };
  const { prefix, limits, repeat, trustHints, formerKeyFiles, drainPause } = written;
  const formerKeys = formerKeyFiles.map((file, i) => context.path(['store', 'former_key_files', i], file));
  return { url: () => url, prefix, limits, repeat, trustHints, formerKeys, drainPause };
}

/** The password in the address of a store; none if there is no store or no password. */
export function storeSecrets(store: StoreConfig | null): string[] {
  if (store === null || !URL.canParse(store.url())) return [];
  const { password } = new URL(store.url());
  return password === '' ? [] : [...new Set([password, percentDecoded(password) ?? password])];
}
