/**
 * What agents wait for, as files in the data folder, so that whoever has the operator's key can decide on it, whichever way
 * the gateway is spoken to. An agent may well be able to write there: a decision counts only with a signature, over the
 * very words that the person was shown.
 */
import { createHash } from 'node:crypto';
import { readdir, readFile, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { GatewayError, messageOf } from '../base/errors.ts';
import { createFile, replaceFile } from '../base/files.ts';
import { isSigned, sign } from './operator.ts';

/** What somebody waits for. */
export interface ApprovalRequest {
  readonly id: string;
  readonly kind: 'call' | 'access' | 'prompt';
  readonly agent: string;
  readonly tool: string;
  /** As JSON, cut where it is long, without secrets. */
  readonly arguments: string;
  /** The rule that wants an approval, or what the agent says it needs it for. */
  readonly reason: string;
  /** Times in the form of ISO 8601. */
  readonly asked: string;
  readonly expires: string;
}

/** A person's decision. */
export interface Verdict {
  readonly approved: boolean;
  readonly by: string;
  /** Milliseconds for which the same agent need not ask again for the same tool; null: for this time only. */
  readonly lasting: number | null;
  readonly reason: string;
}

export interface ApprovalBoard {
  publish(petition: ApprovalRequest): void;
  retract(id: string): void;
  close(): Promise<void>;
}

export interface BoardEvents {
  decided(id: string, decision: Verdict): void;
  note(message: string): void;
}

interface ApprovalFile extends ApprovalRequest {
  readonly gateway: number;
}

interface SignedVerdict extends Verdict {
  readonly signature: string;
}

const LOOK = 250;
const KEPT = 10_000;

export function openApprovalBoard(dataDir: string, key: () => Promise<string>, events: BoardEvents): ApprovalBoard {
  const folder = join(dataDir, 'approvals');
  /** By id, the hash of what was written. */
  const open = new Map<string, string>();
  /** Those that were decided a moment ago. */
  const taken = new Set<string>();
  let known: Promise<string> | null = null;
  let swept = false;
  let timer: NodeJS.Timeout | undefined;
  let last = Promise.resolve();

  /** Made where there is none, so that whoever is to decide has one. */
  function ownKey(): Promise<string> {
    known ??= key();
    return known;
  }

  function queue(work: () => Promise<void>): void {
    last = last.then(work).catch((error: unknown) => events.note(`approvals in ${folder}: ${messageOf(error)}`));
  }

  function look(): void {
    queue(async () => {
      for (const name of await readdir(folder)) {
        const id = name.endsWith('.decision') ? name.slice(0, -'.decision'.length) : '';
        const hash = open.get(id);
        if (hash !== undefined) await consider(id, hash, join(folder, name));
      }
    });
    plan();
  }

  function plan(): void {
    clearTimeout(timer);
    if (open.size > 0) timer = setTimeout(look, LOOK).unref();
  }

  function forget(id: string): void {
    if (taken.delete(id)) queue(() => remove(folder, id));
  }

  async function consider(id: string, hash: string, file: string): Promise<void> {
    const decision = await readVerdict(file);
    const isGood = decision !== null && isSigned(await ownKey(), saidOf(id, hash, decision), decision.signature);
    if (isGood) {
      // It stays for a moment after what it was about: whoever is second finds it there.
      taken.add(id);
      setTimeout(forget, KEPT, id).unref();
      events.decided(id, decision);
      return;
    }
    await rm(file, { force: true });
    events.note(`a decision on ${id} was not signed with the operator's key, and does not count`);
  }

  return {
    publish(petition) {
      const text = print({ ...petition, gateway: process.pid });
      open.set(petition.id, hashOf(text));
      queue(async () => {
        await ownKey();
        if (!swept) await sweep(folder);
        swept = true;
        if (open.has(petition.id)) await replaceFile(join(folder, `${petition.id}.json`), text);
      });
      plan();
    },
    retract(id) {
      open.delete(id);
      queue(() => (taken.has(id) ? rm(join(folder, `${id}.json`), { force: true }) : remove(folder, id)));
    },
    async close() {
      clearTimeout(timer);
      for (const id of [...open.keys(), ...taken]) queue(() => remove(folder, id));
      open.clear();
      taken.clear();
      await last;
    },
  };
}

/** What is waited for in running gateways, the oldest first. */
export async function readApprovalRequests(dataDir: string): Promise<ApprovalRequest[]> {
  const folder = join(dataDir, 'approvals');
  const found: ApprovalRequest[] = [];
  for (const name of await readdir(folder).catch(() => [])) {
    if (!name.endsWith('.json')) continue;
    const written = await readWritten(join(folder, name));
    if (written === null || !isAlive(written.gateway)) continue;
    const { gateway: _, ...petition } = written;
    found.push(petition);
  }
  return found.sort((a, b) => a.asked.localeCompare(b.asked));
}

/** Resolves when the gateway has taken the decision. Throws where nobody waits for it, or somebody decided before. */
export async function decide(dataDir: string, id: string, key: string, decision: Verdict): Promise<void> {
  const file = join(dataDir, 'approvals', `${id}.json`);
  const read = (path: string) => readFile(path, 'utf8').catch(() => null);
  const text = /^[0-9a-f]+$/.test(id) ? await read(file) : null;
  const written = text === null ? null : await readWritten(file);
  if (text === null || written === null || !isAlive(written.gateway))
    throw new GatewayError('usage', `Nobody waits for ${JSON.stringify(id)}, or no more.`);
  const signature = sign(key, saidOf(id, hashOf(text), decision));
  const answer = file.replace(/\.json$/, '.decision');
  if (!(await createFile(answer, print({ ...decision, signature }))))
    throw new GatewayError('usage', `Somebody else has just decided on ${id}.`);
  for (let tries = 0; tries < 40; tries++) {
    if ((await read(file)) === null) return;
    if ((await read(answer)) === null && (await read(file)) !== null)
      throw new GatewayError(
        'usage',
        `The gateway does not take the decision on ${id}: its operator key is another one, or somebody has changed the file in between.`,
      );
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  await remove(join(dataDir, 'approvals'), id);
  throw new GatewayError('usage', `The gateway that ${id} came from has not taken the decision: it is gone, or busy.`);
}

function saidOf(id: string, hash: string, { approved, by, lasting, reason }: Verdict): readonly unknown[] {
  return [id, hash, approved, by, lasting, reason];
}

async function readVerdict(file: string): Promise<SignedVerdict | null> {
  const { approved, by, lasting, reason, signature } = await readObject(file);
  const isRight =
    typeof approved === 'boolean' &&
    typeof by === 'string' &&
    typeof reason === 'string' &&
    typeof signature === 'string' &&
    (lasting === null || typeof lasting === 'number');
  return isRight ? { approved, by, lasting, reason, signature } : null;
}

async function readWritten(file: string): Promise<ApprovalFile | null> {
  const value = await readObject(file);
  const texts = ['id', 'kind', 'agent', 'tool', 'arguments', 'reason', 'asked', 'expires'];
  const isRight = texts.every((key) => typeof value[key] === 'string') && typeof value.gateway === 'number';
  return isRight ? (value as unknown as ApprovalFile) : null;
}

async function readObject(file: string): Promise<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(await readFile(file, 'utf8'));
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

/** What gateways left behind that were killed. */
async function sweep(folder: string): Promise<void> {
  for (const name of await readdir(folder).catch(() => [])) {
    const file = join(folder, name);
    const written = name.endsWith('.json') ? await readWritten(file) : null;
    if (written !== null && !isAlive(written.gateway)) await remove(folder, written.id);
    else if (name.endsWith('.decision') && (await ageOf(file)) > KEPT) await rm(file, { force: true });
  }
}

function ageOf(file: string): Promise<number> {
  return stat(file).then(
    ({ mtimeMs }) => Date.now() - mtimeMs,
    () => 0,
  );
}

async function remove(folder: string, id: string): Promise<void> {
  await rm(join(folder, `${id}.json`), { force: true });
  await rm(join(folder, `${id}.decision`), { force: true });
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

function print(value: object): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}
