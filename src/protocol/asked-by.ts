/**
 * Questions of servers say which server asks. Otherwise a server could print the text with which Toolgate asks for an
 * approval, or speak for another server. What is rewritten here is what the caller gets; the server's own bytes are kept
 * where they say nothing to a person.
 */
import { requiredUrls, urlSpans } from './elicitation.ts';
import {
  decodeString,
  type JsonMember,
  readLongMembers,
  readMembers,
  type Span,
  splice,
  toBytes,
  writeObject,
} from './json.ts';
import { ASKED_BY } from './meta.ts';
import { join, type Parts } from './parts.ts';

/** The most questions in one result, and the most that are open at the same time during one call. */
export const MOST_OPEN_QUESTIONS = 16;
/** The most questions during one call. */
export const MOST_QUESTIONS = 100;

/** A question that is not passed on. The message says why, without a full stop. */
export class BadQuestion extends Error {
  override readonly name = 'BadQuestion';
}

/** The parameters of a question with the name of the server in them. Throws a BadQuestion if it must not be passed on. */
export function askedBy(server: string, method: string, params: Buffer | null): Buffer | null {
  // The client answers this one by itself, so nobody reads it.
  if (method === 'roots/list') return params;
  const bytes = params ?? EMPTY;
  const members = distinct(readMembers(bytes));
  if (method === 'elicitation/create') requireWebAddress(bytes, members);
  const rewritten = members
    .filter(({ key }) => key !== '_meta')
    .map((member) =>
      method === 'elicitation/create' && member.key === 'message' && bytes[member.start] === QUOTE
        ? [MESSAGE, toBytes(`Server "${server}" asks: ${textOf(bytes, member)}`)]
        : [bytes.subarray(member.keyStart, member.end)],
    );
  return writeObject([...rewritten, [META, metaWith(server, bytes, members)]]);
}

function metaWith(server: string, bytes: Buffer, members: readonly JsonMember[]): Buffer {
  const meta = members.find(({ key }) => key === '_meta');
  const others = meta === undefined ? [] : distinct(readMembers(bytes, meta.start, meta.end));
  const kept = others.filter(({ key }) => key !== ASKED_BY).map(({ keyStart, end }) => [bytes.subarray(keyStart, end)]);
  return writeObject([...kept, [Buffer.from(`"${ASKED_BY}":`), toBytes(server)]]);
}

/** Clients open the address for their user. Other schemes run code, or reach files and programs of the user. */
function requireWebAddress(bytes: Buffer, members: readonly JsonMember[]): void {
  for (const member of members) {
    if (member.key !== 'url') continue;
    const text = bytes[member.start] === QUOTE ? textOf(bytes, member) : '';
    if (!URL.canParse(text) || !/^https?:$/.test(new URL(text).protocol))
      throw new BadQuestion('only addresses that begin with http:// or https:// are passed on');
  }
}

/** Of two equal keys, Toolgate might check the first, and a client might use the last. */
function distinct(members: readonly JsonMember[] | null): readonly JsonMember[] {
  if (members === null) throw new BadQuestion('it is not an object');
  if (new Set(members.map(({ key }) => key)).size < members.length) throw new BadQuestion('a key occurs twice in it');
  return members;
}

/**
 * Whether a modern result may ask questions. It may report too much, because a key can be written with escapes. This runs
 * for every result of a modern server, so nothing is parsed.
 */
export function mayAsk(result: Parts): boolean {
  if (Buffer.isBuffer(result)) return hasQuestionWords(result);
  // A word may begin in one part and end in a later one: those in between may be shorter than the word.
  let before = NOTHING;
  return result.some((part) => {
    if (hasQuestionWords(part)) return true;
    const seam = Buffer.concat([before, part.subarray(0, SEAM)]);
    before = part.length < SEAM ? seam.subarray(-SEAM) : part.subarray(-SEAM);
    return hasQuestionWords(seam);
  });
}

function hasQuestionWords(bytes: Buffer): boolean {
  return hasRequests(bytes) || bytes.includes(ESCAPE);
}

/** A search looks for the first letter first. This one is rare, and the first of the whole word is everywhere. */
function hasRequests(bytes: Buffer): boolean {
  for (let at = bytes.indexOf(RARE); at >= 0; at = bytes.indexOf(RARE, at + 1)) {
    const start = at - REQUESTS.length + RARE.length;
    if (start >= 0 && bytes.toString('latin1', start, at + RARE.length) === REQUESTS) return true;
  }
  return false;
}

/** The same result. If it asks questions, the name of the server is in each. */
export function inquiryOf(server: string, result: Parts): Parts {
  const bytes = join(result);
  const members = readLongMembers(bytes);
  const asking = members.filter(({ key }) => key === REQUESTS);
  if (asking.length === 0) return result;
  if (asking.length > 1) throw new BadQuestion('a key occurs twice in it');
  const [requests] = asking as [JsonMember];
  const questions = distinct(readMembers(bytes, requests.start, requests.end));
  if (questions.length > MOST_OPEN_QUESTIONS)
    throw new BadQuestion(`it has ${questions.length} questions, and ${MOST_OPEN_QUESTIONS} are the most`);
  const rewritten = questions.map((question) => [
    bytes.subarray(question.keyStart, question.start),
    questionOf(server, bytes, question),
  ]);
  return splice(bytes, requests, writeObject(rewritten));
}

function questionOf(server: string, bytes: Buffer, { start, end }: Span): Buffer {
  const members = distinct(readMembers(bytes, start, end));
  const named = members.find(({ key }) => key === 'method');
  const method = named === undefined || bytes[named.start] !== QUOTE ? '' : textOf(bytes, named);
  const params = members.find(({ key }) => key === 'params');
  if (params === undefined) return bytes.subarray(start, end);
  const asked = askedBy(server, method, bytes.subarray(params.start, params.end))!;
  return splice(bytes.subarray(start, end), { start: params.start - start, end: params.end - start }, asked);
}

/** The same error. If it requires the user to open addresses first, the name of the server is with each. */
export function errorOf(server: string, error: Buffer): Buffer {
  if (requiredUrls(error).length === 0) return error;
  // From the end, so that the places of those before stay as they are.
  return urlSpans(error).reduceRight(
    (bytes, span) => splice(bytes, span, askedBy(server, 'elicitation/create', error.subarray(span.start, span.end))!),
    error,
  );
}

function textOf(bytes: Buffer, { start, end }: Span): string {
  return decodeString(bytes, start, end);
}

const QUOTE = 0x22;
const EMPTY = toBytes({});
const NOTHING: Buffer = Buffer.alloc(0);
const MESSAGE = Buffer.from('"message":');
const META = Buffer.from('"_meta":');
const REQUESTS = 'inputRequests';
const RARE = 'Requests';
const ESCAPE = '\\u';
const SEAM = REQUESTS.length;
