/** `toolgate doctor`: exit code 0 for OK, 1 for warnings, 2 for errors, each with a remedy. */
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { CONTROL, runCli } from '../support/cli.ts';
import { server, serversToml, startHttpServer } from '../support/server.ts';

interface Finding {
  readonly level: string;
  readonly about: string;
  readonly message: string;
  readonly stderr?: string;
}

async function findings(options: Parameters<typeof runCli>[1]): Promise<{ code: number | null; findings: Finding[] }> {
  const { code, stdout } = await runCli(['doctor', '--json'], options);
  return { code, ...(JSON.parse(stdout) as { findings: Finding[] }) };
}

const crashing = server('crash', '--crash-on-start');

describe('toolgate doctor', () => {
  it('exits 0 if everything is fine', async () => {
    const { code, stdout, stderr } = await runCli(['doctor'], { config: serversToml({ up: server('basic') }) });
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toMatch(/^✓ configuration: .*tools\.toml$/m);
    expect(stdout).toMatch(/^✓ up: up, 4 tools, protocol 2025-11-25 basic 1\.0\.0$/m);
  });

  it('exits 1 if a server failed, and shows its stderr output', async () => {
    const { code, stdout } = await runCli(['doctor'], { config: serversToml({ up: server('basic'), bad: crashing }) });
    expect(code).toBe(1);
    expect(stdout).toMatch(/^! bad: down: exited with code 1$/m);
    expect(stdout).toMatch(/^ {4}crash: as told, at the start$/m);
    expect(stdout).toMatch(/^✓ up: /m);
  });

  it('exits 2 if the failed server is required', async () => {
    const config = `[[servers]]\nnamespace = "bad"\nrequired = true\ncommand = ${JSON.stringify(crashing)}\n`;
    expect(await findings({ config })).toMatchObject({
      code: 2,
      findings: [
        { level: 'ok', about: 'configuration' },
        { level: 'broken', about: 'bad', message: 'down: exited with code 1', stderr: 'crash: as told, at the start' },
      ],
    });
  });

  it('says what a server that failed printed in place of MCP, and what it repeats only once', async () => {
    const noisy = `${process.execPath} -e 'console.error("failed at " + Date.now()); process.exit(1)'`;
    const printing = `${process.execPath} -e 'setInterval(() => console.log("Welcome, not MCP!"), 50)'`;
    const config = `start_timeout = "2s"\n${serversToml({ noisy, printing })}`;
    const { findings: found } = await findings({ config });
    expect(found.find(({ about }) => about === 'printing')?.message).toMatch(
      /^down: did not start and list its tools within 2 s; .*\. It wrote a line that is not a JSON-RPC message: "Welcome, not MCP!"/,
    );
    const said = found.find(({ about }) => about === 'noisy')?.stderr ?? '';
    expect(said).toMatch(/^failed at \d+$/);
  });

  it.each([
    ['a key that nobody knows', 'servrs = []\n', 'tools.toml:1: servrs: unknown key. Did you mean "servers"'],
    ['a value of the wrong type', '[[servers]]\nnamespace = 5\n', 'tools.toml:2: servers[0].namespace: '],
    ['a file that is no TOML', 'x = = 1\n', 'tools.toml:1'],
    ['a variable that is not set', '[[servers]]\nurl = "http://${NOT_SET_ANYWHERE}/mcp"\n', 'NOT_SET_ANYWHERE'],
  ])('exits 2 for %s, with the location and the remedy', async (_, config, message) => {
    const { code, findings: found } = await findings({ config });
    expect(code).toBe(2);
    expect(found).toMatchObject([{ level: 'broken', about: 'configuration' }]);
    expect(found[0]!.message).toContain(message);
  });

  it('exits 2 without a configuration', async () => {
    const { code, findings: found } = await findings({});
    expect(code).toBe(2);
    expect(found[0]!.message).toContain('There is no configuration in');
  });

  it('warns about names that two servers claim', async () => {
    const both = { same: server('basic', '--tools', 'a,b'), other: server('basic', '--tools', 'c') };
    const twice = `${serversToml(both)}\n${serversToml({ same: server('basic', '--tools', 'b', '--name', 'second') })}`;
    const { code, findings: found } = await findings({ config: twice });
    expect(code).toBe(1);
    expect(found.filter(({ level }) => level === 'warning')).toMatchObject([
      {
        message: expect.stringMatching(
          /^tool "same_b" is dropped: server "same", which is listed first, has that name/,
        ) as string,
      },
    ]);
  });

  it('warns about ignored configuration files', async () => {
    const files = { 'toolgate.toml': serversToml({ up: server('basic') }), '.mcp.json': '{"mcpServers":{}}' };
    const { code, findings: found } = await findings({ files });
    expect(code).toBe(1);
    expect(found).toContainEqual({
      level: 'warning',
      about: 'configuration',
      message: 'toolgate.toml is used, and .mcp.json is ignored. Choose one with --config.',
    });
  });

  it('warns if no server is configured', async () => {
    expect(await findings({ config: '' })).toMatchObject({
      code: 1,
      findings: [{}, { message: 'No servers are configured.' }],
    });
  });

  it('suggests how to fix a command that does not exist', async () => {
    const { code, stdout } = await runCli(['doctor'], { config: serversToml({ gone: 'no-such-program-anywhere' }) });
    expect(code).toBe(1);
    expect(stdout).toContain('"no-such-program-anywhere" was not found; install it or give its full path');
  });

  it('reports an HTTP server that refuses the connection', async () => {
    const refused = await findings({ config: '[[servers]]\nnamespace = "web"\nurl = "http://127.0.0.1:9/mcp"\n' });
    expect(refused.code).toBe(1);
    expect(refused.findings[1]).toMatchObject({
      about: 'web',
      message: expect.stringContaining('refused the connection') as string,
    });
  });

  it('reports an HTTP server that has no MCP endpoint at that path', async () => {
    const { url } = await startHttpServer();
    const config = `[[servers]]\nnamespace = "web"\nurl = "${url.replace('/mcp', '/nowhere')}"\n`;
    const { code, findings: found } = await findings({ config });
    expect(code).toBe(1);
    expect(found[1]).toMatchObject({
      level: 'warning',
      about: 'web',
      message: expect.stringMatching(/404.*check the path of its url/) as string,
    });
  });

  it('removes the escape sequences of a server', async () => {
    const script = fileURLToPath(new URL('escape-server.mjs', import.meta.url));
    const command = `${process.execPath} ${script}`;
    const config = serversToml({ evil: command, failing: `${command} --fail`, refusing: `${command} --refuse` });
    const { stdout, stderr } = await runCli(['doctor'], { config });
    expect(stdout).toContain('red ?[31m title ?]0;owned? csi ?2J back ??? over');
    expect(stdout + stderr).not.toMatch(CONTROL);
  });
});
