/** What a caller sends is what the upstream gets, byte for byte; only the id, the name and the progress token are the gateway's. */
import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import { json, jsonObject, megabyte, nested } from './json.ts';
import { type Method, openRoute, paths, type Route, targets } from './paths.ts';

/** The parameters as the upstream got them. */
async function seenParams(route: Route, method: Method, params: string): Promise<string> {
  const response = JSON.parse((await route.request(method, params)).toString()) as { result: { seen: string } };
  const text = Buffer.from(response.result.seen, 'base64').toString();
  return text.slice(text.indexOf('"params":') + 9, -1);
}

/** The same parameters under the upstream's own name. */
function upstreams(params: string): string {
  return params.replace('"up_any"', '"any"').replace('"up_test://any"', '"test://any"');
}

describe.each(paths)('from a client on %s to an upstream on %s', (client, upstream) => {
  let route: Route;
  beforeAll(async () => {
    route = await openRoute(client, upstream);
  });

  it('brings arguments, metadata and unknown parameters untouched, in any order', async () => {
    const method = fc.constantFrom(...(Object.keys(targets) as Method[]));
    await fc.assert(
      fc.asyncProperty(method, jsonObject, json, fc.nat(2), async (method, args, unknown, order) => {
        const members = [`"arguments":${args}`, `"_meta":{"io.example/x":${unknown}}`, `"future":${unknown}`];
        const params = `{ ${members.toSpliced(order, 0, targets[method]).join(' ,\t')} }`;
        expect(await seenParams(route, method, params)).toBe(upstreams(params));
      }),
      { numRuns: 200 },
    );
  });

  it('brings a megabyte of arguments untouched', async () => {
    await fc.assert(
      fc.asyncProperty(megabyte, async (big) => {
        const params = `{"name":"up_any","arguments":{"big":${big}}}`;
        expect((await seenParams(route, 'tools/call', params)) === upstreams(params)).toBe(true);
      }),
      { numRuns: 5 },
    );
  });

  it('brings keys that are traps for JavaScript untouched', async () => {
    const args = '{"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":1}},"toString":null}';
    const params = `{"name":"up_any","arguments":${args}}`;
    expect(await seenParams(route, 'tools/call', params)).toBe(upstreams(params));
  });

  it('brings arguments at the deepest nesting that limits.depth allows', async () => {
    const params = `{"name":"up_any","arguments":${nested(62)}}`;
    expect(await seenParams(route, 'tools/call', params)).toBe(upstreams(params));
  });

  it('replaces the progress token and nothing beside it', async () => {
    const params = '{"_meta":{"a":1.0,"progressToken":"mine", "b":[1e400]},"name":"up_any","arguments":{"n":-0}}';
    const seen = await seenParams(route, 'tools/call', params);
    expect(seen).toMatch(
      /^\{"_meta":\{"a":1\.0,"progressToken":\d+, "b":\[1e400\]\},"name":"any","arguments":\{"n":-0\}\}$/,
    );
  });
});
