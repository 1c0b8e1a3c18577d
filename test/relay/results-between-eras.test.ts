/** A result is the same for legacy and modern clients, byte for byte, except for members that the eras prescribe. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isWide, onePart } from '../support/wide.ts';
import { core, manner, modernFields, objectOf, withFields } from './arbitrary.ts';
import { ERA_FIELDS, heard, isLong, splitOutcome } from './eras.ts';
import { megabyte } from './json.ts';
import { type Member, membersOf } from './members.ts';
import {
  carriers,
  doors,
  type Era,
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

const RUNS = isWide ? 800 : 100;
const routes = useRoutes();

async function receive(path: Path, method: Method, result: string, how = ''): Promise<string> {
  const { request, dictate } = findRoute(routes, path);
  const [key, object] = splitOutcome(outcomeOf(await request(method, dictate(method, `"result":${result}`, how))));
  expect(key).toBe('"result":');
  return object;
}

const isEraField = ({ key }: Member) => ERA_FIELDS.includes(key);

/** The members that belong to no era. Earlier revisions allow only objects as structured content. */
function common(result: string, { client, upstream }: Path): string[] {
  const wraps = client === 'legacy' && upstream === 'modern';
  return membersOf(result)
    .filter((member) => !isEraField(member))
    .map(({ key, text, value }) =>
      wraps && key === 'structuredContent' && !value.startsWith('{') ? `"structuredContent":{"result":${value}}` : text,
    );
}

/** The members, by key, that the era of the client prescribes for a result of the other era. */
function prescribed(client: Era, method: Method): string[][] {
  if (client === 'legacy') return [];
  const complete = ['resultType', '"complete"'];
  return method === 'resources/read' ? [complete, ['ttlMs', '0'], ['cacheScope', '"private"']] : [complete];
}

function check(sent: string, received: string, path: Path, method: Method): void {
  if (path.client === path.upstream) {
    expect(received).toBe(sent);
    return;
  }
  const members = membersOf(received);
  expect(members.filter((member) => !isEraField(member)).map(({ text }) => text)).toEqual(common(sent, path));
  const fields = members.filter(isEraField).map(({ key, value }) => [key, value]);
  const wanted = prescribed(path.client, method);
  // In a long result they follow any that a legacy server may have written. The last duplicate counts.
  const strays = isLong(sent) && path.client === 'modern' ? membersOf(sent).filter(isEraField).length : 0;
  expect(fields.slice(strays)).toEqual(wanted);
}

describe('a result of a server', () => {
  it(`is the same for both eras, in ${RUNS} cases`, { timeout: 90_000 }, async () => {
    const one = fc.record({
      door: fc.constantFrom(...doors),
      carrier: fc.constantFrom(...carriers),
      method: fc.constantFrom(...methods),
      members: core,
      fields: modernFields,
      gap: fc.constantFrom('', '', ' ', '\t  '),
      how: manner,
      // A legacy server may use the same keys, where they have no meaning.
      strays: fc.nat(9).map((n) => n === 0),
    });
    await fc.assert(
      fc.asyncProperty(one, async ({ door, carrier, method, members, fields, gap, how, strays }) => {
        const plain = objectOf(members, gap);
        const full = objectOf(withFields(members, fields), gap);
        const pairs = eras.flatMap((client) => eras.map((upstream) => ({ client, upstream, door, carrier })));
        await Promise.all(
          pairs.map(async (path) => {
            const sent = path.upstream === 'modern' || strays ? full : plain;
            check(sent, await receive(path, method, sent, how), path, method);
          }),
        );
      }),
      { numRuns: RUNS },
    );
  });
});

const crossing = paths.filter(({ client, upstream }) => client !== upstream);

describe.each(titled(crossing))('%s', (_, path) => {
  it.each(['{}', '{ }', '{\t}', `{${' '.repeat(20_000)}}`])('delivers an empty result', async (empty) => {
    for (const method of methods) {
      const sent = path.upstream === 'modern' ? empty.replace('{', '{"resultType":"complete"') : empty;
      for (const cuts of ['', ',"test/cuts":[150]']) check(sent, await receive(path, method, sent, cuts), path, method);
    }
  });
});

describe.each(titled(onePart(2, crossing)))('%s', (_, path) => {
  it('delivers up to a megabyte, in pieces', async () => {
    for (const [big, cut] of fc.sample(fc.tuple(megabyte, fc.integer({ min: 100, max: 900_000 })), isWide ? 3 : 1)) {
      const rest = `"content":[{"resultType":1}], "big" :${big},"structuredContent":{"x":1.0}}`;
      const sent = path.upstream === 'modern' ? `{"resultType":"complete",${rest}` : `{${rest}`;
      const received = await receive(path, 'tools/call', sent, `,"test/cuts":[${cut},${cut + 70_000}]`);
      // Compared as a boolean, because printing a difference of a megabyte takes minutes.
      expect(`"result":${received}` === heard(`"result":${sent}`, path, 'tools/call')).toBe(true);
    }
  });

  it('delivers an object with very many members', async () => {
    const many = Array.from({ length: 50_000 }, (_, i) => `"k${i}":{}`).join(',');
    const sent = path.upstream === 'modern' ? `{"resultType":"complete",${many}}` : `{${many}}`;
    const received = await receive(path, 'tools/call', sent);
    expect(`"result":${received}` === heard(`"result":${sent}`, path, 'tools/call')).toBe(true);
  });
});
