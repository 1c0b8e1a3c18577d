// `npm run api`: writes the API report, the API documentation and the examples from the package's exports.
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { ensureBuilt, ensureInstalled, root } from './setup.mjs';

try {
  await ensureInstalled();
  await ensureBuilt();
  const { apiFiles } = await import('./api/files.mjs');
  for (const [path, text] of Object.entries(apiFiles(root))) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
}
