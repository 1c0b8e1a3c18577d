/**
 * JSON that an HTTP upstream writes over several lines has the same value for every client. On line-based transports
 * it becomes one line.
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { runs } from '../support/wide.ts';
import { heard, splitOutcome, spoken } from './eras.ts';
import { outcome, spread } from './json.ts';
import { membersOf } from './members.ts';
import { doors, eras, outcomeOf, type Upstream, useRoutes } from './paths.ts';

/** How the upstream splits its answer, and the line breaks between its tokens. */
const ways = [
  ['a JSON body with line feeds', { carrier: 'http json' }, '\n'],
  ['a JSON body with carriage returns', { carrier: 'http json' }, '\r\n'],
  ['an event of several data lines', { carrier: 'http sse' }, '\n'],
  ['an event of several data lines that end in CR', { carrier: 'http sse', newline: 'cr' }, '\n'],
  ['an event of several data lines that end in CRLF', { carrier: 'http sse', newline: 'crlf' }, '\n'],
] as const;

const upstreams: Upstream[] = eras.flatMap((era) =>
  ways.map(([, how], index) => ({ era, namespace: `${era}-${index}`, ...how })),
);
const routes = useRoutes(upstreams);

const unspread = (text: string) => text.replace(/[\r\n]/g, ' ').trimEnd();
const clients = doors.flatMap((door) => eras.map((client) => [client, door] as const));

describe.each(clients)('an answer over several lines for a %s client on %s', (client, door) => {
  const cases = eras.flatMap((era) => ways.map(([title, , between], index) => [era, title, between, index] as const));

  it.each(cases)('has the same value from a %s upstream with %s', async (era, _, between, index) => {
    const route = routes.all.find(
      (one) => one.client === client && one.door === door && one.namespace === `${era}-${index}`,
    )!;
    await fc.assert(
      fc.asyncProperty(outcome, async (text) => {
        const [key, object] = splitOutcome(spoken(text, era, 'tools/call'));
        const said = key + spread(object, between);
        const got = outcomeOf(await route.request('tools/call', route.dictate('tools/call', said)));
        // A pipe would have split the message at the first line break. Plain JSON over HTTP may keep them.
        if (door === 'stdio') expect(got).not.toMatch(/[\r\n]/);
        expect(parts(unspread(got))).toEqual(parts(unspread(heard(said.trimEnd(), route, 'tools/call'))));
      }),
      { numRuns: runs(60) },
    );
  });
});

/** The members of the result or error, verbatim. */
function parts(text: string): string[] {
  return membersOf(splitOutcome(text)[1]).map((member) => member.text);
}

describe('progress over several lines', () => {
  it.each(clients)('is one message for a %s client on %s', async (client, door) => {
    const some = routes.all.filter((one) => one.client === client && one.door === door && one.carrier === 'http sse');
    for (const route of some) {
      const members = '"progressToken":"p","test/progress":2,"test/spread":true';
      const got = await route.exchange('tools/call', `{${route.target('tools/call')},${route.meta(members)}}`);
      expect(got.map((message) => JSON.parse(message.toString()) as unknown)).toMatchObject([
        { method: 'notifications/progress', params: { progressToken: 'p', progress: 1 } },
        { method: 'notifications/progress', params: { progressToken: 'p', progress: 2 } },
        { result: {} },
      ]);
      expect(got.join('')).not.toMatch(/[\r\n]/);
    }
  });
});
