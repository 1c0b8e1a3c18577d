/** Valid requests, each with up to three edits, some of which matter and some of which do not. */
import fc from 'fast-check';
import type { Draft } from '../support/modern-draft.ts';
import { type Asked, correct, LISTS, MARKED, NAMES, PREFIXES, URIS } from '../support/modern-offer.ts';
import { edits } from './edits.ts';

const one = fc.constantFrom;
const texts = one('us-west1', '', ' padded ', 'Hello, 世界', '=?base64?eA==?=', 'line1\nline2', 'é', 'a, a', 'true');
const integers = one(0, 42, -7, Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER);
/** Occasionally a value that its type does not allow, which must be written in the header all the same. */
const mostly = (usual: fc.Arbitrary<unknown>) =>
  fc.oneof({ weight: 6, arbitrary: usual }, { weight: 1, arbitrary: one(null, 1.5, 'text', true) });

const deeper = fc.record({ level: mostly(integers) }, { requiredKeys: [] });
const place = fc.record({ zone: mostly(texts), deeper: mostly(deeper) }, { requiredKeys: [] });
const marked = fc.record(
  {
    region: mostly(texts),
    count: mostly(integers),
    flag: mostly(fc.boolean()),
    note: fc.string(),
    place: mostly(place),
  },
  { requiredKeys: [] },
);
const unmarked = fc.option(fc.dictionary(fc.string({ maxLength: 4 }), fc.jsonValue({ maxDepth: 1 }), { maxKeys: 2 }));
const nothing = fc.constant(null);

const ids = fc.oneof(fc.integer(), fc.string(), one('größe ☃', '', '"\\', 0));
const names = (known: readonly string[]) => fc.tuple(one(...PREFIXES), one(...known)).map((parts) => parts.join(''));

function requests(method: string, name: fc.Arbitrary<string | null>, args: fc.Arbitrary<Asked['args']>) {
  return fc.record<Asked>({ method: fc.constant(method), id: ids, name, args, metaFirst: fc.boolean() });
}

const UNKNOWN = ['no/such', 'ping', 'logging/setLevel', 'resources/subscribe', 'toString'];

const asked: fc.Arbitrary<Asked> = fc.oneof(
  { weight: 4, arbitrary: requests('tools/call', names([...NAMES, 'no_such']), unmarked) },
  { weight: 6, arbitrary: requests('tools/call', names([MARKED]), marked) },
  { weight: 2, arbitrary: requests('prompts/get', names([...NAMES, 'no_such']), unmarked) },
  { weight: 2, arbitrary: requests('resources/read', names([...URIS, 'no://such']), nothing) },
  ...[...LISTS, ...UNKNOWN].map((method) => ({ weight: 1, arbitrary: requests(method, nothing, nothing) })),
);

export const drafts: fc.Arbitrary<Draft> = fc.tuple(asked, fc.array(edits, { maxLength: 3 })).map(([request, list]) => {
  const draft = correct(request);
  for (const edit of list) edit(draft);
  return draft;
});
