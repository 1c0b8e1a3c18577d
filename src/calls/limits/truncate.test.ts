import { describe, expect, it } from 'vitest';
import { catalogOf } from '../../../test/support/catalog.ts';
import { readMessage } from '../../protocol/read.ts';
import { createSpillStore } from './spill-store.ts';
import { cutResult } from './truncate.ts';

const catalog = catalogOf({
  namespace: '',
  tool: ['t', { name: 'typed', outputSchema: { type: 'object' } }],
  resource: ['r://x'],
  prompt: ['p'],
});
const entry = (kind: 'tool' | 'resource' | 'prompt', name: string) => catalog.entries[kind].get(name)!;

interface Content {
  readonly type: string;
  readonly text: string;
  readonly uri: string;
  readonly mimeType: string;
  readonly size: number;
}

function create() {
  const kept = createSpillStore();
  const cut = (method: string, item: ReturnType<typeof entry>, result: object | string, limit: number) => {
    const bytes = Buffer.from(typeof result === 'string' ? result : JSON.stringify(result));
    const cut = cutResult(method, item, bytes, limit, (one) => kept.keep('me', one));
    return cut === null ? null : (JSON.parse(cut.toString()) as { content: Content[]; contents: Content[] });
  };
  const read = (uri: string, principal = 'me') => {
    const message = readMessage(
      Buffer.from(`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":${JSON.stringify(uri)}}}`),
    );
    const result = kept.read(principal, message);
    return result === null ? null : (JSON.parse(result.toString()) as { contents: Content[] }).contents;
  };
  /** All pieces from this URI on, joined. */
  const readAll = (uri: string) => {
    const pieces: string[] = [];
    for (let next: string | undefined = uri; next !== undefined; ) {
      const [piece, note]: Content[] = read(next)!;
      pieces.push(piece!.text);
      next = /The next piece begins at (\S+)\]$/.exec(note!.text)?.[1];
      if (next === undefined) expect(note!.text).toMatch(/This is the end\.\]$/);
    }
    return pieces;
  };
  return { cut, read, readAll };
}

const textResult = (...texts: string[]) => ({ content: texts.map((text) => ({ type: 'text', text })) });

describe('a tool result that is too long', () => {
  it('is cut to what fits, says so, and links to the rest, which can be read in pieces', () => {
    const { cut, readAll } = create();
    const text = 'äöü€𝄞"\n'.repeat(500);
    const { content } = cut('tools/call', entry('tool', 't'), textResult('first', text, 'last'), 1_000)!;
    expect(content.map(({ type }) => type)).toEqual(['text', 'text', 'text', 'resource_link']);
    const [first, second, note, link] = content;
    expect(first!.text).toBe('first');
    expect(text.startsWith(second!.text)).toBe(true);
    const shown = Buffer.byteLength(`first\n${second!.text}`);
    const total = Buffer.byteLength(`first\n${text}\nlast`);
    expect(note!.text).toBe(
      `[Toolgate cut this result, which is longer than "max_result" allows: ${shown} of ${total} bytes are shown. The rest begins at the resource ${link!.uri}, which you can read for ten minutes; or ask for less.]`,
    );
    expect(link).toMatchObject({ mimeType: 'text/plain', size: total - shown });
    const pieces = readAll(link!.uri);
    expect(`first\n${second!.text}${pieces.join('')}`).toBe(`first\n${text}\nlast`);
    for (const piece of pieces) expect(Buffer.byteLength(piece)).toBeLessThanOrEqual(1_000);
    expect(readAll(link!.uri.split('?')[0]!).join('')).toBe(`first\n${text}\nlast`);
    // The blocks that are shown take no more than the limit as JSON.
    expect(Buffer.byteLength(JSON.stringify(content.slice(0, 2)))).toBeLessThanOrEqual(1_000);
  });

  it('is stored as JSON, with everything in it, if it holds more than text', () => {
    const { cut, readAll } = create();
    const result = {
      content: [
        { type: 'text', text: 'hello' },
        { type: 'image', data: 'A'.repeat(2_000), mimeType: 'image/png' },
      ],
      _meta: { a: 1 },
    };
    const { content } = cut('tools/call', entry('tool', 't'), result, 100)!;
    expect(content[0]!.text).toBe('hello');
    expect(content[1]!.text).toContain('The complete result, as JSON, begins at the resource');
    expect(content[2]).toMatchObject({ type: 'resource_link', mimeType: 'application/json' });
    expect(JSON.parse(readAll(content[2]!.uri).join(''))).toEqual(result);
  });

  it('is marked as an error if the tool has an output schema', () => {
    const { cut, readAll } = create();
    const result = { ...textResult('{"a":1}'), structuredContent: { a: 'x'.repeat(500) } };
    const typed = cut('tools/call', entry('tool', 'typed'), result, 100)!;
    expect(typed).toMatchObject({ isError: true });
    expect(typed.content.map(({ type }) => type)).toEqual(['text', 'text', 'resource_link']);
    expect(typed.content[1]!.text).toContain('It is marked as an error only because');
    expect(JSON.parse(readAll(typed.content[2]!.uri).join(''))).toEqual(result);
    expect(cut('tools/call', entry('tool', 't'), result, 100)).not.toHaveProperty('isError');
    const failed = { ...textResult('x'.repeat(500)), isError: true };
    expect(cut('tools/call', entry('tool', 'typed'), failed, 100)!.content[0]!.text).toMatch(/^x+$/);
    expect(cut('tools/call', entry('tool', 't'), failed, 100)).toMatchObject({ isError: true });
  });

  it('is not cut if only members without content make it too long', () => {
    const { cut } = create();
    const result = { ...textResult('hello'), _meta: { long: 'x'.repeat(500) } };
    expect(cut('tools/call', entry('tool', 't'), result, 100)).toEqual(textResult('hello'));
  });

  it('is passed on unchanged if it is a question or an MCP task', () => {
    const { cut } = create();
    expect(cut('tools/call', entry('tool', 't'), { resultType: 'input_required', x: 'x'.repeat(99) }, 10)).toBeNull();
    expect(cut('tools/call', entry('tool', 't'), { resultType: 'task', x: 'x'.repeat(99) }, 10)).toBeNull();
  });

  it('fails if it is not valid JSON, and is cut if only its content is malformed', () => {
    const { cut } = create();
    expect(() => cut('tools/call', entry('tool', 't'), '{"content":[}', 10)).toThrow('answered with invalid JSON');
    expect(
      cut('tools/call', entry('tool', 't'), '{"content":"many words, all of them wrong"}', 10)!.content,
    ).toHaveLength(2);
    expect(cut('tools/call', entry('tool', 't'), '{"content":[null, 3, {"type":"text"}]}', 10)!.content).toHaveLength(
      2,
    );
  });

  it.each([1, 2, 3])('shows only what fits into %d bytes', (limit) => {
    const { cut, readAll } = create();
    const { content } = cut('tools/call', entry('tool', 't'), textResult('€uro'), limit)!;
    expect(content).toHaveLength(2);
    expect(readAll(content[1]!.uri).join('')).toBe('€uro');
  });
});

