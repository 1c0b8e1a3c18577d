/**
 * Answers of several calls that are sealed together: to seal one by itself, and to collect what that leaves behind, costs
 * about as much as the rest of what a call does with the store. They are text, a line for each with the call and the length
 * of its answer, then an empty line and the answers. So an answer counts only for the call for which it was sealed.
 */
import { join } from '../../protocol/parts.ts';
import { type Reply, replyLength, replyText } from '../../protocol/rpc.ts';
import type { LedgerKey } from './shared-store.ts';

export interface LateAnswer extends LedgerKey {
  readonly reply: Reply;
}

const END = '\n\n';

export const answersAt = (batch: string) => `answers:${batch}`;

export function joinAnswers(answers: readonly LateAnswer[]): Buffer {
  let lines = '';
  let texts: string | null = '';
  for (const { session, stream, reply } of answers) {
    lines += `${lines === '' ? '' : '\n'}${session} ${stream} ${replyLength(reply)}`;
    const text: string | null = texts === null ? null : replyText(reply);
    texts = text === null ? null : texts + text;
  }
  const head = `${lines}${END}`;
  // Nearly always all are short.
  if (texts !== null) return Buffer.from(head + texts, 'latin1');
  return Buffer.concat([Buffer.from(head, 'latin1'), ...answers.map(({ reply }) => bytesOf(reply))]);
}

export function bytesOf({ head, body, tail }: Reply): Buffer {
  return Buffer.concat([Buffer.from(head, 'latin1'), join(body), Buffer.from(tail, 'latin1')]);
}

/** Null if there is none for this call. */
export function answerIn(joined: Buffer, { session, stream }: LedgerKey): Buffer | null {
  const end = joined.indexOf(END);
  if (end < 0) return null;
  let from = end + END.length;
  for (const line of joined.toString('latin1', 0, end).split('\n')) {
    const [whose, which, length] = line.split(' ');
    const to = from + Number(length);
    if (whose === session && which === stream) return joined.subarray(from, to);
    from = to;
  }
  return null;
}
