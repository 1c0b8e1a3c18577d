/** What a person sees before they decide: everything, with nothing cut out of sight and nothing that looks like more. */
import { join } from 'node:path';
import type { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { beforeAll, describe, expect, it } from 'vitest';
import { type ApprovalRequest, readApprovalRequests } from '../../src/index.ts';
import { CONTROL, runCli } from '../support/cli.ts';
import { type HttpGateway, startHttp } from '../support/gateway.ts';
import { waitFor } from '../support/processes.ts';
import { server, serversToml } from '../support/server.ts';

const KEY = 'the-key-of-the-operator';
const env = { TOOLGATE_OPERATOR_KEY: KEY };
const FORGED = 'echo\n0123456789ab  1 s  claude  a_harmless';
const config = `controls = []
[security]
dangerous_tools = { a = ["*"] }
${serversToml({ a: server('basic', '--tools', ['echo', FORGED, 'left\u202etfel'].join(',')) })}`;

let gateway: HttpGateway;
let client: Client;
beforeAll(async () => {
  gateway = await startHttp({ config, env });
  client = (await gateway.connect()).client;
});

const cli = (...args: string[]) => runCli(['approvals', ...args], { cwd: gateway.cwd, env });
const waiting = (): Promise<ApprovalRequest> =>
  waitFor(async () => (await readApprovalRequests(join(gateway.cwd, '.toolgate')))[0] ?? null);

/** Calls a tool, looks at the approval request while it waits, and denies it. */
async function whileWaiting(name: string, args: object, look: (request: ApprovalRequest) => Promise<void>) {
  const calling = client.callTool({ name, arguments: args as Record<string, unknown> });
  const request = await waiting();
  try {
    await look(request);
  } finally {
    await cli('deny', request.id);
    await calling.catch(() => {});
  }
}

describe('long arguments', () => {
  const args = { padding: ' '.repeat(5_000), path: '/etc/shadow' };

  it('are shown with both ends in the list, which says how much it leaves out', () =>
    whileWaiting('a_echo', args, async () => {
      const { stdout } = await cli('list');
      expect(stdout).toMatch(/\{"padding":" {2,}… 48\d\d characters left out … .*"path":"\/etc\/shadow"\} \(security/);
      expect(stdout.trimEnd().split('\n')).toHaveLength(1);
    }));

  it('are whole in `show`, in JSON and over HTTP', () =>
    whileWaiting('a_echo', args, async ({ id }) => {
      const whole = JSON.stringify(args);
      expect((await cli('show', id)).stdout).toContain(JSON.stringify(args, null, 2));
      expect(JSON.parse((await cli('show', id, '--json')).stdout)).toMatchObject({ id, arguments: whole });
      const listed = await fetch(`${gateway.origin}/admin/approvals`, { headers: { authorization: `Bearer ${KEY}` } });
      expect(await listed.json()).toMatchObject({ approvals: [{ id, arguments: whole }] });
      expect((await runCli(['approvals', 'show', id, '--url', gateway.origin], { env })).stdout).toContain(
        '/etc/shadow',
      );
    }));

  it('cannot be approved from the list alone: --seen says that they were read', async () => {
    const calling = client.callTool({ name: 'a_echo', arguments: args });
    const { id } = await waiting();
    const refused = await cli('approve', id);
    expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining(`toolgate approvals show ${id}`)]);
    expect((await waiting()).id).toBe(id);
    expect((await cli('approve', id, '--seen')).stdout).toBe(`Approved ${id}.\n`);
    expect(JSON.stringify(await calling)).toContain('/etc/shadow');
  });

  it('are refused at once if nobody could read them', async () => {
    const result = await client.callTool({ name: 'a_echo', arguments: { text: 'x'.repeat(1_000_001) } });
    expect(JSON.stringify(result)).toMatch(/too_large.*too long to be read: 1000012 characters of at most 1000000/);
  });
});

describe('names and arguments with characters that cannot be seen', () => {
  it('cannot forge a row of the list', () =>
    whileWaiting(`a_${FORGED}`, { a: 'x\n0123456789ab  1 s' }, async ({ id }) => {
      const { stdout } = await cli('list');
      expect(stdout.trimEnd().split('\n')).toHaveLength(1);
      expect(stdout).toContain('a_echo\\u000a0123456789ab');
      const shown = (await cli('show', id)).stdout.split('\n');
      expect(shown.filter((line) => line.startsWith('0123456789ab'))).toEqual([]);
    }));

  it('are shown as escapes', () =>
    whileWaiting('a_left\u202etfel', { a: 'b\u202ec\u009b2J' }, async ({ id }) => {
      for (const verb of [['list'], ['show', id]]) {
        const { stdout } = await cli(...verb);
        expect(stdout).toContain('a_left\\u202etfel');
        expect(stdout).toContain('b\\u202ec\\u009b2J');
        expect(stdout).not.toMatch(CONTROL);
      }
    }));

  it('a key that is given twice is shown twice', async () => {
    const text = '{"path":"/tmp/x","path":"/etc/shadow"}';
    const calling = fetch(`${gateway.origin}/mcp`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        'mcp-protocol-version': '2026-07-28',
        'mcp-method': 'tools/call',
        'mcp-name': 'a_echo',
      },
      body: `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a_echo","arguments":${text},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`,
    });
    const { id } = await waiting();
    expect((await cli('show', id)).stdout).toContain(text);
    await cli('deny', id);
    expect((await calling).status).toBe(200);
  });
});
