/** The generated files about the public interface match the source. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { apiFiles } from '../../scripts/api/files.mjs';
import { root } from '../support/docs-page.ts';

describe('the public interface', () => {
  it.each(Object.entries(apiFiles(root)))('matches %s; after an intended change, run `npm run api`', (path, text) => {
    expect(readFileSync(join(root, path), 'utf8')).toBe(text);
  });

  it('mentions no package that its users may not have', () => {
    const types = readFileSync(join(root, 'dist/index.d.ts'), 'utf8');
    const packages = [...types.matchAll(/\bfrom '([^']+)'|import\('([^']+)'\)/g)].map((match) => match[1] ?? match[2]);
    expect(packages.filter((name) => !name!.startsWith('node:'))).toEqual([]);
    expect(types).not.toContain('@internal');
  });
});
