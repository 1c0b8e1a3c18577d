/**
 * The upstream gets what the caller sent, byte for byte. The gateway replaces only the id, the name, the progress token
 * and the envelope. The upstream itself refuses an envelope that does not fit its era.
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isWide, runs } from '../support/wide.ts';
import { distinctJson, distinctObject, jsonObject, megabyte, nested } from './json.ts';
import { type Member, membersOf } from './members.ts';
import { findRoute, type Method, methods, paths, type Route, titled, useRoutes } from './paths.ts';

const routes = useRoutes();

/** The parameters that the upstream received. */
async function seenParams({ request }: Route, method: Method, params: string): Promise<string> {
  const response = JSON.parse((await request(method, params)).toString()) as { result: { seen: string } };
  const text = Buffer.from(response.result.seen, 'base64').toString();
  return text.slice(text.indexOf('"params":') + 9, -1);
}

/** The parameters with an empty `_meta`, and the members that it had. */
function splitMeta(params: string): { rest: string; meta: Member[] } {
  const member = membersOf(params).find(({ key }) => key === '_meta')!;
  return { rest: params.replace(member.text, '"_meta":{}'), meta: membersOf(member.value) };
}

const ENVELOPE = ['protocolVersion', 'clientInfo', 'clientCapabilities', 'logLevel'].map(
  (key) => `io.modelcontextprotocol/${key}`,
);

const foreign = (meta: readonly Member[]) =>
  meta.filter(({ key }) => !ENVELOPE.includes(key)).map(({ key, value }) => [key, value]);

describe.each(titled(paths))('%s', (_, path) => {
  /** Fails unless the upstream received what the client sent. */
  async function sends(method: Method, members: readonly string[], between = ','): Promise<void> {
    const route = findRoute(routes, path);
    const params = (target: string) => `{ ${members.toSpliced(1, 0, target).join(between)} }`;
    const seen = await seenParams(route, method, params(route.target(method)));
    const expected = params(route.upstreamTarget(method));
    if (path.client === 'legacy' && path.upstream === 'legacy') {
      // Compared as a whole first, because printing a difference of a megabyte takes minutes.
      expect(seen === expected || seen.slice(0, 2000)).toBe(true);
      return;
    }
    const [got, sent] = [splitMeta(seen), splitMeta(expected)];
    expect(got.rest === sent.rest || got.rest.slice(0, 2000)).toBe(true);
    expect(foreign(got.meta)).toEqual(foreign(sent.meta));
    const envelope = got.meta.map(({ key }) => key).filter((key) => ENVELOPE.includes(key));
    // Legacy clients get log messages without asking, so the gateway asks a modern server for them.
    const asked = path.client === 'legacy' ? ENVELOPE : ENVELOPE.slice(0, -1);
    expect(envelope).toEqual(path.upstream === 'modern' ? asked : []);
  }

  it('delivers arguments, metadata and unknown parameters unchanged, in any order', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...methods),
        jsonObject,
        distinctObject,
        distinctJson,
        fc.nat(2),
        fc.constantFrom(',', ' ,\t'),
        async (method, free, distinct, unknown, order, between) => {
          const meta = findRoute(routes, path).meta(`"io.example/x":${unknown},"":${distinct}`);
          const args = method === 'resources/read' ? distinct : free;
          const members = [`"arguments":${args}`, `"future":${unknown}`];
          await sends(method, members.toSpliced(order, 0, meta), between);
        },
      ),
      { numRuns: runs(100) },
    );
  });

  it('delivers a megabyte of arguments unchanged', async () => {
    for (const big of fc.sample(megabyte, isWide ? 2 : 1))
      await sends('tools/call', [findRoute(routes, path).meta(), `"arguments":{"big":${big}}`]);
  });

  it('delivers keys that are special in JavaScript unchanged', async () => {
    const args = '{"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":1}},"toString":null}';
    const meta = findRoute(routes, path).meta(`"__proto__":${args},"constructor":1`);
    await sends('tools/call', [`"arguments":${args}`, meta]);
  });

  it('delivers arguments at the deepest nesting that limits.depth allows', async () => {
    await sends('tools/call', [`"arguments":${nested(62)}`, findRoute(routes, path).meta()]);
  });

  it('replaces only the progress token', async () => {
    const route = findRoute(routes, path);
    const meta = route.meta('"a":1.0,"progressToken":"mine", "b":[1e400]');
    const params = `{${meta},${route.target('tools/call')},"arguments":{"n":-0}}`;
    const seen = splitMeta(await seenParams(route, 'tools/call', params));
    expect(seen.rest).toBe('{"_meta":{},"name":"any","arguments":{"n":-0}}');
    const { progressToken, ...others } = Object.fromEntries(foreign(seen.meta));
    expect(progressToken).toMatch(/^\d+$/);
    expect(others).toEqual({ a: '1.0', b: '[1e400]' });
  });
});

describe.each(titled(paths.filter(({ client }) => client === 'legacy')))('%s', (_, path) => {
  it('delivers a request without metadata', async () => {
    const route = findRoute(routes, path);
    const rest = '"arguments":{"n":-0} }';
    const seen = await seenParams(route, 'tools/call', `{ ${route.target('tools/call')},${rest}`);
    const meta = path.upstream === 'modern' ? membersOf(seen)[0]!.text : null;
    expect(seen).toBe(`{${meta === null ? '' : `${meta},`} "name":"any",${rest}`);
  });
});
