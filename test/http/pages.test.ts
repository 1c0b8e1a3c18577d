/** Paged lists, for clients that request one page after the other. */
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { startHttp, startStdio } from '../support/gateway.ts';
import { startSession } from '../support/raw-http.ts';
import { server, serversToml } from '../support/server.ts';

const names = (count: number) => Array.from({ length: count }, (_, n) => `t${n}`).join(',');
const items = (...flags: string[]) => server('basic', ...flags);
const many = items(
  '--tools',
  names(7),
  '--resources',
  'a://1,a://2,a://3',
  '--templates',
  'b://{x}',
  '--prompts',
  'p,q',
);
const config = (page: string) => `controls = []\n${page}\n${serversToml({ up: many, more: server('changing') })}`;
const PAGE = z.looseObject({
  tools: z.array(z.looseObject({ name: z.string() })),
  nextCursor: z.string().optional(),
});
const PAGED = config('[limits]\npage = 3');

describe('with limits.page', () => {
  it('lists every item on exactly one page, in the order of the full list', async () => {
    const whole = await startStdio({ config: config('') });
    const paged = await startHttp({ config: PAGED });
    const legacy = await paged.connect();
    const modern = await paged.connectModern();
    const asks = [
      (params: object) => legacy.client.request({ method: 'tools/list', params: { ...params } }, PAGE),
      (params: object) => modern.client.request({ method: 'tools/list', params: { ...params } }, PAGE),
    ];
    for (const ask of asks) {
      const sizes: number[] = [];
      const all: string[] = [];
      let cursor: string | undefined;
      do {
        const { tools, nextCursor } = await ask(cursor === undefined ? {} : { cursor });
        sizes.push(tools.length);
        all.push(...tools.map(({ name }) => name));
        cursor = nextCursor;
      } while (cursor !== undefined);
      expect(all).toEqual((await whole.client.listTools()).tools.map(({ name }) => name));
      expect(sizes.slice(0, -1).every((size) => size === 3)).toBe(true);
      expect(sizes.length).toBeGreaterThan(2);
    }
  });

  it('pages resources, templates and prompts too, and gives the last page no cursor', async () => {
    const session = await startSession(await startHttp({ config: PAGED.replace('page = 3', 'page = 2') }));
    const { result: first } = await session.ask('resources/list');
    expect(first).toMatchObject({ resources: [{ uri: 'up_a://1' }, { uri: 'up_a://2' }] });
    const { result: last } = await session.ask('resources/list', { cursor: first!.nextCursor });
    expect(last).toMatchObject({ resources: [{ uri: 'up_a://3' }, { uri: 'more_changing://first' }] });
    expect(last).not.toHaveProperty('nextCursor');
    expect((await session.ask('prompts/list')).result).toMatchObject({
      prompts: [{}, {}],
      nextCursor: expect.any(String),
    });
    expect((await session.ask('resources/templates/list')).result).not.toHaveProperty('nextCursor');
  });

  it('continues at the same position after the list has changed, and notifies the client', async () => {
    const gateway = await startHttp({ config: PAGED });
    const session = await startSession(gateway);
    const stream = await session.listen();
    const { result } = await session.ask('tools/list');
    await session.ask('tools/call', { name: 'more_add_tool', arguments: { name: 'new' } });
    const { result: next } = await session.ask('tools/list', { cursor: result!.nextCursor });
    expect((next!.tools as { name: string }[])[0]!.name).toBe('up_t3');
    await expect.poll(() => stream.methods()).toContain('notifications/tools/list_changed');
  });
});

describe('a cursor that the gateway did not issue', () => {
  it.each([
    ['with pages', PAGED, '"bm9uZQ"'],
    ['with pages, and of another type', PAGED, '7'],
    ['without pages', config(''), '"bm9uZQ"'],
  ])('is refused %s', async (_, text, cursor) => {
    const session = await startSession(await startHttp({ config: text }));
    const { error } = await session.ask('tools/list', { cursor: JSON.parse(cursor) });
    expect(error).toMatchObject({ code: -32602 });
    expect(error!.message).toMatch(/cursor/);
  });
});
