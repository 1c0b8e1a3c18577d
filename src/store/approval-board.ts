/** The gateway's side of approvals: writes requests as files, and takes the decisions that people put next to them. */
import { readdir, rm } from 'node:fs/promises';
import { messageOf } from '../base/errors.ts';
import { replaceFile } from '../base/files.ts';
import { sha256 } from '../base/hash.ts';
import { printJson } from '../base/json-file.ts';
import {
  type ApprovalRequest,
  approvalsFolder,
  DECISION,
  DECISION_KEPT,
  decisionFile,
  markEnded,
  readVerdict,
  removeAbandoned,
  removeApproval,
  requestFile,
  signedParts,
  type Verdict,
} from './approval-files.ts';
import { isSigned } from './operator.ts';

export interface ApprovalBoard {
  publish(request: ApprovalRequest): void;
  /** Others still have to approve it. */
  update(request: ApprovalRequest): void;
  retract(id: string): void;
  /** The gateway ends before anybody has decided. The file stays, so that a person who still decides learns why it is over. */
  leave(id: string): void;
  close(): Promise<void>;
}

export interface BoardEvents {
  decided(id: string, verdict: Verdict): void;
  note(message: string): void;
}

/** How often the folder is read while requests are open. */
const POLL = 250;
/** In place of the id of a request: the work of reading the folder. */
const READING = '';

/** `key` returns the operator's key, and creates one if there is none yet. */
export function openApprovalBoard(dataDir: string, key: () => Promise<string>, events: BoardEvents): ApprovalBoard {
  const folder = approvalsFolder(dataDir);
  /** From the id of an open request to the text of its file. */
  const open = new Map<string, string>();
  /** Requests that were decided a moment ago. */
  const decided = new Set<string>();
  let operatorKey: Promise<string> | null = null;
  let isSwept = false;
  let timer: NodeJS.Timeout | undefined;
  let last = Promise.resolve();
  let isClosed = false;

  /** Called before a request is written, so that the key exists for the person who decides. */
  function ownKey(): Promise<string> {
    operatorKey ??= key().catch((error: unknown) => {
      operatorKey = null;
      throw error;
    });
    return operatorKey;
  }

  /** The last work for each request that failed, as on a full disk. It is tried again with every poll. */
  const failed = new Map<string, () => Promise<void>>();

  function queue(id: string, work: () => Promise<void>): void {
    const fail = (error: unknown) => {
      if (!failed.has(id)) events.note(`approvals in ${folder}: ${messageOf(error)}`);
      failed.set(id, work);
      if (!isClosed) schedulePoll();
    };
    last = last.then(work).then(() => void failed.delete(id), fail);
  }

  function poll(): void {
    for (const [id, work] of failed) if (id !== READING) queue(id, work);
    queue(READING, async () => {
      for (const name of await readdir(folder)) {
        const id = name.endsWith(DECISION) ? name.slice(0, -DECISION.length) : '';
        const text = open.get(id);
        if (text !== undefined) await takeDecision(id, text);
      }
    });
    schedulePoll();
  }

  function schedulePoll(): void {
    clearTimeout(timer);
    if (open.size + failed.size > 0) timer = setTimeout(poll, POLL).unref();
  }

  async function takeDecision(id: string, text: string): Promise<void> {
    const file = decisionFile(folder, id);
    const verdict = await readVerdict(file);
    if (verdict !== null && isSigned(await ownKey(), signedParts(id, sha256(text), verdict), verdict.signature)) {
      decided.add(id);
      events.decided(id, verdict);
      const next = open.get(id);
      if (next === undefined) {
        setTimeout(forget, DECISION_KEPT, id).unref();
        return;
      }
      // Others still have to approve it. The request is written first: it tells this person that theirs has counted.
      decided.delete(id);
      await replaceFile(requestFile(folder, id), next);
      await rm(file, { force: true });
      return;
    }
    await rm(file, { force: true });
    events.note(`a decision on ${id} was ignored: it is not signed with the operator's key`);
  }

  function forget(id: string): void {
    if (decided.delete(id)) queue(id, () => removeApproval(folder, id));
  }

  function write(request: ApprovalRequest): void {
    const { id } = request;
    open.set(id, printJson({ ...request, gateway: process.pid }));
    queue(id, async () => {
      await ownKey();
      if (!isSwept) await removeAbandoned(folder);
      isSwept = true;
      const text = open.get(id);
      if (text !== undefined) await replaceFile(requestFile(folder, id), text);
    });
  }

  return {
    update: write,
    publish(request) {
      write(request);
      schedulePoll();
    },
    retract(id) {
      open.delete(id);
      // The decision stays for a moment, so that a second person finds it.
      queue(id, () => (decided.has(id) ? rm(requestFile(folder, id), { force: true }) : removeApproval(folder, id)));
    },
    leave(id) {
      if (open.delete(id)) queue(id, () => markEnded(folder, id));
    },
    async close() {
      isClosed = true;
      clearTimeout(timer);
      for (const id of [...open.keys(), ...decided]) queue(id, () => removeApproval(folder, id));
      open.clear();
      decided.clear();
      await last;
    },
  };
}
