/** Instructions that servers give to models: combined, each under the name of its server. */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { startHttp, startModernStdio, startStdio } from '../support/gateway.ts';
import { stdioServer } from '../support/modern-servers.ts';
import { waitFor } from '../support/processes.ts';
import { server } from '../support/server.ts';

const say = (text: string) => ['--instructions', text];
const CONFIG = [
  'controls = []',
  `[[servers]]\nnamespace = "git"\ncommand = ${JSON.stringify(server('basic', ...say('Commit often.\nPush "late".')))}`,
  `[[servers]]\nnamespace = "new"\ncommand = ${JSON.stringify(server('modern', ...say('Ask me.')))}`,
  `[[servers]]\nnamespace = "mute"\ncommand = ${JSON.stringify(server('basic'))}`,
  `[[servers]]\ncommand = ${JSON.stringify(server('basic', '--tools', 'bare', ...say('I have no prefix.')))}`,
].join('\n');

const MERGED = `# Server "git" (its names begin with "git_")

Commit often.
Push "late".

# Server "new" (its names begin with "new_")

Ask me.

# Server "server-"

I have no prefix.`;

describe('server instructions', () => {
  it('are included in initialize, for servers of both eras', async () => {
    const { client } = await startStdio({ config: CONFIG });
    expect(client.getInstructions()?.replace(/server-[0-9a-f]{8}/, 'server-')).toBe(MERGED);
  });

  it('are included in server/discover', async () => {
    const gateway = await startHttp({ config: CONFIG });
    const { client } = await gateway.connectModern();
    expect(client.getInstructions()?.replace(/server-[0-9a-f]{8}/, 'server-')).toBe(MERGED);
  });

  it('of a sleeping server are still included', async () => {
    const lazy = CONFIG.replaceAll('command =', 'start = "lazy"\ncommand =');
    const first = await startStdio({ config: lazy });
    await first.client.listTools();
    await first.stop();
    const { client, cwd } = await startModernStdio({ config: lazy, cwd: first.cwd });
    expect(client.getInstructions()?.replace(/server-[0-9a-f]{8}/, 'server-')).toBe(MERGED);
    rmSync(join(cwd, '.toolgate'), { recursive: true, force: true });
  });

  it('are left out if no server has any', async () => {
    const { client } = await startStdio({
      config: `controls = []\n[[servers]]\ncommand = ${JSON.stringify(server('basic'))}\n`,
    });
    expect(client.getInstructions()).toBeUndefined();
  });

  it('of one server are truncated if they are too long', async () => {
    const config = `controls = []\n[[servers]]\nnamespace = "a"\ncommand = ${JSON.stringify(server('basic', ...say('x'.repeat(50_000))))}\n`;
    const { client } = await startStdio({ config });
    expect(client.getInstructions()!.length).toBeLessThan(8_100);
    expect(client.getInstructions()).toMatch(/x…$/);
  });

  it('that are not text are ignored', async () => {
    const config = `controls = []\n[[servers]]\nnamespace = "a"\ncommand = ${JSON.stringify(stdioServer('--instructions'))}\n`;
    const { client } = await startStdio({ config });
    await waitFor(async () => (await client.listTools()).tools.length > 0);
    expect(client.getInstructions()).toBeUndefined();
  });
});
