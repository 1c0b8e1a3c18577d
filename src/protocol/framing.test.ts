import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createLineReader } from './lines.ts';
import { createSseReader, sseEvent } from './sse.ts';

/** The same bytes in chunks cut at the given places. */
function chunks(bytes: Buffer, cuts: number[]): Buffer[] {
  const places = [...new Set(cuts.map((cut) => cut % (bytes.length + 1)))].sort((a, b) => a - b);
  return [0, ...places].map((start, i) => bytes.subarray(start, places[i] ?? bytes.length)).filter((c) => c.length > 0);
}

function readLines(parts: Buffer[], limit = 1000): string[] {
  const seen: string[] = [];
  const reader = createLineReader(limit, {
    line: (bytes) => seen.push(bytes.toString()),
    parts: (parts) => seen.push(Buffer.concat(parts).toString()),
    tooLong: () => seen.push('TOO LONG'),
  });
  for (const part of parts) reader.push(part);
  return seen;
}

describe('lines', () => {
  it('are complete however the bytes are cut', () => {
    const line = fc.string({ unit: fc.constantFrom('a', 'é', '{', ' ') }).filter((text) => text.length > 0);
    fc.assert(
      fc.property(fc.array(line), fc.array(fc.nat()), fc.constantFrom('\n', '\r\n'), (lines, cuts, end) => {
        const bytes = Buffer.from(lines.map((one) => one + end).join(''));
        expect(readLines(chunks(bytes, cuts))).toEqual(lines);
      }),
    );
  });

  it('over the limit are dropped and reported once, and the next line is read', () => {
    const long = 'x'.repeat(50);
    for (const size of [1, 7, 200]) {
      const bytes = Buffer.from(`a\n${long}\nb\n`);
      const parts = chunks(
        bytes,
        Array.from({ length: 60 }, (_, i) => i * size),
      );
      expect(readLines(parts, 20)).toEqual(['a', 'TOO LONG', 'b']);
    }
  });

  it('over the limit are reported with their beginning, however the bytes are cut', () => {
    const line = Buffer.from(`{"id":"${'a'.repeat(90)}",${' '.repeat(2_000)}}\n`);
    fc.assert(
      fc.property(fc.array(fc.nat()), (cuts) => {
        const heads: string[] = [];
        const reader = createLineReader(1_000, {
          line: () => {},
          parts: () => {},
          tooLong: (_, head) => heads.push(head.toString()),
        });
        for (const part of chunks(line, cuts)) reader.push(part);
        expect(heads).toEqual([line.toString('utf8', 0, 512)]);
      }),
    );
  });
});

describe('server-sent events', () => {
  it('are complete however the bytes are cut and whatever ends the lines', () => {
    const data = fc.string({ unit: fc.constantFrom('a', 'é', ':', ' ', '{') }).filter((text) => text.length > 0);
    fc.assert(
      fc.property(fc.array(data), fc.array(fc.nat()), fc.constantFrom('\n', '\r\n', '\r'), (events, cuts, end) => {
        const text = events
          .map((one) => `: note${end}id: 1${end}event: message${end}data: ${one}${end}${end}`)
          .join('');
        const seen: string[] = [];
        const reader = createSseReader(
          10_000,
          (bytes) => seen.push(bytes.toString()),
          () => seen.push('TOO LONG'),
        );
        for (const part of chunks(Buffer.from(text), cuts)) reader.push(part);
        expect(seen).toEqual(events);
      }),
    );
  });

  it('join several data lines with a line break', () => {
    const seen: string[] = [];
    createSseReader(
      100,
      (bytes) => seen.push(bytes.toString()),
      () => {},
    ).push(Buffer.from('data: {\ndata: }\n\n'));
    expect(seen).toEqual(['{\n}']);
  });

  it('are written on one data line', () => {
    expect(sseEvent(Buffer.from('{"a":\n1}')).toString()).toBe('event: message\ndata: {"a": 1}\n\n');
  });
});
