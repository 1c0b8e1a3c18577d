/** The pages of docs/, split into parts that run in parallel. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'vitest';
import { root, runPage } from '../support/docs-page.ts';
import { manifestChecks } from '../support/manifests.ts';
import { isMissingPython } from '../support/needs.ts';
import { isWide, onePart } from '../support/wide.ts';
import { embeddingChecks } from './embedding.ts';
import { entryChecks } from './entries.ts';
import { loginChecks } from './logins.ts';
import { figureChecks } from './metrics.ts';
import { probeChecks } from './probes.ts';
import { secretChecks } from './secrets.ts';

const PARTS = 4;
/** Pages with blocks that run only with Python. */
const NEED_PYTHON = ['docs/secrets.md'];
const checks = {
  ...figureChecks,
  ...probeChecks,
  ...secretChecks,
  ...loginChecks,
  ...entryChecks,
  ...manifestChecks,
  ...embeddingChecks,
};

/** Whether newcomer.test.ts runs the page, in an empty home folder. */
export function isNewcomerPage(name: string): boolean {
  return name.startsWith('tutorial-') || ['install.md', 'start.md'].includes(name);
}

/**
 * An index without blocks; api.md is generated, and test/library/api.test.ts compares it with the source; benchmark.md takes
 * too long, and test/scripts/bench-peers.test.ts compares it with its samples.
 */
const NOT_RUN = ['README.md', 'api.md', 'benchmark.md'];

export function runPart(part: number): void {
  const written = readdirSync(join(root, 'docs')).filter(
    (name) => name.endsWith('.md') && !NOT_RUN.includes(name) && !isNewcomerPage(name),
  );
  // The usual run has only the first part, with one of all pages.
  const pages = isWide ? written.filter((_, i) => i % PARTS === part) : onePart(written.length, written);
  describe('every block of a page works as described', () => {
    for (const page of pages.map((name) => `docs/${name}`))
      it.skipIf(NEED_PYTHON.includes(page) && isMissingPython('v1'))(page, () => runPage(page, checks), 120_000);
  });
}
