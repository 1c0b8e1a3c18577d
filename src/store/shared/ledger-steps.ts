/**
 * The steps of calls in the ledger. Most of what a gateway asks of a store are the two steps of each call, so they travel
 * together: crossing to an engine costs far more than what crosses. A step is a line of text, and bytes if it has some:
 *   a[b] OWNER SESSION STREAM DIGEST [REQUEST]            admits a call
 *   e[b] OWNER SESSION STREAM EPOCH NUMBER KEEP [BATCH]   writes an event; KEEP is 0 unless it is the last
 *   pb BATCH KEEP                                         keeps answers that were sealed together; events name them
 * `b` is there if it has bytes, else `-`. The reply has a line for each.
 */
import { replyLength } from '../../protocol/rpc.ts';
import { answersAt, joinAnswers, type LateAnswer } from './answers.ts';
import type { Admission, LedgerKey, SharedStore, StoredEvent, Written } from './shared-store.ts';

type Steps = Pick<SharedStore, 'admit' | 'append' | 'answerLate'>;

/** How many steps cross at once, and about how many bytes. */
const MOST_STEPS = 64;
const MOST_BYTES = 1_000_000;
/** Milliseconds for which an answer that its client has waits for others to be sealed and sent with it. */
const LINGER = 4;

/** A step that waits to be sent. */
interface LedgerStep {
  readonly line: string;
  readonly bytes: Buffer;
  resolve(reply: string): void;
  reject(error: Error): void;
}

/** An answer that waits to be sealed. */
interface WaitingAnswer extends LateAnswer, Pick<LedgerStep, 'reject'> {
  readonly owner: string;
  readonly epoch: number;
  resolve(written: Written): void;
}

/** `send` carries steps to the engine, and resolves to its reply. */
export function createLedgerSteps(send: (lines: string, bytes: readonly Buffer[]) => Promise<string>): Steps {
  let waiting: LedgerStep[] = [];
  let waitingBytes = 0;
  /** How often steps have crossed that have no reply yet. */
  let underWay = 0;
  /** Whether steps wait that are to be sent as soon as others are back. */
  let isDue = false;
  let late: WaitingAnswer[] = [];
  let lateBytes = 0;
  let lastBatch = 0;

  function step(kind: 'a' | 'e', line: string, bytes: Buffer): Promise<string> {
    return new Promise((resolve, reject) => {
      waiting.push({ line: `${kind}${bytes.length > 0 ? 'b' : '-'} ${line}`, bytes, resolve, reject });
      waitingBytes += bytes.length;
      // A long one would hold up the others.
      if (waiting.length >= MOST_STEPS || waitingBytes >= MOST_BYTES) sendAll();
      else if (!isDue) {
        isDue = true;
        if (underWay === 0) setImmediate(sendNext);
      }
    });
  }

  /** Seals the answers that wait, and makes steps of them. */
  function sealLate(seal: (plain: Buffer, place: string) => Buffer, keep: number): void {
    if (late.length === 0) return;
    const answers = late;
    late = [];
    lateBytes = 0;
    const batch = `${answers[0]!.owner}-${++lastBatch}`;
    const bytes = seal(joinAnswers(answers), answersAt(batch));
    const failed = (error: Error) => {
      for (const { reject } of answers) reject(error);
    };
    // All go at once, because an event must not be parted from what it names.
    waiting.push({ line: `pb ${batch} ${keep}`, bytes, resolve() {}, reject: failed });
    for (const { owner, session, stream, epoch, resolve, reject } of answers) {
      const line = `e- ${owner} ${session} ${stream} ${epoch} 1 ${keep} ${batch}`;
      waiting.push({ line, bytes: NOTHING, resolve: (reply) => resolve(writtenOf(reply, owner)), reject });
    }
    sendAll();
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
    admit({ owner, session, stream, digest, bytes }) {
      const line = `${owner} ${session} ${stream} ${digest}`;
      const admitted = typeof bytes === 'string' ? step('a', `${line} ${bytes}`, NOTHING) : step('a', line, bytes);
      return admitted as Promise<Admission>;
    },
    async append({ session, stream }, owner, { epoch, number, bytes, isLast }, keep): Promise<Written> {
      const line = `${owner} ${session} ${stream} ${epoch} ${number} ${isLast ? keep : 0}`;
      return writtenOf(await step('e', line, bytes), owner);
    },
    answerLate({ session, stream }, owner, epoch, reply, keep, seal) {
      return new Promise((resolve, reject) => {
        late.push({ owner, session, stream, epoch, reply, resolve, reject });
        lateBytes += replyLength(reply);
        if (late.length >= MOST_STEPS || lateBytes >= MOST_BYTES) sealLate(seal, keep);
        else if (late.length === 1) setTimeout(sealLate, LINGER, seal, keep);
      });
    },
  };
}

function writtenOf(reply: string, owner: string): Written {
  const [state, reader = ''] = reply.split(' ');
  return { state: state as Written['state'], reader: reader === '' || reader === owner ? null : reader };
}

const NOTHING = Buffer.alloc(0);

/** Carries steps out, one after the other. */
export async function runLedgerSteps(
  store: Pick<SharedStore, 'admit' | 'append'>,
  lines: string,
  bytes: readonly Buffer[],
): Promise<string> {
  const replies: string[] = [];
  let next = 0;
  let answers: Buffer = NOTHING;
  for (const line of lines.split('\n')) {
    const [kind = '', owner = '', session = '', stream = '', first = '', second = '', third = '', batch] =
      line.split(' ');
    const own = kind[1] === 'b' ? bytes[next++]! : NOTHING;
    switch (kind[0]) {
      case 'a':
        replies.push(
          await store.admit({ owner, session, stream, digest: first, bytes: own.length > 0 ? own : second }),
        );
        break;
      case 'p':
        answers = own;
        replies.push('done');
        break;
      default: {
        const call: LedgerKey = { session, stream };
        const keep = Number(third);
        const position = { epoch: Number(first), number: Number(second), isLast: keep > 0 };
        const event: StoredEvent =
          batch === undefined ? { ...position, bytes: own } : { ...position, bytes: answers, batch };
        const { state, reader } = await store.append(call, owner, event, keep);
        replies.push(`${state} ${reader ?? ''}`);
      }
    }
  }
  return replies.join('\n');
}
