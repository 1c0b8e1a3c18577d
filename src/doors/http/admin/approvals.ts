/** `/admin/approvals`: what waits for a person, and the decision on it. For whoever has the operator's key. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { GatewayError } from '../../../base/errors.ts';
import type { Gateway } from '../../../gateway/types.ts';
import { toBytes } from '../../../protocol/json.ts';
import type { Verdict } from '../../../store/approval-board.ts';
import { sendReply } from '../wire/reply.ts';

export const APPROVALS_PATH = '/admin/approvals';
const MOST_BODY = 16_384;
const MOST_DAYS = 7 * 24 * 3_600_000;

export function listApprovals(
  { approvals }: Gateway,
  _request: IncomingMessage,
  response: ServerResponse,
  headers: readonly string[],
): void {
  answer(response, { approvals: approvals.list() }, headers);
}

export async function decideApproval(
  { approvals }: Gateway,
  request: IncomingMessage,
  response: ServerResponse,
  headers: readonly string[],
): Promise<void> {
  const [path = ''] = (request.url ?? '').split('?');
  const id = path.slice(APPROVALS_PATH.length + 1);
  const decision = readVerdict(await readBody(request));
  if (!approvals.decide(id, decision))
    throw new GatewayError('path_unknown', `Nobody waits for ${JSON.stringify(id)}, or no more.`);
  answer(response, { id, decision: decision.approved ? 'approve' : 'deny' }, headers);
}

function answer(response: ServerResponse, value: object, headers: readonly string[]): void {
  sendReply(response, 200, { head: '', body: toBytes(value), tail: '' }, [...headers, 'cache-control', 'no-store']);
}

async function readBody(request: IncomingMessage): Promise<unknown> {
  if (!/^application\/json\b/i.test(request.headers['content-type'] ?? ''))
    throw new GatewayError('media_unsupported', 'The body has to be application/json.');
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > MOST_BODY) throw new GatewayError('too_large', `The body has more than ${MOST_BODY} bytes.`);
    chunks.push(chunk);
  }
  try {
    return JSON.parse(Buffer.concat(chunks).toString());
  } catch {
    throw new GatewayError('parse', 'The body is no JSON.');
  }
}

function readVerdict(body: unknown): Verdict {
  const given = typeof body === 'object' && body !== null ? (body as Record<string, unknown>) : {};
  const { decision, lasting_ms: lasting = null, reason = '', by = 'operator' } = given;
  const isRight =
    (decision === 'approve' || decision === 'deny') &&
    (lasting === null || (typeof lasting === 'number' && lasting > 0 && lasting <= MOST_DAYS)) &&
    typeof reason === 'string' &&
    typeof by === 'string';
  if (!isRight)
    throw new GatewayError(
      'params_invalid',
      'Send {"decision": "approve"} or {"decision": "deny"}, with "reason", "by" and "lasting_ms" (at most 7 days) if you like.',
    );
  return { approved: decision === 'approve', by: by.slice(0, 100), lasting, reason: reason.slice(0, 1_000) };
}
