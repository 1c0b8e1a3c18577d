/** `/admin/approvals`: the calls that wait for a person, and the decision on one. For the operator, and for people with a key of their own. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { GatewayError } from '../../../base/errors.ts';
import { toObject } from '../../../base/objects.ts';
import type { Gateway } from '../../../gateway/gateway.ts';
import { OPERATOR } from '../../../store/agents.ts';
import { approvalsFolder, endedText, isEnded, type Verdict } from '../../../store/approval-files.ts';
import { pathOf } from '../path.ts';
import { readJson } from '../wire/body.ts';
import { requireJson } from '../wire/content-types.ts';
import { sendJson } from '../wire/reply.ts';

export const APPROVALS_PATH = '/admin/approvals';
const MOST_BYTES = 16_384;
const LONGEST_GRANT = 7 * 24 * 3_600_000;

export function listApprovals({ approvals }: Gateway, response: ServerResponse, headers: readonly string[]): void {
  sendFresh(response, { approvals: approvals.list() }, headers);
}

export async function decideApproval(
  { approvals, config }: Gateway,
  request: IncomingMessage,
  response: ServerResponse,
  headers: readonly string[],
  person: string | null,
  visitor: string | null,
): Promise<void> {
  requireJson(request.headers);
  const id = pathOf(request.url ?? '').slice(APPROVALS_PATH.length + 1);
  const read = readVerdict(await readJson(request, MOST_BYTES, config.limits.depth));
  // Whose token it was is known, so nobody can name somebody else.
  const verdict = visitor === null || visitor === OPERATOR ? read : { ...read, by: visitor };
  if (!approvals.decide(id, verdict, person)) {
    if (await isEnded(approvalsFolder(config.dataDir), id)) throw new GatewayError('path_unknown', endedText(id));
    throw new GatewayError(
      'path_unknown',
      `There is no approval request ${JSON.stringify(id)}, or it has already been decided.`,
    );
  }
  const open = approvals.list().find((one) => one.id === id);
  const more = open === undefined ? 0 : open.require - open.approved.length;
  sendFresh(response, { id, decision: verdict.approved ? 'approve' : 'deny', more }, headers);
}

function sendFresh(response: ServerResponse, value: object, headers: readonly string[]): void {
  sendJson(response, 200, value, [...headers, 'cache-control', 'no-store']);
}

function readVerdict(body: unknown): Verdict {
  const { decision, lasting_ms: lasting = null, reason = '', by = OPERATOR } = toObject(body);
  const isRight =
    (decision === 'approve' || decision === 'deny') &&
    (lasting === null || (typeof lasting === 'number' && lasting > 0 && lasting <= LONGEST_GRANT)) &&
    typeof reason === 'string' &&
    typeof by === 'string';
  if (!isRight)
    throw new GatewayError(
      'params_invalid',
      'Send {"decision": "approve"} or {"decision": "deny"}. You can add "reason", "by" and "lasting_ms" (at most 7 days).',
    );
  return { approved: decision === 'approve', by: by.slice(0, 100), lasting, reason: reason.slice(0, 1_000) };
}
