/** What an upstream answers is what the caller gets, byte for byte. */
import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import { megabyte, nested, outcome } from './json.ts';
import { dictate, type Method, openRoute, outcomeOf, paths, type Route, targets } from './paths.ts';

const methods = Object.keys(targets) as Method[];

describe.each(paths)('from a client on %s to an upstream on %s', (client, upstream) => {
  let route: Route;
  beforeAll(async () => {
    route = await openRoute(client, upstream);
  });

  it('brings results and errors of all three methods untouched', async () => {
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...methods), outcome, async (method, dictated) => {
        expect(outcomeOf(await route.request(method, dictate(method, dictated)))).toBe(dictated);
      }),
      { numRuns: 200 },
    );
  });

  it('brings a megabyte untouched', async () => {
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...methods), megabyte, async (method, big) => {
        const dictated = `"result":{"content":[],"structuredContent":${big}}`;
        // Not toBe: a difference of a megabyte takes minutes to print.
        expect(outcomeOf(await route.request(method, dictate(method, dictated))) === dictated).toBe(true);
      }),
      { numRuns: 6 },
    );
  });

  it.each([64, 1000, 8000, 100_000])('brings a result that is nested %i levels deep', async (levels) => {
    const dictated = `"result":{"deep":${nested(levels)}}`;
    expect(outcomeOf(await route.request('tools/call', dictate('tools/call', dictated))) === dictated).toBe(true);
  });

  it('fails a result that is too deep to be looked at, and only that one', async () => {
    // The space keeps it from being recognised by its ends, and carried without a look.
    const params = dictate('tools/call', ` "result":{"deep":${nested(10_000)}}`);
    expect((await route.request('tools/call', params)).toString()).toContain('source_broken');
    const after = dictate('tools/call', '"result":{}');
    expect(outcomeOf(await route.request('tools/call', after))).toBe('"result":{}');
  });
});
