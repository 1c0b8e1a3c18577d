/**
 * Size limits: arguments that are too long are refused; results that are too long are cut, and the rest can be read.
 */
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { connectHttp } from '../support/connection.ts';
import { connectModernHttp } from '../support/modern.ts';
import { basic as basicEntry, open, openPipes } from '../support/open-gateway.ts';
import { startHttpServer } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';
import { basic, begin, doorOf, readBy, refusalOf } from './limits.ts';

describe('the size limit of arguments', () => {
  it.each([19, 20, 21])('allows up to 20 bytes: %d bytes sent', async (size) => {
    const { gateway } = await open({ s: basic({ max_arguments: '20B' }) });
    const pipes = await openPipes(gateway, 'legacy');
    const text = JSON.stringify({ a: 'x'.repeat(size - 8) });
    expect(text).toHaveLength(size);
    const { result } = await pipes.ask('tools/call', { name: 's_echo', arguments: JSON.parse(text) });
    const [{ text: said }] = result!.content as [{ text: string }];
    if (size <= 20) expect(said).toBe(text);
    else
      expect(JSON.parse(said)).toEqual({
        success: false,
        result: null,
        code: 'too_large',
        message: 'The arguments have 21 bytes, more than the 20 that "max_arguments" allows (Server "s"). Send less.',
      });
  });

  it('applies to tools and prompts, and a call without arguments counts as empty', async () => {
    const tools = { echo: { max_arguments: 5 } };
    const { gateway } = await open({ s: basic({ max_arguments: 30, tools }, '--prompts', 'p') });
    const door = doorOf(gateway);
    expect((await refusalOf(begin(door, 's_echo', { a: 1 }))).message).toContain('(The tool "s_echo")');
    const pipes = await openPipes(gateway, 'modern');
    expect((await pipes.ask('prompts/get', { name: 's_p', arguments: { topic: 'x' } })).result).toBeDefined();
    const long = { name: 's_p', arguments: { topic: 'x'.repeat(30) } };
    expect((await pipes.ask('prompts/get', long)).error).toMatchObject({ data: { code: 'too_large' } });
    expect((await pipes.ask('tools/call', { name: 's_count' })).result).not.toHaveProperty('isError');
  });
});

const textResult = (text: string) => JSON.stringify({ content: [{ type: 'text', text }] });

interface Block {
  readonly type: string;
  readonly text?: string;
  readonly uri?: string;
}

