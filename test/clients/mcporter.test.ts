/** mcporter, which can keep servers running in its own daemon between calls. */
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { bin, startHttp } from '../support/gateway.ts';
import { running, waitFor } from '../support/processes.ts';
import { tempFolder, writeFiles } from '../support/temp.ts';
import { nodeFor, type Run, runTool, wideTool } from '../support/tools.ts';
import { configWith } from './clients.ts';

let home: string;

beforeAll(async () => {
  const config = configWith('modern');
  const { url, origin } = await startHttp({ config });
  home = tempFolder({ 'tools.toml': config });
  const command = { command: process.execPath, args: [bin, '--no-shared', '--config', join(home, 'tools.toml')] };
  // Over HTTP it tries the newer transport first and falls back to the older one after the answer.
  const http = { http: { url }, sse: { url: `${origin}/sse` } };
  const mcpServers = { ...http, stdio: command, kept: { ...command, lifecycle: 'keep-alive' } };
  writeFiles(home, { 'mcporter.json': JSON.stringify({ mcpServers }) });
});

function mcporter(...args: string[]): Promise<Run> {
  const all = [wideTool('mcporter', 'dist', 'cli.js'), '--config', join(home, 'mcporter.json'), ...args];
  return runTool(nodeFor('mcporter', '24.0'), all, { cwd: home, env: { HOME: home } });
}

async function answer(...args: string[]): Promise<{ code: number | null; json: unknown }> {
  const { code, stdout, stderr } = await mcporter(...args);
  expect(stdout, stderr).toMatch(/^\{/);
  return { code, json: JSON.parse(stdout) };
}

describe.each(['http', 'sse', 'stdio', 'kept'])('mcporter with a gateway configured as "%s"', (name) => {
  it('lists tools with their schemas', async () => {
    const { code, json } = await answer('list', name, '--json');
    expect(code).toBe(0);
    expect(json).toMatchObject({ status: 'ok', tools: expect.arrayContaining([expect.anything()]) });
    const { tools } = json as { tools: { name: string }[] };
    expect(tools.find((one) => one.name === 'json_schema_2020_12_tool')).toMatchObject({
      inputSchema: { $defs: { address: { type: 'object' } } },
    });
  });

  it('calls a tool with arguments', async () => {
    const { code, json } = await answer('call', `${name}.test_x_mcp_header`, 'region=eu', '--output', 'json');
    expect(code).toBe(0);
    expect(JSON.stringify(json)).toContain('eu');
  });

  it('reports a failed tool and an unknown tool', async () => {
    const failed = await answer('call', `${name}.test_error_handling`, '--output', 'json');
    expect(failed).toMatchObject({ code: 1, json: { isError: true, content: [{ text: 'It fails on purpose.' }] } });
    const { stdout } = await mcporter('call', `${name}.test_simple_tex`, '--output', 'json');
    // A gateway that mcporter has just started does not know yet what its servers will have.
    expect(stdout).toMatch(/test_simple_text|still starting/);
  });

  it('lists and reads resources', async () => {
    const { json } = await answer('resource', name, '--json');
    expect(JSON.stringify(json)).toContain('"uri":"changing://first"');
    const read = await answer('resource', name, 'test://static-text', '--json');
    expect(read).toMatchObject({ code: 0, json: { contents: [{ text: 'A text that stays as it is.' }] } });
    const { code, json: refused } = await answer('resource', name, 'test://nothing', '--json');
    expect(code).toBe(1);
    expect(refused).toMatchObject({ error: expect.stringContaining('There is no resource "test://nothing"') });
  });
});

it('mcporter leaves no process behind when its daemon is stopped', async () => {
  expect(running(home)).not.toHaveLength(0);
  expect((await mcporter('daemon', 'stop')).code).toBe(0);
  await waitFor(() => running(home).length === 0);
});