describe('other results that are too long', () => {
  it('are cut like tool results if they come from resources/read', () => {
    const { cut, readAll } = create();
    const text = 'line\n'.repeat(200);
    const result = { contents: [{ uri: 'r://x', mimeType: 'text/x', text }] };
    const { contents } = cut('resources/read', entry('resource', 'r://x'), result, 300)!;
    expect(contents).toHaveLength(2);
    expect(contents[0]).toMatchObject({ uri: 'r://x', mimeType: 'text/x' });
    expect(contents[1]!.text).toMatch(/^\[Toolgate cut this result/);
    expect(contents[0]!.text + readAll(contents[1]!.uri).join('')).toBe(text);
    const blob = { contents: [{ uri: 'r://x', blob: 'A'.repeat(500) }] };
    const binary = cut('resources/read', entry('resource', 'r://x'), blob, 300)!.contents;
    expect(JSON.parse(readAll(binary[0]!.uri).join(''))).toEqual(blob);
  });

  it('are refused if they come from prompts/get', () => {
    const { cut } = create();
    expect(() => cut('prompts/get', entry('prompt', 'p'), { messages: 'x'.repeat(99) }, 50)).toThrow(
      'The result of prompts/get for "p" has 114 bytes, more than the 50 that "max_result" allows, and cannot be cut.',
    );
  });
});

describe('a stored result', () => {
  it('can only be read by the principal it was stored for', () => {
    const { cut, read } = create();
    const { uri } = cut('tools/call', entry('tool', 't'), textResult('x'.repeat(500)), 100)!.content.at(-1)!;
    expect(read(uri)).not.toBeNull();
    expect(read(uri, 'you')).toBeNull();
    expect(read('toolgate://results/other')).toBeNull();
    expect(read('other://results')).toBeNull();
  });

  it.each(['?from=501', '?from=500', '?from=-1', '?from=x', '?to=1', '?from=1&from=2'])(
    'has no piece at %s',
    (query) => {
      const { cut, read } = create();
      const { uri } = cut('tools/call', entry('tool', 't'), textResult('x'.repeat(500)), 100)!.content.at(-1)!;
      expect(() => read(uri.split('?')[0] + query)).toThrow('is not a position in this result');
    },
  );

  it('expires after a while, and the oldest is dropped if there is no room', async () => {
    const text = (length: number) => ({ text: Buffer.alloc(length, 'x'), mimeType: 'text/plain', piece: 10 });
    const readable = (kept: ReturnType<typeof createSpillStore>, uri: string | null) =>
      kept.read(
        'me',
        readMessage(Buffer.from(`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"${uri}"}}`)),
      ) !== null;
    const small = createSpillStore(1_000);
    const uris = [400, 400, 400].map((length) => small.keep('me', text(length)));
    expect(uris.map((uri) => readable(small, uri))).toEqual([false, true, true]);
    expect(small.keep('me', text(1_001))).toBeNull();
    expect(uris.map((uri) => readable(small, uri))).toEqual([false, true, true]);
    const brief = createSpillStore(1_000, 500);
    const uri = brief.keep('me', text(10));
    expect(readable(brief, uri)).toBe(true);
    await new Promise((resolve) => setTimeout(resolve, 550));
    expect(readable(brief, uri)).toBe(false);
  });
});
