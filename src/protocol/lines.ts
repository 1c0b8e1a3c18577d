/** Splits a byte stream into lines. A line over the limit is dropped completely and reported once. */
import { CollectedParts } from '../base/collected-parts.ts';

export interface LineSink {
  /** A line that came in one part, as most lines do. */
  line(bytes: Buffer): void;
  /** A line in the parts it came in. */
  parts(parts: readonly Buffer[]): void;
  /** A long line has begun. Returns what takes it as it comes, with what has come already; null to have it whole. */
  long?(parts: readonly Buffer[]): LineFollower | null;
  /** `head` is the first 512 bytes of the line, or fewer. */
  tooLong(limit: number, head: Buffer): void;
}

export interface LineFollower {
  push(part: Buffer): void;
  end(): void;
}

export interface LineReader {
  push(chunk: Buffer): void;
}

export function createLineReader(limit: number, sink: LineSink): LineReader {
  const collected = new CollectedParts();
  /** Bytes of the line so far, also of what a follower has taken. */
  let size = 0;
  let dropping = false;
  let follower: LineFollower | null = null;
  /** Whether the line has been offered. */
  let isOffered = false;

  const tooLong = (last: Buffer) => {
    const head = headOf([...collected.take(), last]);
    size = 0;
    sink.tooLong(limit, head);
  };

  const finish = (tail: Buffer) => {
    if (dropping) {
      dropping = false;
      return;
    }
    if (size + tail.length > limit) {
      isOffered = false;
      follower = null;
      tooLong(tail);
      return;
    }
    if (follower !== null) {
      const taken = follower;
      follower = null;
      isOffered = false;
      size = 0;
      if (tail.length > 0) taken.push(tail);
      taken.end();
      return;
    }
    if (size === 0) {
      const line = withoutReturn(tail);
      if (line.length > 0) sink.line(line);
      return;
    }
    // The line break may have come in a chunk of its own.
    if (tail.length > 0) collected.push(tail);
    const line = collected.take();
    size = 0;
    isOffered = false;
    const last = withoutReturn(line.pop()!);
    if (last.length > 0) line.push(last);
    if (line.length > 0) sink.parts(line);
  };

  return {
    push(chunk) {
      let start = 0;
      for (;;) {
        const newline = chunk.indexOf(0x0a, start);
        if (newline < 0) break;
        finish(chunk.subarray(start, newline));
        start = newline + 1;
      }
      if (start === chunk.length || dropping) return;
      const rest = start === 0 ? chunk : chunk.subarray(start);
      if (size + rest.length > limit) {
        dropping = true;
        isOffered = false;
        follower = null;
        tooLong(rest);
        return;
      }
      size += rest.length;
      if (follower !== null) {
        follower.push(rest);
        return;
      }
      collected.push(rest);
      if (isOffered || size < OFFERED) return;
      isOffered = true;
      follower = sink.long?.(collected.parts) ?? null;
      if (follower !== null) collected.take();
    },
  };
}

/**
 * Bytes after which a line is offered. A shorter one costs less whole: it is written at once when it is complete, and a pipe has no
 * length that a reply could have.
 */
const OFFERED = 4 * 1024 * 1024;

const HEAD = 512;

/** From several parts, because the first may be very short. */
function headOf(parts: readonly Buffer[]): Buffer {
  const head: Buffer[] = [];
  let size = 0;
  for (const part of parts) {
    if (size >= HEAD) break;
    head.push(part.subarray(0, HEAD - size));
    size += part.length;
  }
  return head.length === 1 ? head[0]! : Buffer.concat(head);
}

function withoutReturn(bytes: Buffer): Buffer {
  return bytes[bytes.length - 1] === 0x0d ? bytes.subarray(0, bytes.length - 1) : bytes;
}
