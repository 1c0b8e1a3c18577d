/**
 * Reads one HTTP/1.1 response after another from the bytes of a connection. It is strict: what two readers could
 * understand in two ways is refused, and there is a limit on everything. It never reads past the end of a response, so what
 * follows one is not taken for the next.
 */

/** The few headers of a response that a connection to a server looks at. */
export class ResponseHead {
  readonly status: number;
  /** Bytes of the body; -1 if that is not known. */
  length = -1;
  contentType = '';
  /** `Mcp-Session-Id`; null if it is absent or there twice. */
  session: string | null = null;
  /** `WWW-Authenticate`; several are joined. */
  challenge = '';
  /** `DPoP-Nonce`; null if it is absent or there twice. */
  nonce: string | null = null;

  constructor(status: number) {
    this.status = status;
  }
}

/** What the reader reports. An error that `head` or `data` throws goes to the one who pushed. */
export interface ResponseEvents {
  /** The same object is reported again if the next head is equal. */
  head(head: ResponseHead): void;
  /** A part of the body. It is a slice of what was pushed. */
  data(part: Buffer): void;
  /** The response is complete. `mayStay`: whether the connection can be used again, apart from bytes that follow. */
  complete(mayStay: boolean): void;
}

/** The bytes are not an HTTP response. */
export class BadResponse extends Error {
  readonly code = 'HTTP_INVALID';
}

/** Bytes of all lines of a head, and of all trailers. */
const MOST_HEAD = 16_384;
/** Longer heads are read each time: there is a reader for each socket, and it would keep them. */
const REMEMBERED = 2_048;
/** Headers in one head. */
const MOST_HEADERS = 200;
/** Bytes of the line before a chunk. */
const MOST_CHUNK_LINE = 1_024;
/** Interim responses before the final one. */
const MOST_INTERIM = 16;

type State = 'head' | 'fixed' | 'size' | 'chunk' | 'chunk-end' | 'trailers' | 'until-close';

const HEAD_END = Buffer.from('\r\n\r\n');
const LINE_END = Buffer.from('\r\n');
const NO_BYTES = Buffer.alloc(0);
const CR = 0x0d;
const LF = 0x0a;
const COLON = 0x3a;
const SPACE = 0x20;
const TAB = 0x09;

