/** What an upstream answers is what the caller gets, byte for byte; between the eras only what they prescribe is added or taken away. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { heard, spoken } from './eras.ts';
import { megabyte, nested, outcome } from './json.ts';
import { findRoute, type Method, methods, outcomeOf, paths, titled, useRoutes } from './paths.ts';

const routes = useRoutes();

describe.each(titled(paths))('%s', (_, path) => {
  /** Whether the answer arrives as it should. */
  async function arrives(method: Method, text: string): Promise<boolean> {
    const said = spoken(text, path.upstream, method);
    const { request, dictate } = findRoute(routes, path);
    return outcomeOf(await request(method, dictate(method, said))) === heard(said, path, method);
  }

  it('brings results and errors of all three methods untouched', async () => {
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...methods), outcome, async (method, text) => {
        const said = spoken(text, path.upstream, method);
        const { request, dictate } = findRoute(routes, path);
        expect(outcomeOf(await request(method, dictate(method, said)))).toBe(heard(said, path, method));
      }),
      { numRuns: 100 },
    );
  });

  // Below, nothing is compared or generated in a way that would print a megabyte: that takes minutes.
  it('brings a megabyte untouched', async () => {
    for (const [method, big] of fc.sample(fc.tuple(fc.constantFrom(...methods), megabyte), 3))
      expect(await arrives(method, `"result":{"content":[],"structuredContent":${big}}`)).toBe(true);
  });

  it.each([64, 1000, 8000, 100_000])('brings a result that is nested %i levels deep', async (levels) => {
    expect(await arrives('tools/call', `"result":{"deep":${nested(levels)}}`)).toBe(true);
  });

  it('fails a result that is too deep to be looked at, and only that one', async () => {
    const { request, dictate } = findRoute(routes, path);
    // The space keeps it from being recognised by its ends, and carried without a look.
    const params = dictate('tools/call', ` "result":{"deep":${nested(10_000)}}`);
    expect((await request('tools/call', params)).toString()).toContain('source_broken');
    expect(await arrives('tools/call', '"result":{}')).toBe(true);
  });
});
