/**
 * The same with an independent client, written neither by us nor for the SDK's tests: the command line of the
 * Inspector.
 */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, it } from 'vitest';
import { doors, isModern, isPipe } from '../support/doors.ts';
import { bin, startHttp } from '../support/gateway.ts';
import { inspect } from '../support/inspector.ts';
import { running, waitFor } from '../support/processes.ts';
import { fixture, server, serversToml } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';

const config = `active_toolsets = ["git_s*", "git_log*"]\n${serversToml({
  git: server(
    'basic',
    '--name',
    'git',
    '--tools',
    'status,push',
    '--resources',
    'log://1',
    '--templates',
    'log://{id}/x',
    '--prompts',
    'p',
  ),
})}`;

interface Answer {
  readonly result?: Record<string, unknown>;
  readonly error?: { readonly code?: unknown; readonly message?: string };
}

describe.each([...doors, 'sse'] as const)('the MCP Inspector over %s', { timeout: 120_000 }, (way) => {
  // The older transport, backed by the same sessions.
  const door = way === 'sse' ? 'http' : way;
  let target: string[];

  beforeAll(async () => {
    const era = ['--protocol-era', isModern(door) ? 'modern' : 'legacy'];
    if (isPipe(door)) {
      const cwd = tempFolder({ 'tools.toml': config });
      target = [...era, '--cwd', cwd, '-e', 'TOOLGATE_TRUST=1', '-e', 'TOOLGATE_SHARED=0', process.execPath, bin];
    } else {
      const { url, origin } = await startHttp({ config });
      target = [way === 'sse' ? `${origin}/sse` : url, '--transport', way === 'sse' ? 'sse' : 'http', ...era];
    }
  });

  async function ask(method: string, ...args: string[]) {
    const { code, json, stderr } = await inspect([...target, '--method', method, ...args]);
    expect(json, stderr).toBeDefined();
    return { code, ...(json as Answer) };
  }

  it('lists the activation tool and the active tools, with schemas that any client understands', async () => {
    const { code, result } = await ask('tools/list', '--strict');
    expect(code).toBe(0);
    expect(result?.tools).toMatchObject([
      {
        name: 'toolman_activate',
        description: expect.stringContaining('*git_status - Tool status\ngit_push - Tool push'),
      },
      { name: 'git_status', inputSchema: { type: 'object' } },
    ]);
  });

  it('calls a tool and activates one', async () => {
    const { result } = await ask('tools/call', '--tool-name', 'git_status', '--tool-arg', 'a=1');
    expect(JSON.stringify(result)).toContain('\\"tool\\":\\"status\\"');
    const lists = ['tools_on=["git_push"]', 'tools_off=[]', 'resources_on=[]', 'resources_off=[]'];
    const activation = await ask('tools/call', '--tool-name', 'toolman_activate', '--tool-arg', ...lists);
    expect(activation.result?.content).toContainEqual({ type: 'text', text: 'Activated 1 item.' });
  });

  it('lists and reads resources, templates and prompts', async () => {
    expect((await ask('resources/list')).result?.resources).toMatchObject([{ uri: 'git_log://1' }]);
    expect((await ask('resources/templates/list')).result?.resourceTemplates).toMatchObject([
      { uriTemplate: 'git_log://{id}/x' },
    ]);
    const { result } = await ask('resources/read', '--uri', 'git_log://7/x');
    expect(result?.contents).toMatchObject([{ uri: 'log://7/x', text: 'log://7/x from git' }]);
    expect((await ask('prompts/list')).result?.prompts).toMatchObject([{ name: 'git_p' }]);
    const prompt = await ask('prompts/get', '--prompt-name', 'git_p', '--prompt-args', 'topic=all');
    expect(JSON.stringify(prompt.result)).toContain('p from git {\\"topic\\":\\"all\\"}');
  });

  it('sets the log level if there is a session to set it for', async () => {
    const answer = await ask('logging/setLevel', '--log-level', 'debug');
    expect(answer).toMatchObject(
      isModern(door)
        ? { code: 1, error: { message: expect.stringContaining('not supported by the negotiated protocol') } }
        : { code: 0, result: {} },
    );
  });

  it('shows clear errors', async () => {
    const { code, error } = await ask('resources/read', '--uri', 'git_log://2');
    expect(code).toBe(1);
    expect(error?.message).toContain('There is no resource "git_log://2"');
  });
});

describe('the Inspector without a gateway', () => {
  const everything = fileURLToPath(
    new URL('../../node_modules/@modelcontextprotocol/server-everything/dist/index.js', import.meta.url),
  );

  it('lists and calls over stdio', async () => {
    const list = await inspect(['node', everything, '--method', 'tools/list']);
    expect(list).toMatchObject({ code: 0, json: { result: { tools: expect.any(Array) } } });
    const call = ['--method', 'tools/call', '--tool-name', 'echo', '--tool-arg', 'message=hi'];
    expect((await inspect(['node', everything, ...call])).stdout).toContain('Echo: hi');
  });

  it('reports an error, and a server that never answers', async () => {
    const unknown = await inspect(['node', fixture('basic'), '--method', 'tools/call', '--tool-name', 'nope']);
    expect(unknown).toMatchObject({ code: 5, json: { error: { code: 'tool_not_found' } } });
    const config = { mcpServers: { h: { command: 'node', args: [fixture('hang'), '--on', 'initialize'] } } };
    const cwd = tempFolder({ 'c.json': JSON.stringify(config) });
    const late = inspect(['--config', join(cwd, 'c.json'), '--server', 'h', '--method', 'tools/list'], {
      cwd,
      timeout: 3000,
    });
    await expect(late).rejects.toThrow('did not end within 3000 ms');
    await waitFor(() => running(fixture('hang')).length === 0);
  });
});
