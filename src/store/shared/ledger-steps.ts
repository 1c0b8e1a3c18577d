/**
 * The steps of calls in the ledger. Most of what a gateway asks of a store are the two steps of each call, so they travel
 * together: crossing to an engine costs far more than what crosses. A step is a line of text, and bytes if it has some:
 *   a[b] OWNER SESSION STREAM DIGEST              admits a call
 *   e[b] OWNER SESSION STREAM EPOCH NUMBER KEEP   writes an event; KEEP is 0 unless it is the last
 * `b` is there if it has bytes, else `-`. The reply has a line for each.
 */
import type { Admission, SharedStore, Written } from './shared-store.ts';

type Steps = Pick<SharedStore, 'admit' | 'append'>;

/** How many steps cross at once, and about how many bytes. */
const MOST_STEPS = 64;
const MOST_BYTES = 1_000_000;
/** Milliseconds for which a step that can wait lets others come to go with it. */
const LINGER = 4;

/** A step that waits to be sent. */
interface LedgerStep {
  readonly line: string;
  readonly bytes: Buffer;
  resolve(reply: string): void;
  reject(error: Error): void;
}

/** `send` carries steps to the engine, and resolves to its reply. */
export function createLedgerSteps(send: (lines: string, bytes: readonly Buffer[]) => Promise<string>): Steps {
  let waiting: LedgerStep[] = [];
  let waitingBytes = 0;
  /** How often steps have crossed that have no reply yet. */
  let underWay = 0;
  /** Whether one waits that somebody waits for. */
  let isDue = false;
  let lingering: NodeJS.Timeout | null = null;

  function step(kind: 'a' | 'e', line: string, bytes: Buffer, canWait: boolean): Promise<string> {
    return new Promise((resolve, reject) => {
      waiting.push({ line: `${kind}${bytes.length > 0 ? 'b' : '-'} ${line}`, bytes, resolve, reject });
      waitingBytes += bytes.length;
      // A long one would hold up the others.
      if (waiting.length >= MOST_STEPS || waitingBytes >= MOST_BYTES) sendAll();
      else if (!canWait) makeDue();
      else lingering ??= setTimeout(lingered, LINGER);
    });
  }

  function makeDue(): void {
    if (isDue) return;
    isDue = true;
    if (underWay === 0) setImmediate(sendNext);
  }

  function lingered(): void {
    lingering = null;
    if (waiting.length > 0) makeDue();
  }

  /** While some are under way, others gather: the busier the gateway, the more go together. */
  function sendNext(): void {
    if (underWay === 0) sendAll();
  }

  function sendAll(): void {
    const sent = waiting;
    if (sent.length === 0) return;
    waiting = [];
    waitingBytes = 0;
    isDue = false;
    underWay++;
    const withBytes = sent.filter(({ bytes }) => bytes.length > 0).map(({ bytes }) => bytes);
    send(sent.map(({ line }) => line).join('\n'), withBytes).then(
      (reply) => {
        for (const [i, one] of reply.split('\n').entries()) {
          if (one === 'failed') sent[i]!.reject(new Error('the store refused a step of a call'));
          else sent[i]!.resolve(one);
        }
        ended();
      },
      (error: Error) => {
        for (const { reject } of sent) reject(error);
        ended();
      },
    );
  }

  function ended(): void {
    underWay--;
    if (isDue) setImmediate(sendNext);
  }

  return {
    async admit({ owner, session, stream, digest, bytes }): Promise<Admission> {
      return (await step('a', `${owner} ${session} ${stream} ${digest}`, bytes, false)) as Admission;
    },
    async append({ session, stream }, owner, { epoch, number, bytes, isLast }, keep, canWait): Promise<Written> {
      const line = `${owner} ${session} ${stream} ${epoch} ${number} ${isLast ? keep : 0}`;
      const [state, reader = ''] = (await step('e', line, bytes, canWait === true)).split(' ');
      return { state: state as Written['state'], reader: reader === '' || reader === owner ? null : reader };
    },
  };
}

const NOTHING = Buffer.alloc(0);

/** Carries steps out, one after the other. */
export async function runLedgerSteps(store: Steps, lines: string, bytes: readonly Buffer[]): Promise<string> {
  const replies: string[] = [];
  let next = 0;
  for (const line of lines.split('\n')) {
    const [kind = '', owner = '', session = '', stream = '', first = '', second = '', third = ''] = line.split(' ');
    const own = kind[1] === 'b' ? bytes[next++]! : NOTHING;
    if (kind[0] === 'a') replies.push(await store.admit({ owner, session, stream, digest: first, bytes: own }));
    else {
      const keep = Number(third);
      const event = { epoch: Number(first), number: Number(second), bytes: own, isLast: keep > 0 };
      const { state, reader } = await store.append({ session, stream }, owner, event, keep);
      replies.push(`${state} ${reader ?? ''}`);
    }
  }
  return replies.join('\n');
}
