import { expect, it } from 'vitest';
import { parseCommandLine } from '../config/shell.ts';
import { packageCommandOf } from './package-command.ts';

const read = (line: string) => packageCommandOf(parseCommandLine(line, 'linux'));

it.each([
  // line, what is started, packages, whether they are exact, the command line of the program
  ['npx -y @scope/pkg', '@scope/pkg', ['@scope/pkg'], false, ['PROGRAM']],
  ['npx pkg@1.2.3 --port 1 -y', 'pkg@1.2.3', ['pkg@1.2.3'], true, ['PROGRAM', '--port', '1', '-y']],
  ['npx --yes @scope/pkg@latest .', '@scope/pkg@latest', ['@scope/pkg@latest'], false, ['PROGRAM', '.']],
  ['npx -y "pkg@^1.2.0"', 'pkg@^1.2.0', ['pkg@^1.2.0'], false, ['PROGRAM']],
  ['npx -y pkg@^1.2.0 a', 'pkg@^1.2.0', ['pkg@^1.2.0'], false, ['/bin/sh', '-c', 'exec "$0" a', 'PROGRAM']],
  ['npx -y -p a@1.0.0 -p b other x', 'other', ['a@1.0.0', 'b'], false, ['PROGRAM', 'x']],
  ['npx --package=a@1.0.0-beta.1 -- other', 'other', ['a@1.0.0-beta.1'], true, ['PROGRAM']],
  ['/opt/node/bin/npx --registry http://localhost:1 pkg', 'pkg', ['pkg'], false, ['PROGRAM']],
  ['npm exec -y -- pkg@1.0.0 -v', 'pkg@1.0.0', ['pkg@1.0.0'], true, ['PROGRAM', '-v']],
  ['uvx mcp-server-git --repository .', 'mcp-server-git', ['mcp-server-git'], false, ['PROGRAM', '--repository', '.']],
  ['uvx --from git+https://x.org/a.git serve', 'serve', ['git+https://x.org/a.git'], false, ['PROGRAM']],
  ['uvx --with "mcp<2" mcp-server-git', 'mcp-server-git', ['mcp-server-git'], false, ['PROGRAM']],
  ['uv tool run --python 3.12 thing@1.0', 'thing@1.0', ['thing@1.0'], false, ['PROGRAM']],
  // A shell stays where one is needed for the arguments.
  ['npx -y pkg ~/notes "$X"', 'pkg', ['pkg'], false, ['/bin/sh', '-c', 'exec "$0" ~/notes "$X"', 'PROGRAM']],
])('%s', (line, target, packages, isExact, started) => {
  const command = read(line)!;
  expect(command).toMatchObject({ target, packages });
  expect(command.unpinned.length === 0).toBe(isExact);
  const { file, args } = command.start('PROGRAM');
  expect([file, ...args]).toEqual(started);
});

it.each([
  'npx',
  'npx -y',
  'npx -c "pkg --x"',
  'npx --call=pkg',
  'npx --no-install pkg',
  'npx --no pkg',
  'npx --workspace=a pkg',
  'npx --script-shell=/bin/bash pkg',
  'npx ./local',
  'npx /abs/pkg',
  'npx user/repo',
  'npx github:user/repo',
  'npx https://x.org/a.tgz',
  'npx alias@npm:pkg@1',
  'npx -y -p file:../a other',
  'npx -y -p a ./other',
  'npx -y --package',
  'npm exec pkg -- -v',
  'npm run start',
  'npm start',
  'uvx --no-cache mcp-server-git',
  'uvx --refresh mcp-server-git',
  'uvx ./folder',
  'uvx git+https://x.org/a.git',
  'uv run server.py',
  'bunx pkg',
  'pnpm dlx pkg',
  'node npx',
  'X=1 npx pkg',
  'npx pkg; echo',
  'npx "$PKG"',
  'npx pkg$X',
])('is started as written: %s', (line) => {
  expect(read(line)).toBeNull();
});