describe('the size limit of results', () => {
  it.each(['legacy', 'modern'] as const)(
    'passes results of exactly the limit unchanged, and cuts longer ones: %s',
    async (era) => {
      const { gateway } = await open({ s: basic({ max_result: 200 }) });
      const pipes = await openPipes(gateway, era);
      const ask = async (json: string) =>
        (await pipes.ask('tools/call', { name: 's_raw', arguments: { json } })).result!;
      const overhead = textResult('').length;
      for (const size of [199, 200]) {
        const json = textResult('x'.repeat(size - overhead));
        expect(Buffer.byteLength(json)).toBe(size);
        expect(await ask(json)).toMatchObject(JSON.parse(json));
      }
      // Unchanged, including numbers that JSON.parse would alter.
      const number = '"n":9007199254740993';
      await ask(`{"content":[],${number}}`);
      expect(pipes.texts.at(-1)).toContain(number);
      const text = 'y'.repeat(201 - overhead);
      const cut = await ask(textResult(text));
      const content = cut.content as Block[];
      expect(content.map(({ type }) => type)).toEqual(['text', 'text', 'resource_link']);
      expect(cut).not.toHaveProperty('isError');
      if (era === 'modern') expect(cut.resultType).toBe('complete');
      else expect(cut).not.toHaveProperty('resultType');
      const { result } = await pipes.ask('resources/read', { uri: content[2]!.uri });
      if (era === 'modern') expect(result).toMatchObject({ resultType: 'complete', ttlMs: 0, cacheScope: 'private' });
      expect(`${content[0]!.text}${(result!.contents as Block[])[0]!.text}`).toBe(text);
    },
  );

  it.each([
    ['v1', connectHttp],
    ['v2', connectModernHttp],
  ] as const)('lets an SDK client (%s) read a cut result of an HTTP server in pieces', async (_, connect) => {
    const server = await startHttpServer();
    const { url } = await open({ s: { url: server.url, max_result: '4KiB' } });
    const { client } = (await connect(url)) as Awaited<ReturnType<typeof connectHttp>>;
    const text = 'line of text, ä€𝄞\n'.repeat(1_000);
    const { content } = await client.callTool({ name: 's_raw', arguments: { json: textResult(text) } });
    const [first, note, link] = content as Block[];
    expect(note!.text).toMatch(/^\[Toolgate cut this result, .* \d+ of \d+ bytes are shown\./);
    let all = first!.text!;
    for (let next: string | undefined = link!.uri; next !== undefined; ) {
      const { contents } = await client.readResource({ uri: next });
      const [piece, after] = contents as { text: string; uri: string }[];
      expect(Buffer.byteLength(piece!.text)).toBeLessThanOrEqual(4_096);
      expect(piece!.uri).toBe(next);
      all += piece!.text;
      next = /The next piece begins at (\S+)\]/.exec(after!.text)?.[1];
    }
    expect(all).toBe(text);
  });

  it('reserves cut results for their client, not for all of its agent; others get the same error as for an unknown one', async () => {
    const { gateway } = await open({ s: basic({ max_result: 100 }) });
    const [mine, yours, again] = ['me', 'you', 'me'].map((agent) => doorOf(gateway, agent));
    const result = await mine!.callTool('s_raw', { json: textResult('z'.repeat(500)) });
    const { uri } = (JSON.parse(result.toString()) as { content: Block[] }).content.at(-1)!;
    const read = (door: typeof mine, uri: string) => readBy(gateway, door!.caller, uri);
    expect(await read(mine, uri!)).toContain('"contents"');
    const theirs = await read(yours, uri!);
    const unknown = await read(yours, 'toolgate://results/nothing');
    expect(theirs.replace(uri!, 'X')).toBe(unknown.replace('toolgate://results/nothing', 'X'));
    expect(theirs).toContain('There is no resource');
    expect(await read(again, uri!)).toContain('There is no resource');
    // The owner of the result is told that the offset is invalid.
    expect(await read(mine, `${uri!.split('?')[0]}?from=99999`)).toContain('is not a position in this result');
  });

  it('can be set for a tool, a server or all, and the most specific one applies', async () => {
    const { gateway } = await open(
      { s: basic({ max_result: 500, tools: { raw: { max_result: 1_000 } } }), t: basic() },
      { limits: { max_result: 100 } },
    );
    const door = doorOf(gateway);
    const isCut = async (name: string, args: object) => (await door.callTool(name, args)).includes('Toolgate cut');
    const json = (size: number) => textResult('x'.repeat(size - textResult('').length));
    expect([await isCut('s_raw', { json: json(1_000) }), await isCut('s_raw', { json: json(1_001) })]).toEqual([
      false,
      true,
    ]);
    const pad = (size: number) => ({ a: 'x'.repeat(size) });
    expect([await isCut('s_echo', pad(400)), await isCut('s_echo', pad(500))]).toEqual([false, true]);
    expect([await isCut('t_echo', pad(20)), await isCut('t_echo', pad(100))]).toEqual([false, true]);
  });

  it('makes long results of tools with an output schema errors that SDK clients accept', async () => {
    const folder = tempFolder({
      'tools.json': JSON.stringify([
        {
          name: 'raw',
          inputSchema: { type: 'object' },
          outputSchema: { type: 'object', properties: { a: { type: 'string' } }, required: ['a'] },
        },
      ]),
    });
    const { url } = await open({ s: { ...basicEntry('--raw-tools', join(folder, 'tools.json')), max_result: 200 } });
    const { client } = await connectHttp(url);
    await client.listTools();
    const structured = (a: string) => JSON.stringify({ content: [], structuredContent: { a } });
    const small = await client.callTool({ name: 's_raw', arguments: { json: structured('x') } });
    expect(small.structuredContent).toEqual({ a: 'x' });
    const large = await client.callTool({ name: 's_raw', arguments: { json: structured('x'.repeat(300)) } });
    expect(large).toMatchObject({ isError: true, content: [{ type: 'text' }, { type: 'resource_link' }] });
    const { contents } = await client.readResource({ uri: (large.content as Block[])[1]!.uri! });
    expect((contents[0] as { text: string }).text).toContain('"structuredContent"');
  });

  it('cuts resources and refuses prompts', async () => {
    const { gateway } = await open({ s: basic({ max_result: 70 }, '--resources', 'x://a', '--prompts', 'p') });
    const pipes = await openPipes(gateway, 'legacy');
    const { result } = await pipes.ask('resources/read', { uri: 's_x://a' });
    const contents = result!.contents as { uri: string; text: string }[];
    expect(contents.at(-1)!.text).toMatch(/^\[Toolgate cut this result/);
    const rest = await pipes.ask('resources/read', { uri: contents.at(-1)!.uri.split('?')[0] });
    expect((rest.result!.contents as { text: string }[])[0]!.text).toBe('x://a from basic');
    expect((await pipes.ask('prompts/get', { name: 's_p' })).error).toMatchObject({
      code: -32_000,
      data: { code: 'too_large' },
    });
  });
});
