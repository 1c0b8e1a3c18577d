/** docs/protocol.md shows exactly what is checked. `UPDATE_DOCS=1` updates it. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { root } from '../support/docs-page.ts';
import { features, impossible, verdictOn } from './features.ts';
import { notYet } from './not-yet.ts';
import { clientsFor, sides, titleOf } from './sides.ts';
import { renderFeatures, renderSides } from './table.ts';

const file = join(root, 'docs/protocol.md');
const parts = { sides: renderSides, features: renderFeatures };

it.each(Object.entries(parts))('docs/protocol.md shows the %s that are checked', (name, render) => {
  const marked = new RegExp(`(?<=<!-- ${name}: from test/matrix -->\\n).*?(?=<!-- ${name}: end -->)`, 's');
  const page = readFileSync(file, 'utf8');
  const given = marked.exec(page)?.[0];
  const table = `${render()}\n`;
  expect(given, `the marks of ${name}`).toBeDefined();
  if (process.env.UPDATE_DOCS === '1')
    writeFileSync(
      file,
      page.replace(marked, () => table),
    );
  else expect(given, 'run it again with UPDATE_DOCS=1').toBe(table);
});

describe('the tables', () => {
  const names = features.map(({ name }) => name);

  it('contain each feature once', () => {
    expect(new Set(names).size).toBe(names.length);
  });

  it('are checked in the usual run for every pair of eras, and each feature at least twice', () => {
    const cells = sides.flatMap((upstream) => clientsFor(upstream).map((client) => ({ client, upstream })));
    expect(new Set(cells.map(({ client, upstream }) => `${client.era} ${upstream.era}`)).size).toBe(4);
    for (const side of sides) {
      expect(cells.filter(({ client }) => client === side).length, titleOf(side)).toBeGreaterThanOrEqual(2);
    }
    for (const feature of features) {
      const checked = cells.filter((cell) => verdictOn(feature, cell).kind === 'yes');
      expect(checked.length, feature.name).toBeGreaterThanOrEqual(2);
    }
  });

  it('refer only to features and sides that exist', () => {
    expect(impossible.map(({ feature }) => feature).filter((name) => !names.includes(name))).toEqual([]);
    const known = [...names, ...sides.map(titleOf)];
    expect(Object.keys(notYet).filter((what) => !known.includes(what))).toEqual([]);
  });
});
