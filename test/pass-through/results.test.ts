/**
 * Answers of an upstream reach the caller byte for byte. Between eras, only prescribed members are added or removed.
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { runs } from '../support/wide.ts';
import { heard, spoken } from './eras.ts';
import { megabyte, nested, outcome } from './json.ts';
import { findRoute, type Method, methods, outcomeOf, paths, titled, useRoutes } from './paths.ts';

const routes = useRoutes();

describe.each(titled(paths))('%s', (_, path) => {
  /** Whether the answer arrives as expected. */
  async function arrives(method: Method, text: string): Promise<boolean> {
    const said = spoken(text, path.upstream, method);
    const { request, dictate } = findRoute(routes, path);
    return outcomeOf(await request(method, dictate(method, said))) === heard(said, path, method);
  }

  it('delivers results and errors of all three methods unchanged', async () => {
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...methods), outcome, async (method, text) => {
        const said = spoken(text, path.upstream, method);
        const { request, dictate } = findRoute(routes, path);
        expect(outcomeOf(await request(method, dictate(method, said)))).toBe(heard(said, path, method));
      }),
      { numRuns: runs(100) },
    );
  });

  // Nothing below is compared or generated in a way that would print a megabyte, which takes minutes.
  it('delivers a megabyte unchanged', async () => {
    for (const [method, big] of fc.sample(fc.tuple(fc.constantFrom(...methods), megabyte), 3))
      expect(await arrives(method, `"result":{"content":[],"structuredContent":${big}}`)).toBe(true);
  });

  it.each([64, 1000, 8000, 100_000])('delivers a result that is nested %i levels deep', async (levels) => {
    expect(await arrives('tools/call', `"result":{"deep":${nested(levels)}}`)).toBe(true);
  });

  it('fails only a result that is nested too deeply to be scanned', async () => {
    const { request, dictate } = findRoute(routes, path);
    // The space prevents the shortcut for answers that are recognised by their first and last bytes.
    const params = dictate('tools/call', ` "result":{"deep":${nested(10_000)}}`);
    expect((await request('tools/call', params)).toString()).toContain('source_broken');
    expect(await arrives('tools/call', '"result":{}')).toBe(true);
  });
});
