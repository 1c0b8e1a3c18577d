/** The pages of docs/, split into parts that run in parallel. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'vitest';
import { third } from '../support/wide.ts';
import { embeddingChecks } from './embedding.ts';
import { entryChecks } from './entries.ts';
import { manifestChecks } from './manifests.ts';
import { figureChecks } from './metrics.ts';
import { root, runPage } from './page.ts';
import { probeChecks } from './probes.ts';
import { secretChecks } from './secrets.ts';

const PARTS = 4;
const checks = {
  ...figureChecks,
  ...probeChecks,
  ...secretChecks,
  ...entryChecks,
  ...manifestChecks,
  ...embeddingChecks,
};

export function runPart(part: number): void {
  // api.md is generated; test/library/api.test.ts compares it with the source.
  const written = readdirSync(join(root, 'docs')).filter((name) => name !== 'api.md');
  const pages = third(written).filter((_, i) => i % PARTS === part);
  describe('every block of a page works as described', () => {
    it.each(pages.map((name) => `docs/${name}`))('%s', (page) => runPage(page, checks), 60_000);
  });
}
