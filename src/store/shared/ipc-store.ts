/** The engine of `--processes`: the first process keeps it in memory, and the others ask it over their channel. */
import { randomBytes } from 'node:crypto';
import { createLedgerSteps, runLedgerSteps } from './ledger-steps.ts';
import { createMemoryStore } from './memory-store.ts';
import type { SharedStore, StoreReader } from './shared-store.ts';

/** A process at the other end of a channel. */
export interface Channeled {
  send?(message: unknown): unknown;
  on(event: 'message', listener: (message: unknown) => void): unknown;
  disconnect?(): void;
}

/** Steps of calls cross together, as `steps`. */
type Method = Exclude<keyof SharedStore, 'isUp' | 'follow' | 'close' | 'admit' | 'append' | 'answerLate'>;

const METHODS: readonly Method[] = [
  'beat',
  'replicas',
  'retire',
  'claim',
  'owned',
  'publish',
  'send',
  'setEntry',
  'entries',
  'openSession',
  'session',
  'setSession',
  'endSession',
  'hold',
  'tell',
  'take',
  'ownerOf',
  'events',
  'spend',
  'keepResult',
  'findResult',
];

interface StoreRequest {
  readonly id: number;
  readonly method: string;
  readonly args: readonly unknown[];
}

/** Messages cross the channel together: each crossing costs more than what it carries. */
interface Batch<T> {
  readonly store: 'batch';
  readonly list: readonly T[];
}

/** What is given in one turn is sent at its end. */
function createBatches<T>(send: (batch: Batch<T>) => void): (message: T) => void {
  let list: T[] = [];
  return (message) => {
    if (list.push(message) > 1) return;
    setImmediate(() => {
      const batch = list;
      list = [];
      send({ store: 'batch', list: batch });
    });
  };
}

function inBatch<T>(message: unknown): readonly T[] {
  const { store, list } = message as Batch<T>;
  return store === 'batch' ? list : [];
}

interface StoreAnswer {
  readonly store: 'answer' | 'news' | 'received';
  readonly id?: number;
  readonly value?: unknown;
  readonly failure?: string;
}

/** Keeps the engine for processes that `serve` is called with. */
export function createStoreHost(): { serve(child: Channeled): { ended(): void } } {
  const store = createMemoryStore();
  /** Signs what clients are given, so nobody else may know it. */
  const key = randomBytes(32).toString('base64url');
  return {
    serve(child) {
      let replica: string | null = null;
      const send = createBatches<StoreAnswer>((batch) => {
        try {
          child.send?.(batch);
        } catch {
          // The process has ended.
        }
      });
      const reader: StoreReader = {
        news: (value) => send({ store: 'news', value }),
        received: (value) => send({ store: 'received', value }),
        returned() {},
      };
      const serve = ({ id, method, args }: StoreRequest) => {
        const work = async (): Promise<unknown> => {
          if (method === 'key') return key;
          if (method === 'follow') {
            replica = String(args[0]);
            return store.follow(replica, reader);
          }
          if (method === 'steps') {
            const [lines, bytes, sizes] = args as [string, Uint8Array, number[]];
            return runLedgerSteps(store, lines, cut(toBuffer(bytes) as Buffer, sizes));
          }
          if (!METHODS.includes(method as Method)) throw new Error(`unknown method ${method}`);
          return (store[method as Method] as (...given: unknown[]) => Promise<unknown>)(...args.map(toBuffer));
        };
        work().then(
          (value) => send({ store: 'answer', id, value }),
          (error: unknown) => send({ store: 'answer', id, failure: String(error) }),
        );
      };
      child.on('message', (message) => {
        for (const one of inBatch<StoreRequest>(message)) serve(one);
      });
      return {
        // Its heartbeat ends now, so that the others take over its calls at once.
        ended() {
          if (replica === null) return;
          store.unfollow(replica);
          void store.beat(replica, 0);
        },
      };
    },
  };
}

function cut(bytes: Buffer, sizes: readonly number[]): Buffer[] {
  let from = 0;
  return sizes.map((size) => {
    from += size;
    return bytes.subarray(from - size, from);
  });
}

/** Bytes cross the channel as plain arrays. */
function toBuffer(value: unknown): unknown {
  if (value instanceof Uint8Array) return Buffer.from(value.buffer, value.byteOffset, value.byteLength);
  if (value instanceof Map) return new Map([...value].map(([key, one]) => [key, toBuffer(one)]));
  if (Array.isArray(value)) return value.map(toBuffer);
  if (typeof value === 'object' && value !== null)
    return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, toBuffer(one)]));
  return value;
}

/** The engine that the process at the other end of the channel keeps. */
export function openIpcStore(parent: Channeled): SharedStore & { key(): Promise<string> } {
  const waiting = new Map<number, { resolve(value: unknown): void; reject(error: Error): void }>();
  let last = 0;
  let reader: StoreReader | null = null;
  const send = createBatches<StoreRequest>((batch) => parent.send?.(batch));
  const take = ({ store, id = 0, value, failure }: StoreAnswer) => {
    if (store === 'news') reader?.news(toBuffer(value) as Buffer);
    else if (store === 'received') reader?.received(toBuffer(value) as Buffer);
    else if (store === 'answer') {
      const one = waiting.get(id);
      waiting.delete(id);
      if (failure === undefined) one?.resolve(toBuffer(value));
      else one?.reject(new Error(failure));
    }
  };
  parent.on('message', (message) => {
    for (const one of inBatch<StoreAnswer>(message)) take(one);
  });
  const ask = (method: string, args: readonly unknown[]) =>
    new Promise<unknown>((resolve, reject) => {
      const id = ++last;
      waiting.set(id, { resolve, reject });
      send({ id, method, args });
    });
  const methods = Object.fromEntries(METHODS.map((method) => [method, (...args: unknown[]) => ask(method, args)]));
  return {
    ...(methods as unknown as Pick<SharedStore, Method>),
    ...createLedgerSteps(async (lines, bytes) => {
      const sizes = bytes.map(({ length }) => length);
      return String(await ask('steps', [lines, Buffer.concat(bytes), sizes]));
    }),
    isUp: true,
    key: async () => String(await ask('key', [])),
    async follow(replica, given) {
      reader = given;
      await ask('follow', [replica]);
    },
    // An open channel would keep the process alive.
    async close() {
      parent.disconnect?.();
    },
  };
}
