/**
 * Errors of servers: everything but the code is passed on unchanged. A code that means something else in the other era
 * is replaced.
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { waitFor } from '../support/processes.ts';
import { runs } from '../support/wide.ts';
import { manner, objectOf } from './arbitrary.ts';
import { modernCode, splitOutcome } from './eras.ts';
import { json, key, number, space, string } from './json.ts';
import { membersOf } from './members.ts';
import {
  carriers,
  doors,
  eras,
  findRoute,
  type Method,
  methods,
  outcomeOf,
  type Path,
  paths,
  titled,
  useRoutes,
} from './paths.ts';

const RUNS = runs(500);
const routes = useRoutes();

async function receive(path: Path, method: Method, error: string, how = ''): Promise<[string, string]> {
  const { request, dictate } = findRoute(routes, path);
  return splitOutcome(outcomeOf(await request(method, dictate(method, `"error":${error}`, how))));
}

const isRefusal = (code: string) => [-32020, -32021, -32022].includes(Number(code));

/** Codes of both eras, codes between them, and numbers that are not codes. */
const code = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom(-32002, -32000, -32001, -32042, -32099, -32100, -31999).map(String) },
  { weight: 3, arbitrary: fc.integer({ min: -32110, max: -31990 }).map(String) },
  { weight: 2, arbitrary: fc.constantFrom('-32602', '-32603', '-32601', '-32700', '0', '1', '-32002.0', '-3.2002e4') },
  { weight: 1, arbitrary: number },
);

const error = fc
  .tuple(
    code.filter((one) => !isRefusal(one)),
    fc.constantFrom('code', '\\u0063ode'),
    string,
    fc.option(json),
    fc.array(fc.tuple(key, space, json), { maxLength: 2 }),
    fc.shuffledSubarray([0, 1, 2, 3, 4], { minLength: 5 }),
    space,
  )
  .map(([code, word, message, data, more, order, gap]) => {
    const members = [
      `"${word}"${gap}:${code}`,
      `"message" :${message}`,
      ...(data === null ? [] : [`"data":${gap}${data}`]),
      ...more.map(([key, gap, value]) => `${key}${gap}:${value}`),
    ];
    const known = new Set(['code', 'message']);
    // With duplicates it is undefined which one counts.
    const kept = members.filter((text, at) => at < 2 || !known.has(membersOf(`{${text}}`)[0]!.key));
    return objectOf(
      order.flatMap((at) => kept[at] ?? []),
      gap,
    );
  });

/** The members with the code as a number, which is the only part that may differ. */
const parts = (object: string, translate = (code: number) => code) =>
  membersOf(object).map(({ key, text, value }) => (key === 'code' ? translate(Number(value)) : text));

describe('an error of a server', () => {
  it(`is the same for both eras except for its code, in ${RUNS} cases`, { timeout: 60_000 }, async () => {
    const place = fc.record({ door: fc.constantFrom(...doors), carrier: fc.constantFrom(...carriers) });
    await fc.assert(
      fc.asyncProperty(place, fc.constantFrom(...methods), error, manner, async (place, method, sent, how) => {
        const pairs = eras.flatMap((client) => eras.map((upstream) => ({ client, upstream, ...place })));
        await Promise.all(
          pairs.map(async (path) => {
            const [word, received] = await receive(path, method, sent, how);
            expect(word).toBe('"error":');
            const isTranslated = path.client === 'modern' && path.upstream === 'legacy';
            if (isTranslated) expect(parts(received)).toEqual(parts(sent, modernCode));
            else expect(received).toBe(sent);
          }),
        );
      }),
      { numRuns: RUNS },
    );
  });
});

describe.each(titled(paths.filter(({ upstream }) => upstream === 'modern')))('%s', (_, path) => {
  it.each([
    ['headers that it does not accept', '-32020', '{}'],
    ['a revision that it does not speak', '-32022', '{"supported":["2099-01-01"],"requested":"2026-07-28"}'],
  ])('does not pass on an error about the gateway’s own request: %s', async (_, code, data) => {
    const [, received] = await receive(path, 'prompts/get', `{"code":${code},"message":"no","data":${data}}`);
    const { code: got, data: told } = JSON.parse(received) as { code: number; data: { code: string } };
    expect([-32020, -32022]).not.toContain(got);
    expect(told.code).toMatch(/^source_/);
  });
});

// Over HTTP, because a client on a pipe could not match an invalid answer to its request.
describe.each(titled(paths.filter(({ door }) => door === 'http')))('%s', (_, path) => {
  it('survives an error that is not valid JSON', async () => {
    const long = `"\\n${'x'.repeat(600)}\u0001"`;
    await receive(path, 'tools/call', `{"code":-32002,"message":"m",${long}:1}`);
    await receive(path, 'tools/call', `{${long}:[${long}],"code":-32002,"message":${long}}`);
    const sent = '{"code":7,"message":"still here"}';
    // After several such answers in a row the server is not called for a second.
    const received = () => receive(path, 'tools/call', sent);
    expect(await waitFor(async () => [await received()].find(([kind]) => kind === '"error":'))).toEqual([
      '"error":',
      sent,
    ]);
  });
});
