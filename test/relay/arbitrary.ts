/** Results and errors as a very careless server might write them. */
import fc from 'fast-check';
import { ERA_FIELDS } from './eras.ts';
import { json, jsonObject, key, nested, space } from './json.ts';

/** Members that the eras prescribe, one level deeper, where they have no special meaning. */
const decoys = fc
  .tuple(json, json)
  .map(([a, b]) => `{"resultType":"input_required","ttlMs":${a},"_meta":{"cacheScope":${b}}}`);

/**
 * Around the length above which the gateway recognises an answer by its first and last bytes. Some characters have
 * several bytes.
 */
const filling = fc
  .tuple(fc.integer({ min: 16_150, max: 16_450 }), fc.constantFrom('x', 'é', '😀', '\\\\', '\\"'))
  .map(([length, unit]) => unit.repeat(Math.ceil(length / Buffer.byteLength(unit))));

const member = fc.oneof(
  {
    weight: 6,
    arbitrary: fc
      .tuple(key, space, space, json)
      .filter(([name]) => !ERA_FIELDS.includes(JSON.parse(name) as string))
      .map(([name, before, after, value]) => `${name}${before}:${after}${value}`),
  },
  { weight: 2, arbitrary: fc.tuple(decoys, json).map(([block, more]) => `"content":[${block}, ${more}]`) },
  { weight: 1, arbitrary: decoys.map((value) => `"structuredContent" : ${value}`) },
  {
    weight: 1,
    arbitrary: jsonObject.map((more) => {
      const info = '"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1.0"}';
      return `"_meta":{${info},"io.example/more":${more}}`;
    }),
  },
  { weight: 1, arbitrary: fc.constantFrom(1, 60, 600).map((levels) => `"deep":${nested(levels)}`) },
);

/** The members of a result as text, without those that the eras prescribe. */
export const core = fc.oneof(
  { weight: 9, arbitrary: fc.array(member, { maxLength: 5 }) },
  {
    weight: 1,
    arbitrary: fc
      .tuple(fc.array(member, { maxLength: 2 }), filling, fc.nat(2))
      .map(([members, text, place]) => members.toSpliced(place, 0, `"filling":"${text}"`)),
  },
);

/** The modern members, each with its position among the others. Keys and values may be escaped. */
export const modernFields = fc
  .tuple(
    fc.constantFrom('"resultType":"complete"', '"\\u0072esultType" : "complete"', '"resultType":\t"\\u0063omplete"'),
    fc.constantFrom('"ttlMs":60000', '"ttlM\\u0073":1.0e3', '"ttlMs" :0'),
    fc.constantFrom('"cacheScope":"public"', '"c\\u0061cheScope":"private"'),
  )
  .chain((texts) => fc.tuple(...texts.map((text) => fc.tuple(fc.nat(6), fc.constant(text)))));

/** An object of these members, with whitespace around them. */
export function objectOf(members: readonly string[], gap: string): string {
  return members.length === 0 ? `{${gap}}` : `{${members.map((text) => `${gap}${text}${gap}`).join(',')}}`;
}

export function withFields(members: readonly string[], fields: readonly (readonly [number, string])[]): string[] {
  return fields.reduce<string[]>((all, [place, text]) => all.toSpliced(place, 0, text), [...members]);
}

/** How an answer is written, as members of the request's `_meta`. */
export const manner = fc
  .record({
    order: fc.constantFrom('id first', 'id first', 'id last', 'odd'),
    // Most answers are written in one piece, because waiting between pieces is slow.
    cuts: fc.oneof(
      { weight: 7, arbitrary: fc.constant<number[]>([]) },
      { weight: 1, arbitrary: fc.uniqueArray(fc.integer({ min: 1, max: 130 }), { minLength: 1, maxLength: 2 }) },
      { weight: 1, arbitrary: fc.uniqueArray(fc.integer({ min: 1, max: 16_700 }), { minLength: 1, maxLength: 3 }) },
    ),
  })
  .map(({ order, cuts }) => `,"test/order":"${order}","test/cuts":${JSON.stringify(cuts.toSorted((a, b) => a - b))}`);
