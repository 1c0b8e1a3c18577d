// Says what the packages of `npx` commands stand for now, by asking the registry exactly as `npx` does: with the code of
// the npm in the folder of the first argument, with the settings of this folder and environment, and with the options
// that follow. Each line of stdin is a question about some packages; the line with its answer has version and checksum of
// each. Nothing is installed or started. Ends when stdin does, or with an error if this npm is not understood.
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

const [, , root, ...options] = process.argv;
const load = createRequire(join(root, 'package.json'));
const Config = load('@npmcli/config');
const pacote = load('pacote');
const parse = load('npm-package-arg');
const config = new Config({
  ...load('@npmcli/config/lib/definitions'),
  npmPath: root,
  argv: [process.execPath, join(root, 'bin', 'npm-cli.js'), 'exec', ...options],
  warn: false,
});
await config.load();
// As `npx` does. Nothing is tried twice: if there is no answer, `npx` itself is asked.
const settings = { ...config.flat, preferOnline: true, _isRoot: true, retry: { ...config.flat.retry, retries: 0 } };

for await (const line of createInterface(process.stdin)) void answer(JSON.parse(line));
process.exit();

async function answer({ id, packages }) {
  const contents = await Promise.all(packages.map(contentOf)).catch(() => null);
  process.stdout.write(`${JSON.stringify({ id, contents })}\n`);
}

async function contentOf(spec) {
  const { version, _integrity } = await pacote.manifest(parse(spec), settings);
  return `${version} ${_integrity}`;
}
