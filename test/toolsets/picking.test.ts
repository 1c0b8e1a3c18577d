/** Picking the tools of a toolset interactively in a terminal. */
import { spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { childEnv } from '../support/child.ts';
import { atEnd } from '../support/cleanup.ts';
import { bin } from '../support/gateway.ts';
import { isMissing } from '../support/needs.ts';
import { waitFor } from '../support/processes.ts';
import { noPython } from '../support/python.ts';
import { tempFolder, writeFiles } from '../support/temp.ts';
import { onTerminal as runOnTerminal } from '../support/terminal.ts';
import { THREE, toolsetsToml } from '../support/toolsets.ts';
import { onePart } from '../support/wide.ts';

/** Runs the command in its own pseudo-terminal, created by script(1). */
function onTerminal(cwd: string, ...args: string[]) {
  const line = [process.execPath, bin, ...args].join(' ');
  const child = spawn('script', ['-qfec', line, '/dev/null'], {
    cwd,
    env: childEnv({ HOME: tempFolder(), TERM: 'xterm' }),
  });
  atEnd(() => void child.kill());
  let text = '';
  child.stdout.on('data', (chunk: Buffer) => {
    text += chunk.toString();
  });
  const exited = new Promise<number | null>((resolve) => child.on('close', resolve));
  return { send: (keys: string) => child.stdin.write(keys), text: () => text, exited };
}

it.skipIf(isMissing('script'))('the toolset picker searches, marks and saves tools', async () => {
  const cwd = tempFolder();
  writeFiles(cwd, { 'tools.toml': toolsetsToml(THREE) });
  const terminal = onTerminal(cwd, 'toolsets', 'create', 'dev');
  await waitFor(() => terminal.text().includes('6 of 6'));
  terminal.send('docker.ps');
  await waitFor(() => terminal.text().includes('1 of 6'));
  terminal.send(' ');
  await waitFor(() => /1 chosen, about \d+ tokens/.test(terminal.text()));
  for (const _ of 'docker.ps') terminal.send('\x7f');
  await waitFor(() => terminal.text().lastIndexOf('6 of 6') > terminal.text().lastIndexOf('1 of 6'));
  terminal.send(' ');
  await waitFor(() => terminal.text().includes('2 chosen'));
  terminal.send('\r');
  expect(await terminal.exited).toBe(0);
  const saved = JSON.parse(readFileSync(join(cwd, '.toolgate/toolsets/dev.json'), 'utf8'));
  expect(saved.tools).toMatchObject([{ namespacedName: 'git.status' }, { namespacedName: 'docker.ps' }]);
});

const leaving: [string, string][] = [
  ['Ctrl-C', '\x03'],
  ['Ctrl-D', '\x04'],
  ['escape', '\x1b'],
];

it.skipIf(isMissing('script')).each(onePart(3, leaving))(
  'the toolset picker saves nothing if the user leaves with %s',
  async (_, key) => {
    const cwd = tempFolder();
    writeFiles(cwd, { 'tools.toml': toolsetsToml(THREE) });
    const terminal = onTerminal(cwd, 'toolsets', 'create', 'dev');
    await waitFor(() => terminal.text().includes('6 of 6'));
    terminal.send(key);
    expect(await terminal.exited).toBe(2);
    expect(terminal.text()).toContain('Nothing was changed');
    expect(existsSync(join(cwd, '.toolgate/toolsets/dev.json'))).toBe(false);
  },
);

it.skipIf(noPython !== undefined)('the toolset picker closes its servers and exits on SIGTERM', async () => {
  const cwd = tempFolder();
  writeFiles(cwd, { 'tools.toml': toolsetsToml(THREE) });
  const steps = [['escape leaves', { kill: 'SIGTERM' }]] as const;
  const ended = await runOnTerminal(['toolsets', 'create', 'dev'], steps, { cwd, env: {} });
  expect(ended).toMatchObject({ code: 130, isSane: true });
  expect(existsSync(join(cwd, '.toolgate/toolsets/dev.json'))).toBe(false);
});
