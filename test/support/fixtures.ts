/** Where the fixture servers are. */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const sources = fileURLToPath(new URL('../fixtures', import.meta.url));

/** The absolute path of a fixture: `fixture('basic')`. Fixtures in other folders are not bundled. */
export function fixture(name: string): string {
  const folder = name.startsWith('.') ? sources : (process.env.TOOLGATE_FIXTURES ?? sources);
  return join(folder, `${name}.mjs`);
}
