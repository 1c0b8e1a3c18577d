import { PassThrough } from 'node:stream';
import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { LineWriter } from './line-writer.ts';

function open(): { output: PassThrough; writer: LineWriter; chunks: () => string[] } {
  const output = new PassThrough();
  const chunks: string[] = [];
  output.on('data', (chunk: Buffer) => chunks.push(chunk.toString('latin1')));
  return { output, writer: new LineWriter(output), chunks: () => chunks };
}

describe('a line writer', () => {
  it('writes all lines of one event loop turn in one write', async () => {
    const { writer, chunks } = open();
    writer.write('one');
    writer.write(Buffer.from('two'));
    expect(chunks()).toEqual([]);
    await turn();
    writer.write('three');
    await turn();
    expect(chunks()).toEqual(['one\ntwo\n', 'three\n']);
  });

  it('keeps strings and buffers in order', async () => {
    const { writer, chunks } = open();
    const long = 'x'.repeat(10_000);
    writer.write('first');
    writer.write(Buffer.from('second'));
    writer.write(Buffer.from(long));
    writer.write('third');
    await turn();
    expect(chunks().join('')).toBe(`first\nsecond\n${long}\nthird\n`);
  });

  it('writes strings with one byte per character', async () => {
    const { writer, chunks } = open();
    writer.write(Buffer.from('"ä"').toString('latin1'));
    await turn();
    expect(Buffer.from(chunks().join(''), 'latin1').toString()).toBe('"ä"\n');
  });

  it('drops lines that can no longer be written', async () => {
    const { output, writer, chunks } = open();
    output.end();
    writer.write('late');
    writer.write(Buffer.from('later'));
    writer.write(Buffer.alloc(10_000));
    await turn();
    expect(chunks()).toEqual([]);
  });
});
