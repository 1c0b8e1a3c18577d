/** What `toolgate serve` prints: first its URL, then how to connect, then what is served. */
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { CONTROL, startCli } from '../support/cli.ts';
import { waitFor } from '../support/processes.ts';
import { server, serversToml } from '../support/server.ts';

async function served(config: string, env: Record<string, string> = {}): Promise<string> {
  const child = startCli(['serve', '--port', '0'], { config, env });
  await waitFor(() => /^Serving:\n(.*\n)+|No servers/m.test(child.stdout()));
  return child.stdout();
}

describe('toolgate serve', () => {
  it('prints the URL, the claude command, a snippet and then what is served, in that order', async () => {
    const config = serversToml({
      up: server('basic', '--resources', 'a://b', '--prompts', 'p,q', '--slow-start', 300),
      gone: 'no-such-program-anywhere',
    });
    const text = await served(config);
    const url = /http:\/\/127\.0\.0\.1:\d+\/mcp/.exec(text)![0];
    const places = [
      `Toolgate is listening on ${url}`,
      'No BEARER_TOKEN is set',
      `claude mcp add --transport http toolgate ${url}`,
      '"mcpServers"',
      'Serving:',
      '✓ up',
      '✗ gone',
    ].map((part) => text.indexOf(part));
    expect(places).not.toContain(-1);
    expect(places).toEqual(places.toSorted((a, b) => a - b));
    expect(text).toMatch(/✓ up +4 tools, 1 resource, 2 prompts$/m);
    expect(text).toMatch(/✗ gone +down: could not be started: "no-such-program-anywhere" was not found/);
  });

  it('prints the URL before the servers are up', async () => {
    const config = serversToml({ up: server('basic', '--slow-start', 2000) });
    const child = startCli(['serve', '--port', '0'], { config });
    const url = await waitFor(() => /http:\/\/127\.0\.0\.1:\d+/.exec(child.stdout())?.[0]);
    expect((await fetch(`${url}/health`)).status).toBe(200);
    expect((await fetch(`${url}/ready`)).status).toBe(503);
    expect(child.stdout()).not.toContain('Serving:');
  });

  it('prints a snippet that is valid JSON and refers to the token by its variable name', async () => {
    const environments: Record<string, string>[] = [{}, { BEARER_TOKEN: 'very-secret' }];
    for (const env of environments) {
      const text = await served('', env);
      const snippet = JSON.parse(/^ {2}\{\n[\s\S]*?^ {2}\}$/m.exec(text)![0]) as { mcpServers: { toolgate: object } };
      expect(snippet.mcpServers.toolgate).toMatchObject({
        type: 'http',
        url: /http:\S+\/mcp/.exec(text)![0],
        ...('BEARER_TOKEN' in env && { headers: { Authorization: 'Bearer ${BEARER_TOKEN}' } }),
      });
      expect(text).not.toContain('very-secret');
      expect(text.includes('--header "Authorization: Bearer $BEARER_TOKEN"')).toBe('BEARER_TOKEN' in env);
    }
  });

  it('prints no escape sequence of a server', async () => {
    const script = fileURLToPath(new URL('escape-server.mjs', import.meta.url));
    const command = `${process.execPath} ${script}`;
    const text = await served(serversToml({ refusing: `${command} --refuse`, evil: command }));
    expect(text).toContain('red ?[31m title');
    expect(text).not.toMatch(CONTROL);
  });

  it('ends on SIGTERM and on SIGINT with exit code 0', async () => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) {
      const child = startCli(['serve', '--port', '0'], { config: serversToml({ up: server('basic') }), process: true });
      await waitFor(() => child.stdout().includes('Serving:'));
      expect(await child.stop(signal)).toEqual({ code: 0, signal: null });
    }
  });
});
