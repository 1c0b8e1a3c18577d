// The files that are generated from the public interface, with their contents.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readDeclarations } from './declarations.mjs';
import { apiExamples } from './examples.mjs';
import { apiPage } from './page.mjs';
import { apiReport } from './report.mjs';

/** `root` is the folder of the project, in which dist/ is current. */
export function apiFiles(root) {
  const declarations = readDeclarations(join(root, 'dist'));
  const index = readFileSync(join(root, 'src/index.ts'), 'utf8');
  return {
    'api/toolgate.api.md': apiReport(declarations),
    'docs/api.md': apiPage(declarations, index),
    'test/library/examples.ts': apiExamples(declarations),
  };
}
