/**
 * Answers of an upstream reach the caller byte for byte. Between eras, only prescribed members are added or removed.
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isWide, runs } from '../support/wide.ts';
import { heard, spoken } from './eras.ts';
import { megabyte, nested, outcome } from './json.ts';
import { findRoute, type Method, methods, outcomeOf, paths, titled, useRoutes } from './paths.ts';

const routes = useRoutes();

describe.each(titled(paths))('%s', (_, path) => {
  /** Fails unless the answer arrives as expected. Prints only where it differs: to print a megabyte takes minutes. */
  async function expectArrival(method: Method, text: string): Promise<void> {
    const said = spoken(text, path.upstream, method);
    const { request, dictate } = findRoute(routes, path);
    const arrived = outcomeOf(await request(method, dictate(method, said)));
    const expected = heard(said, path, method);
    if (arrived === expected) return;
    let at = 0;
    while (arrived[at] === expected[at]) at++;
    const around = (whole: string) => `${whole.length} characters: …${whole.slice(Math.max(0, at - 60), at + 200)}…`;
    expect.fail(`${method}: at ${at} expected ${around(expected)}\ngot ${around(arrived)}`);
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

  it('delivers a megabyte unchanged', async () => {
    for (const [method, big] of fc.sample(fc.tuple(fc.constantFrom(...methods), megabyte), isWide ? 3 : 1))
      await expectArrival(method, `"result":{"content":[],"structuredContent":${big}}`);
  });

  it.each([64, 1000, 8000, 100_000])('delivers a result that is nested %i levels deep', async (levels) => {
    await expectArrival('tools/call', `"result":{"deep":${nested(levels)}}`);
  });

  it('fails only a result that is nested too deeply to be scanned', async () => {
    const { request, dictate } = findRoute(routes, path);
    // The space prevents the shortcut for answers that are recognised by their first and last bytes.
    const params = dictate('tools/call', ` "result":{"deep":${nested(10_000)}}`);
    expect((await request('tools/call', params)).toString()).toContain('source_broken');
    await expectArrival('tools/call', '"result":{}');
  });
});
