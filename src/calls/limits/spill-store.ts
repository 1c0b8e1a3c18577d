/**
 * Stores the results that were cut, so that the client that got the beginning can read the rest as a resource, piece
 * by piece. Texts expire after some minutes. The total size is bounded, and the oldest texts are dropped first.
 */
import { randomBytes } from 'node:crypto';
import { GatewayError } from '../../base/errors.ts';
import { decodeString, toBytes } from '../../protocol/json.ts';
import type { Message } from '../../protocol/message.ts';
import { pieceOf, startAt } from './text.ts';

export interface SpilledText {
  readonly text: Buffer;
  readonly mimeType: string;
  /** The size of one piece in bytes. */
  readonly piece: number;
}

export interface SpillStore {
  /** Returns the URI of the text's beginning; null if the text is too large to store. */
  keep(owner: unknown, kept: SpilledText): string | null;
  /** The result of a `resources/read` by the caller that owns the text; null for any other request. */
  read(owner: unknown, message: Message): Buffer | null;
  close(): void;
}

const SCHEME = 'toolgate://results/';
const MOST_BYTES = 64 * 1024 * 1024;
/** Milliseconds. */
const LIFETIME = 10 * 60_000;

interface Record extends SpilledText {
  /** The caller: another session of the same agent is another client. */
  readonly owner: unknown;
  readonly until: number;
}

export function createSpillStore(most = MOST_BYTES, lifetime = LIFETIME): SpillStore {
  const records = new Map<string, Record>();
  let bytes = 0;
  let timer: NodeJS.Timeout | undefined;

  function drop(id: string, { text }: Record): void {
    records.delete(id);
    bytes -= text.length;
  }

  /** Drops the texts that have expired, and then the oldest ones until there is room. */
  function sweep(): void {
    clearTimeout(timer);
    timer = undefined;
    for (const [id, record] of records) {
      if (record.until > performance.now() && bytes <= most) {
        timer = setTimeout(sweep, record.until - performance.now());
        timer.unref();
        return;
      }
      drop(id, record);
    }
  }

  return {
    keep(owner, { text, mimeType, piece }) {
      if (text.length > most) return null;
      const id = randomBytes(18).toString('base64url');
      records.set(id, { owner, text, mimeType, piece, until: performance.now() + lifetime });
      bytes += text.length;
      sweep();
      return SCHEME + id;
    },
    read(owner, { bytes: message, uriStart, uriEnd }) {
      if (uriStart < 0 || message[uriStart] !== 0x22) return null;
      const uri = decodeString(message, uriStart, uriEnd);
      if (!uri.startsWith(SCHEME)) return null;
      const [id = '', query = ''] = uri.slice(SCHEME.length).split('?');
      const record = records.get(id);
      // The answer is the same as for an unknown URI, so a client cannot learn which texts of others exist.
      if (record === undefined || record.owner !== owner || record.until <= performance.now()) return null;
      return readPiece(uri, SCHEME + id, record, query);
    },
    close() {
      clearTimeout(timer);
      records.clear();
      bytes = 0;
    },
  };
}

function readPiece(uri: string, firstUri: string, { text, mimeType, piece }: SpilledText, query: string): Buffer {
  const [, digits] = /^from=(\d{1,15})$/.exec(query) ?? [];
  const from = query === '' ? 0 : Number(digits ?? Number.NaN);
  if (!(from < text.length || from === 0))
    throw new GatewayError(
      'params_invalid',
      `"${uri}" is not a position in this result: "from" must be a number of bytes below ${text.length}.`,
    );
  const start = startAt(text, from);
  const part = pieceOf(text, start, piece);
  const end = start + part.length;
  const next = `${firstUri}?from=${end}`;
  const where = `[Toolgate: bytes ${start} to ${end} of ${text.length}.`;
  const note =
    end < text.length
      ? { uri: next, mimeType: 'text/plain', text: `${where} The next piece begins at ${next}]` }
      : { uri: firstUri, mimeType: 'text/plain', text: `${where} This is the end.]` };
  return toBytes({ contents: [{ uri, mimeType, text: part.toString() }, note] });
}
