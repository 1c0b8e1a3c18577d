/**
 * Requests to servers, and servers that ask back: the state of one round always reaches the next, and never in part.
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { runs } from '../support/wide.ts';
import { splitOutcome } from './eras.ts';
import { distinctJson, distinctObject, jsonObject, space } from './json.ts';
import { membersOf, repeatsKey } from './members.ts';
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

const RUNS = runs(300);
const routes = useRoutes();
const PREFIX = 'io.modelcontextprotocol/';

/** The parameters that the upstream received. */
async function seen(path: Path, method: Method, params: string): Promise<string> {
  const { request } = findRoute(routes, path);
  const { result } = JSON.parse((await request(method, params)).toString()) as { result: { seen: string } };
  const text = Buffer.from(result.seen, 'base64').toString();
  return text.slice(text.indexOf('"params":') + 9, -1);
}

const pairs = (place: Pick<Path, 'door' | 'carrier'>): Path[] =>
  eras.flatMap((client) => eras.map((upstream) => ({ client, upstream, ...place })));
const place = fc.record({ door: fc.constantFrom(...doors), carrier: fc.constantFrom(...carriers) });

describe('a request of a client', () => {
  it(`reaches both eras with the same arguments and metadata, in ${RUNS} cases`, { timeout: 60_000 }, async () => {
    const keys = fc.constantFrom('"a"', '"\\u0061"', '"io.example/é"', '"traceparent"', '"__proto__"', '""');
    const foreign = fc
      .array(
        fc.tuple(keys, space, distinctJson).map(([key, gap, value]) => `${key}${gap}:${value}`),
        { maxLength: 3 },
      )
      .filter((members) => !repeatsKey(`{${members.join(',')}}`));
    await fc.assert(
      fc.asyncProperty(
        place,
        fc.constantFrom(...methods),
        jsonObject,
        distinctObject,
        foreign,
        fc.boolean(),
        async (place, method, free, distinct, foreign, first) => {
          const args = method === 'resources/read' ? distinct : free;
          await Promise.all(
            pairs(place).map(async (path) => {
              const { meta, target } = findRoute(routes, path);
              const members = [target(method), `"arguments" : ${args}`];
              const all = members.toSpliced(first ? 0 : 2, 0, meta(foreign.join(',')));
              const got = membersOf(await seen(path, method, `{${all.join(' , ')}}`));
              expect(got.map(({ key }) => key).toSorted()).toEqual(
                ['_meta', 'arguments', method === 'resources/read' ? 'uri' : 'name'].toSorted(),
              );
              expect(got.find(({ key }) => key === 'arguments')!.text).toBe(`"arguments" : ${args}`);
              const metadata = membersOf(got.find(({ key }) => key === '_meta')!.value);
              expect(metadata.filter(({ key }) => !key.startsWith(PREFIX)).map(({ text }) => text)).toEqual(foreign);
              const envelope = metadata.filter(({ key }) => key.startsWith(PREFIX)).map(({ key }) => key);
              expect(new Set(envelope).size).toBe(envelope.length);
              expect(envelope.includes(`${PREFIX}protocolVersion`)).toBe(path.upstream === 'modern');
            }),
          );
        },
      ),
      { numRuns: RUNS },
    );
  });
});

const QUESTION = '{"method":"elicitation/create","params":{"message":"Sure?","requestedSchema":{"n":1.0}}}';
const ASKING = `{ "inputRequests":{"a":${QUESTION}},"requestState":"s\\u0074ate" ,"resultType":"input_required"}`;

const withoutOrigin = (text: string) =>
  text.replace(/Server \\"[\w-]+\\" asks: /, '').replace(/,"_meta":\{"toolgate\/server":"[\w-]+"\}/, '');

/** The error for a client that declared no capability. */
const NEEDED = 'needs a client that supports elicitation/create';

const asking = paths.filter(({ upstream }) => upstream === 'modern');

describe.each(titled(asking.filter(({ client }) => client === 'modern')))('%s', (_, path) => {
  it.each(methods)('delivers a question and its answer: %s', async (method) => {
    const { request, dictate, target, upstreamTarget, meta } = findRoute(routes, path);
    const asked = await request(method, dictate(method, `"result":${ASKING}`));
    // The name of the server is added; every other byte stays.
    expect(withoutOrigin(outcomeOf(asked))).toBe(`"result":${ASKING}`);
    const answers =
      '"inputResponses" : {"a":{"action":"accept","content":{"n":9007199254740993}}},"requestState":"s\\u0074ate"';
    const got = await seen(path, method, `{${target(method)},${answers},${meta()}}`);
    expect(got.slice(0, got.indexOf(',"_meta"'))).toBe(`{${upstreamTarget(method)},${answers}`);
    expect(got).toContain(`"${PREFIX}clientCapabilities":{"elicitation":{}}`);
  });
});

describe.each(titled(asking.filter(({ client }) => client === 'legacy')))('%s', (_, path) => {
  it.each(methods)('reports that the client cannot be asked: %s', async (method) => {
    const { request, dictate } = findRoute(routes, path);
    const cases = [
      [ASKING, NEEDED],
      [ASKING.replace('"resultType"', '"resultT\\u0079pe"'), NEEDED],
      ['{"resultType":"task"}', 'which this client does not know'],
    ] as const;
    for (const [question, why] of cases) {
      const [word, object] = splitOutcome(outcomeOf(await request(method, dictate(method, `"result":${question}`))));
      expect(word).toBe(method === 'tools/call' ? '"result":' : '"error":');
      expect(object).toContain(why);
      expect(object).not.toContain('inputRequests');
      if (method === 'tools/call') expect(JSON.parse(object)).toMatchObject({ isError: true, content: [{}] });
    }
  });
});
