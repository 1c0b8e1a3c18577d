/**
 * Approval requests and decisions as files in the data folder, so that anyone with the operator's key can decide, no
 * matter which doors the gateway has. An agent may be able to write there too. Therefore a decision counts only with a
 * signature over exactly what the person was shown.
 */
import { readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { replaceFile } from '../base/files.ts';
import { jsonFile, printJson } from '../base/json-file.ts';
import { isAlive } from '../base/lock.ts';
import { toObject } from '../base/objects.ts';

/** What an agent waits for. */
export interface ApprovalRequest {
  readonly id: string;
  readonly kind: 'call' | 'access' | 'prompt';
  readonly agent: string;
  readonly tool: string;
  /** As JSON, whole, without secrets. Characters that a person could not see are escaped. */
  readonly arguments: string;
  /** The rule that demands approval, or what the agent says it needs access for. */
  readonly reason: string;
  /** As ISO 8601, like `expires`. */
  readonly asked: string;
  readonly expires: string;
  /** Who may approve it: names of people, `operator` for the operator key, `client` for the person at the client. */
  readonly approvers: readonly string[];
  /** How many different ones of them have to approve, and who has. */
  readonly require: number;
  readonly approved: readonly string[];
}

/** A person's decision. */
export interface Verdict {
  readonly approved: boolean;
  readonly by: string;
  /** For how many milliseconds the same agent need not ask again for the same tool; null for this call only. */
  readonly lasting: number | null;
  readonly reason: string;
}

/** A request in a file, with the process id of the gateway that holds it. */
export interface ApprovalFile extends ApprovalRequest {
  readonly gateway: number;
  /** Set when the gateway stopped before anybody decided. */
  readonly ended?: true;
}

export interface SignedVerdict extends Verdict {
  readonly signature: string;
}

export const DECISION = '.decision';
/** How long a decision stays after it was taken, so that a second person finds it. */
export const DECISION_KEPT = 10_000;

export function approvalsFolder(dataDir: string): string {
  return join(dataDir, 'approvals');
}

export function requestFile(folder: string, id: string): string {
  return join(folder, `${id}.json`);
}

export function decisionFile(folder: string, id: string): string {
  return join(folder, id + DECISION);
}

/** What the signature of a decision covers. */
export function signedParts(id: string, requestHash: string, verdict: Verdict): readonly unknown[] {
  const { approved, by, lasting, reason } = verdict;
  return [id, requestHash, approved, by, lasting, reason];
}

/** Null if there is no decision, or it cannot be understood. */
export function readVerdict(file: string): Promise<SignedVerdict | null> {
  return jsonFile(file, 'a decision', toVerdict)
    .read()
    .catch(() => null);
}

/** Null if there is no request, if it cannot be understood, or if its gateway has ended. */
export async function readOpenRequest(file: string): Promise<ApprovalFile | null> {
  const request = await readRequest(file);
  return request !== null && isOpen(request) ? request : null;
}

/** The time counts too: in a container, the next gateway has the process id of the last one. */
function isOpen({ gateway, ended, expires }: ApprovalFile): boolean {
  return ended !== true && isAlive(gateway) && !isPast(expires);
}

function isPast(time: string): boolean {
  return Date.parse(time) + DECISION_KEPT < Date.now();
}

/** Whether the gateway of this request stopped before anybody decided. */
export async function isEnded(folder: string, id: string): Promise<boolean> {
  const request = ID.test(id) ? await readRequest(requestFile(folder, id)) : null;
  return request !== null && !isOpen(request);
}

const ID = /^[0-9a-f]+$/;

export function endedText(id: string): string {
  return `The gateway was stopped or restarted while ${id} waited for a decision, so its call is over. The agent has to call again.`;
}

/** The request is no longer open, but its file stays for a while. */
export async function markEnded(folder: string, id: string): Promise<void> {
  const request = await readRequest(requestFile(folder, id));
  if (request !== null) await replaceFile(requestFile(folder, id), printJson({ ...request, ended: true }));
}

function readRequest(file: string): Promise<ApprovalFile | null> {
  return jsonFile(file, 'an approval request', toRequest)
    .read()
    .catch(() => null);
}

function toVerdict(value: unknown): SignedVerdict {
  const { approved, by, lasting, reason, signature } = toObject(value);
  const isValid =
    typeof approved === 'boolean' &&
    typeof by === 'string' &&
    typeof reason === 'string' &&
    typeof signature === 'string' &&
    (lasting === null || typeof lasting === 'number');
  if (!isValid) throw new Error('a field is missing or has the wrong type');
  return { approved, by, lasting, reason, signature };
}

const TEXTS = ['id', 'kind', 'agent', 'tool', 'arguments', 'reason', 'asked', 'expires'];

function toRequest(value: unknown): ApprovalFile {
  const fields = toObject(value);
  const isValid =
    TEXTS.every((key) => typeof fields[key] === 'string') &&
    typeof fields.gateway === 'number' &&
    typeof fields.require === 'number' &&
    [fields.approvers, fields.approved].every(Array.isArray);
  if (!isValid) throw new Error('a field is missing or has the wrong type');
  return fields as unknown as ApprovalFile;
}

/** Removes the files of gateways that have ended, once nobody can ask for them any more. */
export async function removeAbandoned(folder: string): Promise<void> {
  for (const name of await readdir(folder).catch(() => [])) {
    const file = join(folder, name);
    const request = name.endsWith('.json') ? await readRequest(file) : null;
    if (request !== null && !isOpen(request) && isPast(request.expires)) await removeApproval(folder, request.id);
    else if (name.endsWith(DECISION) && (await ageOf(file)) > DECISION_KEPT) await rm(file, { force: true });
  }
}

function ageOf(file: string): Promise<number> {
  return stat(file).then(
    ({ mtimeMs }) => Date.now() - mtimeMs,
    () => 0,
  );
}

export async function removeApproval(folder: string, id: string): Promise<void> {
  await rm(requestFile(folder, id), { force: true });
  await rm(decisionFile(folder, id), { force: true });
}
