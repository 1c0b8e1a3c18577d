/** Under which token a server tells of progress. Ours are numbers; some servers give them back as strings. */
import { decodeString, findMember, type Span } from './json.ts';
import type { Message } from './message.ts';

export interface ProgressToken extends Span {
  readonly token: number;
}

const LONGEST = 20;

/** The token and where it stands; null where it cannot be one of ours. */
export function readProgress({ bytes, paramsStart, paramsEnd }: Message): ProgressToken | null {
  const member = paramsStart < 0 ? null : findMember(bytes, 'progressToken', paramsStart, paramsEnd);
  if (member === null || member.end - member.start > LONGEST) return null;
  const { start, end } = member;
  const text = bytes[start] === 0x22 ? decodeString(bytes, start, end) : bytes.toString('latin1', start, end);
  return { start, end, token: Number(text) };
}
