// `npm run clients`: runs the published clients against the demo, writes down what each of them does, and makes the table in
// docs/clients.md from it. With words as arguments, only the clients with such names.
import { join } from 'node:path';
import { ensurePython } from './python.mjs';
import { ensureBuilt, ensureInstalled, ensureTestTools, root, run } from './setup.mjs';

await ensureInstalled();
await Promise.all([ensureTestTools({ wide: true }), ensurePython({ wide: true }), ensureBuilt()]);
process.env.WIDE = '1';
process.env.UPDATE_DOCS = '1';
// By a variable, because projects of vitest do not follow the option.
process.env.VITEST_MAX_WORKERS = '1';
const vitest = (...args) => run(process.execPath, [join(root, 'node_modules', 'vitest', 'vitest.mjs'), 'run', ...args]);
const names = process.argv.slice(2);
const measured = await vitest('test/clients/published', ...(names.length > 0 ? ['-t', names.join('|')] : []));
// After the others, because it reads what they wrote.
const written = await vitest('test/clients/clients-page.test.ts');
process.exitCode = measured || written;
