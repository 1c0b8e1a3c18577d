/** docs/clients.md and the table of known clients agree with what was measured. `UPDATE_DOCS=1` updates the page. */
import { readFileSync, writeFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { traitsOf } from '../../src/protocol/known-clients.ts';
import { isModern } from '../../src/protocol/revisions.ts';
import type { Passed } from './rig/measure.ts';
import { page } from './rig/page.ts';
import { published, versionOf } from './rig/published.ts';
import { readResult } from './rig/results.ts';
import { renderClients } from './rig/table.ts';

it('docs/clients.md shows what was measured', () => {
  const marked = /(?<=<!-- clients: from test\/clients -->\n).*?(?=<!-- clients: end -->)/s;
  const text = readFileSync(page, 'utf8');
  const table = `${renderClients(published)}\n`;
  if (process.env.UPDATE_DOCS === '1')
    writeFileSync(
      page,
      text.replace(marked, () => table),
    );
  else expect(marked.exec(text)?.[0], 'run it again with UPDATE_DOCS=1').toBe(table);
});

describe.each(published)('$title', (client) => {
  const result = readResult(client);

  it('was measured in the version that is installed', () => {
    expect(result?.version, 'measure it again with npm run clients').toBe(versionOf(client));
  });

  it('reaches the memory server over every transport', () => {
    const measured = [result?.http ?? [], result?.stdio ?? []].flat();
    expect(measured.map(({ through }) => through)).not.toContain(null);
    for (const { calledIn } of measured) expect(calledIn ?? 0).toBeLessThanOrEqual(3);
  });

  it('does what the table of known clients says', () => {
    for (const { name, protocol, lists, description, instructions, resources, through } of [
      result?.http ?? [],
      result?.stdio ?? [],
    ].flat()) {
      const known = traitsOf(name, isModern(protocol) ? 'modern' : 'legacy');
      // Older versions that are still in use may show less.
      expect(known.description ?? 0).toBeLessThanOrEqual(lengthOf(description));
      if (instructions !== 'none') expect(known.instructions ?? 0).toBeLessThanOrEqual(lengthOf(instructions));
      if (known.listsAgain === 'no') expect(lists).not.toBe('when told');
      if (through !== null && (known.listsAgain === 'yes' || known.listsAgain === 'late'))
        expect(lists).toBe('when told');
      if (known.uris === 'legal') expect(resources).not.toBe(false);
    }
  });
});

function lengthOf(passed: Passed): number {
  return passed === 'all' ? Number.POSITIVE_INFINITY : passed === 'none' ? 0 : passed;
}
