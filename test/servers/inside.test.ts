/** A wrapper script hides from the configuration that a server is Toolgate itself. It must not start itself without end. */
import { chmodSync, existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { runCli } from '../support/cli.ts';
import { bin, startStdio } from '../support/gateway.ts';
import { descendants, waitFor } from '../support/processes.ts';
import { server, serversToml } from '../support/server.ts';
import { useProcesses } from '../support/switch.ts';
import { tempFolder, writeFiles } from '../support/temp.ts';
import { isWide, onePart } from '../support/wide.ts';

useProcesses();

/**
 * A folder with an executable script that becomes Toolgate with these arguments. A server does not get our TOOLGATE_SHARED,
 * and gateways in the background would outlive the test.
 */
function wrapped(args: string, files: Record<string, string>): string {
  const cwd = tempFolder({
    wrapper: `#!/bin/sh\nexport TOOLGATE_SHARED=0\nexec ${process.execPath} ${bin} ${args}\n`,
    ...files,
  });
  chmodSync(join(cwd, 'wrapper'), 0o755);
  return cwd;
}

const OWN_AGAIN = /runs already, and one of its servers starts it again: that would never end/;

describe('a wrapper that starts Toolgate', () => {
  const formats: [string, (cwd: string) => string][] = [
    ['.mcp.json', (cwd: string) => JSON.stringify({ mcpServers: { gw: { command: join(cwd, 'wrapper') } } })],
    [
      'tools.toml',
      (cwd: string) => `[[servers]]\nnamespace = "gw"\ncommand = ${JSON.stringify(join(cwd, 'wrapper'))}\n`,
    ],
  ];

  it.each(onePart(2, formats))(
    'with the same %s ends with a clear message, and no process is left',
    async (name, text) => {
      const cwd = wrapped('"$@"', {});
      writeFiles(cwd, { [name]: text(cwd) });
      const { code, stdout } = await runCli(['doctor', '--json'], { cwd });
      const { findings } = JSON.parse(stdout) as { findings: { about: string; message: string; stderr?: string }[] };
      const gw = findings.find(({ about }) => about === 'gw');
      expect([code, gw?.message, gw?.stderr]).toEqual([
        1,
        expect.stringContaining('exited with code 2'),
        expect.stringMatching(OWN_AGAIN),
      ]);
      const gateway = await startStdio({ cwd, args: ['--log-level', 'info'] });
      await waitFor(() => OWN_AGAIN.test(gateway.stderr()));
      await waitFor(() => descendants(gateway.pid).length <= 2);
    },
  );

  it('with another configuration is a server like any other', async () => {
    const inner = tempFolder({
      'tools.toml': `controls = []\n${serversToml({ a: server('basic', '--tools', 'one') })}`,
    });
    const cwd = wrapped(`--config ${join(inner, 'tools.toml')}`, {});
    const config = `controls = []\n${serversToml({ gw: join(cwd, 'wrapper') })}`;
    const { code, stdout } = await runCli(['call', 'gw_a_one'], { cwd, config });
    expect([code, stdout]).toEqual([0, expect.stringContaining('one')]);
  });

  it('with a copy of its configuration ends after a few of them', async () => {
    const cwd = wrapped('', {});
    // Each one writes another file, so none finds its own among those around it.
    const script = `#!/bin/sh\ncopy=$(mktemp -d ${cwd}/copyXXXXXX)\ncp ${cwd}/tools.toml $copy\necho "$TOOLGATE_INSIDE" >> ${cwd}/depths\nexport TOOLGATE_SHARED=0\nexec ${process.execPath} ${bin} --config $copy/tools.toml\n`;
    writeFiles(cwd, { wrapper: script });
    const config = `start_wait = "0s"\n${serversToml({ gw: join(cwd, 'wrapper') })}`;
    // As if others were around it already, because each of them takes a second to start.
    const around = ['a', 'b', 'c', 'd', 'e'].map((name) => `/${name}/tools.toml`);
    const env = isWide ? {} : { TOOLGATE_INSIDE: JSON.stringify(around) };
    const gateway = await startStdio({ cwd, config, env, args: ['--log-level', 'debug'] });
    await waitFor(() => {
      if (!existsSync(join(cwd, 'depths'))) return false;
      const depths = readFileSync(join(cwd, 'depths'), 'utf8').trim().split('\n');
      return Math.max(...depths.map((line) => (JSON.parse(line) as string[]).length)) === 8;
    }, 60_000);
    expect(descendants(gateway.pid).length).toBeLessThan(60);
  });

  it('through a tool of a folder is refused as well', async () => {
    const run = `import { execFileSync } from 'node:child_process';
export const again = { description: 'Starts Toolgate', inputSchema: { type: 'object' }, execute() {
  try { return execFileSync(process.execPath, [${JSON.stringify(bin)}, 'serve', '--port', '0'], { cwd: ${JSON.stringify('CWD')}, encoding: 'utf8', stdio: 'pipe' }); }
  catch (error: any) { return error.status + ' ' + error.stderr; }
} };\n`;
    const cwd = tempFolder({ 'tools.toml': 'controls = []\nfolders.isolation = "off"\n' });
    writeFiles(cwd, { '.toolgate/tools/x/again.ts': run.replace('CWD', cwd) });
    const { stdout } = await runCli(['call', 'x_again'], { cwd });
    expect(stdout).toMatch(/^2 /);
    expect(stdout).toMatch(OWN_AGAIN);
  });
});
