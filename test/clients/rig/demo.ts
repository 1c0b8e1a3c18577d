/** The demo of the README, as `npm start` serves it, with its data in a folder of the test. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const demo = join(root, 'examples', 'demo');

/** Without the folder of Python tools, whose first start installs packages. */
export function demoConfig(dataDir: string): string {
  const text = readFileSync(join(demo, 'toolgate.toml'), 'utf8');
  const [head = '', ...servers] = text.split(/^(?=\[\[servers\]\])/m);
  const kept = servers.filter((server) => !server.includes('namespace = "python"'));
  return [head.replace('  "python_*",\n', ''), ...kept]
    .join('')
    .replace(/^data_dir = .*$/m, `data_dir = ${JSON.stringify(dataDir)}`)
    .replace(/MEMORY_FILE_PATH = "[^"]*"/, `MEMORY_FILE_PATH = ${JSON.stringify(join(dataDir, 'memory.jsonl'))}`)
    .replace('index.js files"', `index.js ${join(demo, 'files')}"`)
    .replaceAll('../../', root)
    .replaceAll('"../', `"${join(root, 'examples')}/`);
}
