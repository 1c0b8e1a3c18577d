/** The operator's side of approvals: reads the open requests, and decides on one. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { GatewayError } from '../base/errors.ts';
import { createFile } from '../base/files.ts';
import { sha256 } from '../base/hash.ts';
import { printJson } from '../base/json-file.ts';
import { quotedList } from '../base/text.ts';
import {
  type ApprovalRequest,
  approvalsFolder,
  decisionFile,
  endedText,
  isEnded,
  readOpenRequest,
  removeApproval,
  requestFile,
  signedParts,
  type Verdict,
} from './approval-files.ts';
import { sign } from './operator.ts';

/** The open requests of running gateways, oldest first. */
export async function readApprovalRequests(dataDir: string): Promise<ApprovalRequest[]> {
  const folder = approvalsFolder(dataDir);
  const requests: ApprovalRequest[] = [];
  for (const name of await readdir(folder).catch(() => [])) {
    const file = name.endsWith('.json') ? await readOpenRequest(join(folder, name)) : null;
    if (file === null) continue;
    const { gateway: _, ...request } = file;
    requests.push(request);
  }
  return requests.sort((a, b) => a.asked.localeCompare(b.asked));
}

const TRIES = 40;
const PAUSE = 100;

/**
 * Resolves when the gateway has taken the decision, with the number of people who still have to approve. Throws if the
 * request is not open, or someone else has decided.
 */
export async function decideApproval(dataDir: string, id: string, key: string, verdict: Verdict): Promise<number> {
  const folder = approvalsFolder(dataDir);
  const file = requestFile(folder, id);
  if (await isEnded(folder, id)) throw new GatewayError('usage', endedText(id));
  const text = /^[0-9a-f]+$/.test(id) ? await contentOf(file) : null;
  const request = text === null ? null : await readOpenRequest(file);
  if (text === null || request === null)
    throw new GatewayError('usage', `No open request has the id ${JSON.stringify(id)}. It may have ended already.`);
  if (verdict.approved && !request.approvers.includes('operator'))
    throw new GatewayError(
      'usage',
      `Only ${quotedList(request.approvers)} may approve ${id}, with a key of their own.`,
    );
  const signature = sign(key, signedParts(id, sha256(text), verdict));
  const decision = decisionFile(folder, id);
  if (!(await createFile(decision, printJson({ ...verdict, signature }))))
    throw new GatewayError('usage', `Somebody else has just decided on ${id}.`);
  for (let tries = 0; tries < TRIES; tries++) {
    if ((await contentOf(file)) === null) return 0;
    if ((await contentOf(decision)) === null && (await contentOf(file)) !== null) {
      const now = await readOpenRequest(file);
      if (now?.approved.includes('operator') === true) return now.require - now.approved.length;
      throw new GatewayError(
        'usage',
        `The gateway rejected the decision on ${id}: it has another operator key, or the request file was changed.`,
      );
    }
    await sleep(PAUSE);
  }
  await removeApproval(folder, id);
  throw new GatewayError(
    'usage',
    `The gateway did not take the decision on ${id} in time: it has ended, or is busy. Try again.`,
  );
}

function contentOf(file: string): Promise<string | null> {
  return readFile(file, 'utf8').catch(() => null);
}