/** For each byte: 1 in a token, 2 in a value, 3 in both. */
const KINDS = new Uint8Array(256);
for (let code = 0; code < 256; code++) {
  const isToken = /[!#$%&'*+\-.^_`|~0-9A-Za-z]/.test(String.fromCharCode(code));
  const isValue = code === TAB || (code >= SPACE && code !== 0x7f);
  KINDS[code] = (isToken ? 1 : 0) | (isValue ? 2 : 0);
}

const CHUNK_LINE =
  /^([0-9a-fA-F]{1,13})(?:;[!#$%&'*+\-.^_`|~0-9A-Za-z]+(?:=(?:[!#$%&'*+\-.^_`|~0-9A-Za-z]+|"(?:[\t !#-[\]-~\x80-\xff]|\\[\t -~\x80-\xff])*"))?)*$/;
const LENGTH = /^\d{1,15}$/;

export class ResponseReader {
  /** For how many milliseconds the server keeps an idle connection, if it said so; otherwise -1. */
  keepAlive = -1;
  readonly #events: ResponseEvents;
  #state: State = 'head';
  /** Bytes left of a body with a length, or of a chunk. */
  #left = 0;
  /** An incomplete head, line or trailer. */
  #rest: Buffer = NO_BYTES;
  #interim = 0;
  #trailed = 0;
  #mayStay = true;
  #isHeadRequest = false;
  #isOver = false;
  /** The last head: its text, and what it says. */
  #text = '';
  #said: SaidHead | null = null;

  constructor(events: ResponseEvents) {
    this.#events = events;
  }

  /** The bytes that are still to come of a body with a length, or of a chunk. */
  get left(): number {
    return this.#left;
  }

  /** Gets ready for the response to the next request. */
  begin(isHeadRequest = false): void {
    this.#state = 'head';
    this.#rest = NO_BYTES;
    this.#interim = 0;
    this.#isHeadRequest = isHeadRequest;
    this.#isOver = false;
  }

  /** Reads on. Returns how many bytes were used: fewer than there are if the response ended before. Throws `BadResponse`. */
  push(chunk: Buffer): number {
    let at = 0;
    while (at < chunk.length) {
      switch (this.#state) {
        case 'head':
          at = this.#readHead(chunk, at);
          break;
        case 'fixed': {
          const end = Math.min(chunk.length, at + this.#left);
          this.#left -= end - at;
          this.#events.data(at === 0 && end === chunk.length ? chunk : chunk.subarray(at, end));
          at = end;
          if (this.#left === 0 && !this.#isOver) return this.#complete(at);
          break;
        }
        case 'size':
          at = this.#readSize(chunk, at);
          break;
        case 'chunk': {
          const end = Math.min(chunk.length, at + this.#left);
          this.#left -= end - at;
          if (this.#left === 0) this.#state = 'chunk-end';
          this.#events.data(chunk.subarray(at, end));
          at = end;
          break;
        }
        case 'chunk-end': {
          const line = this.#line(chunk, at, 2);
          if (line === null) return chunk.length;
          if (line.text !== '') throw new BadResponse('a chunk is longer than it says');
          at = line.end;
          this.#state = 'size';
          break;
        }
        case 'trailers': {
          const line = this.#line(chunk, at, MOST_HEAD);
          if (line === null) return chunk.length;
          at = line.end;
          if (line.text === '') return this.#complete(at);
          this.#trailed += line.text.length;
          if (this.#trailed > MOST_HEAD) throw new BadResponse('its trailers are too long');
          requireHeader(line.text);
          break;
        }
        case 'until-close':
          this.#events.data(at === 0 ? chunk : chunk.subarray(at));
          return chunk.length;
        default:
          this.#state satisfies never;
      }
      if (this.#isOver) return at;
    }
    return at;
  }

  /** Nothing more is reported until the next response begins. */
  stop(): void {
    this.#isOver = true;
  }

  /** The connection was closed by the other side. Returns whether that completes the response. */
  close(): boolean {
    if (this.#state !== 'until-close' || this.#isOver) return false;
    this.#isOver = true;
    this.#events.complete(false);
    return true;
  }

  #complete(at: number): number {
    this.#isOver = true;
    this.#events.complete(this.#mayStay);
    return at;
  }

  #readHead(chunk: Buffer, from: number): number {
    let bytes = chunk;
    let start = from;
    // Bytes of `chunk` that are in `bytes` before `start`.
    let kept = 0;
    if (this.#rest.length > 0) {
      kept = this.#rest.length;
      bytes = Buffer.concat([this.#rest, chunk.subarray(from)]);
      start = 0;
    }
    const end = bytes.indexOf(HEAD_END, Math.max(start, kept === 0 ? start : kept - 3));
    if (end < 0 || end - start > MOST_HEAD) {
      if (bytes.length - start > MOST_HEAD) throw new BadResponse('its head is too long');
      // A head that cannot become one is refused before its end.
      requireStart(bytes, start);
      this.#rest = kept === 0 ? Buffer.from(bytes.subarray(start)) : bytes;
      return chunk.length;
    }
    this.#rest = NO_BYTES;
    this.#useHead(bytes.toString('latin1', start, end + 2));
    return kept === 0 ? end + 4 : from + end + 4 - kept;
  }

  /** `text`: status line and headers, each with its end of line. */
  #useHead(text: string): void {
    // Servers repeat their heads: within a second often to the byte. Comparing takes a small part of reading.
    const said = text === this.#text ? this.#said! : readHead(text);
    if (text.length <= REMEMBERED) {
      this.#text = text;
      this.#said = said;
    }
    const { head, length, isChunked, closes, keepAlive } = said;
    const { status } = head;
    this.keepAlive = keepAlive;
    if (status < 200) {
      if (status === 101) throw new BadResponse('it changes the protocol');
      // Another response cannot follow it, although one must.
      if (closes) throw new BadResponse('an interim response closes the connection');
      if (++this.#interim > MOST_INTERIM) throw new BadResponse('it has too many interim responses');
      return;
    }
    this.#mayStay = !closes;
    const hasNoBody = status === 204 || status === 304;
    if (hasNoBody && length > 0 && !this.#isHeadRequest)
      throw new BadResponse('it must not have a body, and says that it has');
    const isEmpty = this.#isHeadRequest || hasNoBody || length === 0;
    // Some servers send a body all the same.
    if (this.#isHeadRequest || (hasNoBody && isChunked)) this.#mayStay = false;
    if (isChunked) {
      this.#state = 'size';
      this.#trailed = 0;
    } else if (length > 0) {
      this.#state = 'fixed';
      this.#left = length;
    } else this.#state = 'until-close';
    head.length = isEmpty ? 0 : length;
    this.#events.head(head);
    if (isEmpty && !this.#isOver) this.#complete(0);
  }

  #readSize(chunk: Buffer, from: number): number {
    const line = this.#line(chunk, from, MOST_CHUNK_LINE);
    if (line === null) return chunk.length;
    const size = CHUNK_LINE.exec(line.text)?.[1];
    if (size === undefined) throw new BadResponse('the size of a chunk is not valid');
    this.#left = Number.parseInt(size, 16);
    this.#state = this.#left === 0 ? 'trailers' : 'chunk';
    return line.end;
  }

  /** A line without its end, and where the next one starts; null if it is not complete. */
  #line(chunk: Buffer, from: number, most: number): { readonly text: string; readonly end: number } | null {
    const kept = this.#rest.length;
    const bytes = kept === 0 ? chunk : Buffer.concat([this.#rest, chunk.subarray(from)]);
    const start = kept === 0 ? from : 0;
    const newline = bytes.indexOf(LF, start);
    const end = newline < 0 ? bytes.length : newline - 1;
    if (end - start > most) throw new BadResponse('a line is too long');
    if (newline < 0) {
      const carriage = bytes.indexOf(CR, start);
      if (carriage >= 0 && carriage < bytes.length - 1) throw new BadResponse('a line does not end in CRLF');
      this.#rest = kept === 0 ? Buffer.from(bytes.subarray(start)) : bytes;
      return null;
    }
    if (bytes.indexOf(LINE_END, start) !== end) throw new BadResponse('a line does not end in CRLF');
    this.#rest = NO_BYTES;
    return { text: bytes.toString('latin1', start, end), end: kept === 0 ? newline + 1 : from + newline + 1 - kept };
  }
}

/** What a head says, apart from what was asked. */
interface SaidHead {
  readonly head: ResponseHead;
  readonly length: number;
  readonly isChunked: boolean;
  /** Whether the connection ends with the response. */
  readonly closes: boolean;
  readonly keepAlive: number;
}

function readHead(text: string): SaidHead {
  const status = readStatus(text);
  const isModern = text.charCodeAt(7) === 0x31;
  const head = new ResponseHead(status);
  let length = -1;
  let isChunked = false;
  let closes = !isModern;
  let keepAlive = -1;
  let count = 0;
  let session = 0;
  let nonce = 0;
  let at = text.indexOf('\r\n') + 2;
  while (at < text.length) {
    if (++count > MOST_HEADERS) throw new BadResponse('it has too many headers');
    const nameEnd = tokenEnd(text, at);
    if (nameEnd === at || text.charCodeAt(nameEnd) !== COLON) throw new BadResponse('a header has no valid name');
    const lineEnd = valueEnd(text, nameEnd + 1);
    const size = nameEnd - at;
    // Other headers are not looked at, so they need no text of their own.
    if (size === 10 || size === 12 || size === 14 || size === 16 || size === 17) {
      const name = text.slice(at, nameEnd).toLowerCase();
      switch (name) {
        case 'content-type':
          if (head.contentType === '') head.contentType = valueIn(text, nameEnd, lineEnd);
          break;
        case 'content-length': {
          const value = spacedIn(text, nameEnd, lineEnd);
          if (length >= 0) throw new BadResponse('it has Content-Length twice');
          if (!LENGTH.test(value)) throw new BadResponse('its Content-Length is not a length');
          length = Number(value);
          break;
        }
        case 'transfer-encoding':
          if (isChunked) throw new BadResponse('it has Transfer-Encoding twice');
          if (spacedIn(text, nameEnd, lineEnd).toLowerCase() !== 'chunked')
            throw new BadResponse('it has a Transfer-Encoding other than chunked');
          isChunked = true;
          break;
        case 'connection':
          for (const option of valueIn(text, nameEnd, lineEnd).toLowerCase().split(','))
            if (option.trim() === 'close') closes = true;
          break;
        case 'keep-alive': {
          const seconds = /(?:^|[,;\s])timeout=(\d{1,6})/i.exec(valueIn(text, nameEnd, lineEnd))?.[1];
          if (seconds !== undefined) keepAlive = Number(seconds) * 1000;
          break;
        }
        case 'mcp-session-id':
          head.session = ++session === 1 ? valueIn(text, nameEnd, lineEnd) : null;
          break;
        case 'dpop-nonce':
          head.nonce = ++nonce === 1 ? valueIn(text, nameEnd, lineEnd) : null;
          break;
        case 'www-authenticate': {
          const value = valueIn(text, nameEnd, lineEnd);
          head.challenge = head.challenge === '' ? value : `${head.challenge},${value}`;
          break;
        }
      }
    }
    at = lineEnd + 2;
  }
  if (isChunked && length >= 0) throw new BadResponse('it has both Content-Length and Transfer-Encoding');
  if (isChunked && !isModern) throw new BadResponse('it is of HTTP/1.0 and has a Transfer-Encoding');
  return { head, length, isChunked, closes, keepAlive };
}

const VERSION = 'HTTP/1.';

function readStatus(text: string): number {
  const minor = text.charCodeAt(7);
  if (!text.startsWith(VERSION) || (minor !== 0x30 && minor !== 0x31) || text.charCodeAt(8) !== SPACE)
    throw new BadResponse('it does not start with HTTP/1.1');
  const status = (text.charCodeAt(9) - 0x30) * 100 + (text.charCodeAt(10) - 0x30) * 10 + (text.charCodeAt(11) - 0x30);
  const isNumber = isDigit(text.charCodeAt(9)) && isDigit(text.charCodeAt(10)) && isDigit(text.charCodeAt(11));
  const next = text.charCodeAt(12);
  if (!isNumber || status < 100 || (next !== SPACE && next !== CR)) throw new BadResponse('it has no valid status');
  // A reason may have every byte that a value may have.
  valueEnd(text, 12, 'its reason has a character that is not allowed');
  return status;
}

function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39;
}

function requireStart(bytes: Buffer, start: number): void {
  const length = Math.min(VERSION.length, bytes.length - start);
  if (bytes.toString('latin1', start, start + length) !== VERSION.slice(0, length))
    throw new BadResponse('it does not start with HTTP/1.1');
}

function tokenEnd(text: string, from: number): number {
  let at = from;
  while (((KINDS[text.charCodeAt(at)] ?? 0) & 1) !== 0) at++;
  return at;
}

/** The end of a line that holds a value. Throws if it holds anything else. */
function valueEnd(text: string, from: number, problem = 'a header has a character that is not allowed'): number {
  let at = from;
  while (((KINDS[text.charCodeAt(at)] ?? 0) & 2) !== 0) at++;
  if (text.charCodeAt(at) !== CR || text.charCodeAt(at + 1) !== LF) throw new BadResponse(problem);
  return at;
}

function valueIn(text: string, colon: number, lineEnd: number): string {
  let start = colon + 1;
  let end = lineEnd;
  while (start < end && isSpace(text.charCodeAt(start))) start++;
  while (end > start && isSpace(text.charCodeAt(end - 1))) end--;
  return text.slice(start, end);
}

/** The same for a header that says where the body ends. Readers differ in whether a tab belongs to its value. */
function spacedIn(text: string, colon: number, lineEnd: number): string {
  return text.slice(colon + 1, lineEnd).replace(/^ +| +$/g, '');
}

function isSpace(code: number): boolean {
  return code === SPACE || code === TAB;
}

function requireHeader(line: string): void {
  const nameEnd = tokenEnd(line, 0);
  if (nameEnd === 0 || line.charCodeAt(nameEnd) !== COLON) throw new BadResponse('a trailer has no valid name');
  if (/^(?:content-length|transfer-encoding)$/i.test(line.slice(0, nameEnd)))
    throw new BadResponse('a trailer says how long it is');
  valueEnd(`${line}\r\n`, nameEnd + 1);
}
