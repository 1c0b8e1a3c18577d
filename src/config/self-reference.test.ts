import { expect, it } from 'vitest';
import { startsToolgate } from './self-reference.ts';

it.each([
  'toolgate',
  'toolgate stdio',
  '/usr/local/bin/toolgate serve --port 1',
  'C:\\bin\\toolgate.cmd',
  './bin/toolgate.mjs',
  'node bin/toolgate.mjs',
  'node --enable-source-maps --import tsx /x/toolgate.mjs stdio',
  'bun toolgate.mjs',
  'npx toolgate',
  'npx -y toolgate@latest stdio',
  'npx --yes --package toolgate toolgate',
  'npx -p toolgate@1 toolgate --config connect',
  'bunx toolgate',
  'pnpm dlx toolgate',
  'pnpm exec toolgate',
  'npm exec -- toolgate',
  'yarn dlx toolgate',
  'bun x toolgate',
  'env A=1 -u B toolgate',
  'A=1 exec toolgate',
])('recognizes that this starts Toolgate: %s', (line) => {
  expect(startsToolgate(line.split(' '))).toBe(true);
});

it.each([
  'toolgate connect https://x',
  'toolgate --config x connect https://x',
  'npx -y toolgate connect https://x',
  'node bin/toolgate.mjs connect https://x',
  'npx -y @acme/toolgate',
  'toolgate-extras',
  'node server.mjs toolgate',
  'npx -y server toolgate',
  'cat toolgate.mjs',
  'npx',
  '',
])('recognizes that this does not start Toolgate: %s', (line) => {
  expect(startsToolgate(line.split(' '))).toBe(false);
});

it.each([
  [true, 'exec toolgate --config ${X}'],
  [true, 'cd /srv && npx toolgate stdio'],
  [true, 'TOKEN=$(cat token) toolgate; true'],
  [false, 'toolgate connect "$URL" 2>> log'],
  [true, 'bash -c "$(which npx) -y toolgate"'],
  [false, 'TOKEN=$(cat token) server; true'],
  [false, 'server # not toolgate'],
  [false, 'echo toolgate | cat'],
  [false, 'never "closed'],
])('looks into shell lines: %s for %j', (expected, line) => {
  expect(startsToolgate(['/bin/sh', '-c', line])).toBe(expected);
  expect(startsToolgate(['cmd.exe', '/d', '/s', '/c', line])).toBe(expected);
});

it('does not mistake the script of a shell for a command line', () => {
  expect(startsToolgate(['bash', 'toolgate.sh'])).toBe(false);
});
