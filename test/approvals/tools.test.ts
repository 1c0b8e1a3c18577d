/** Tools that ask a person: for access to another tool, and for permission prompts of a client. */
import { join } from 'node:path';
import type { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { beforeAll, describe, expect, it } from 'vitest';
import { readPetitions } from '../../src/index.ts';
import { type Line, waitForLines } from '../support/audit-records.ts';
import { runCli } from '../support/cli.ts';
import { type HttpGateway, startHttp } from '../support/gateway.ts';
import { waitFor } from '../support/processes.ts';
import { openLegacy } from '../support/questions.ts';
import { server, serversToml } from '../support/server.ts';

const env = { TOOLGATE_OPERATOR_KEY: 'the-key-of-the-operator' };
const config = `controls = ["request", "prompt"]
exposed_tools = { a = ["echo"] }
denied_tools = { a = ["raw"] }
[[security.grants]]
tools = ["a.whoami"]
duration = "3s"
approval = false
[[security.grants]]
agents = ["anonymous"]
tools = ["a.*", "b.*"]
[[security.prompts]]
tools = ["Read", "mcp__files__*"]
action = "allow"
[[security.prompts]]
tools = ["WebFetch"]
action = "deny"
[audit]
enabled = true
${serversToml({ a: server('basic') })}`;

let gateway: HttpGateway;
beforeAll(async () => {
  gateway = await startHttp({ config, env });
});

const textOf = (result: unknown) => (result as { content: { text: string }[] }).content[0]!.text;
const call = async (client: Client, name: string, args: Record<string, unknown> = {}) =>
  textOf(await client.callTool({ name, arguments: args }));
const names = async (client: Client) => (await client.listTools()).tools.map(({ name }) => name);
const ask = (client: Client, tool: string) => call(client, 'request_access', { tool, reason: 'to count sheep' });
const decide = async (decision: string, ...more: string[]) => {
  const { id, ...petition } = await waitFor(
    async () => (await readPetitions(join(gateway.cwd, '.toolgate')))[0] ?? null,
  );
  await runCli(['approvals', decision, id, ...more], { cwd: gateway.cwd, env });
  return petition;
};

describe('request_access', () => {
  it('grants access by a rule at once, for its duration, and announces the changed list', async () => {
    const { client, notifications } = await gateway.connect();
    expect(await names(client)).toEqual(['request_access', 'approval_prompt', 'a_echo']);
    expect(await call(client, 'a_whoami')).toContain('item_unknown');
    expect(await ask(client, 'a.whoami')).toMatch(/^You may use "a_whoami" until \d{4}-/);
    expect(await ask(client, 'a_whoami')).toBe('You may use "a_whoami" already.');
    expect(await names(client)).toContain('a_whoami');
    expect(await call(client, 'a_whoami')).not.toContain('item_unknown');
    const told = () => JSON.stringify(notifications).split('tools/list_changed').length - 1;
    await waitFor(() => told() >= 2);
    expect(await names(client)).not.toContain('a_whoami');
    expect(await call(client, 'a_whoami')).toContain('item_unknown');
  });

  it('otherwise asks a person, who sees the reason, and grants access to that agent only', async () => {
    const { client } = await gateway.connect();
    const asking = ask(client, 'a_count');
    const petition = await decide('approve', '--for', '30m');
    expect(petition).toMatchObject({ kind: 'access', tool: 'a_count', arguments: 'a.count', reason: 'to count sheep' });
    expect(await asking).toContain('You may use "a_count" until');
    expect(await call(client, 'a_count')).toMatch(/^\d+$/);
    const isGrant = ({ act, detail }: Line) => act === 'access_granted' && String(detail).startsWith('a.count until ');
    const [line] = await waitForLines(gateway.cwd, 1, isGrant);
    expect(line).toMatchObject({ agent: 'anonymous', detail: expect.stringMatching(/by .*: to count sheep$/) });
  });

  it('gives the same refusal for unknown tools and for tools that can never be granted', async () => {
    const { client } = await gateway.connect();
    const said: string[] = [];
    for (const [tool, decision] of [
      ['b.nothing', 'approve'],
      ['a.raw', 'approve'],
      ['b.other', 'deny'],
    ] as const) {
      const asking = ask(client, tool);
      await decide(decision);
      said.push((await asking).replace(tool, 'TOOL'));
    }
    expect(new Set(said)).toEqual(
      new Set([
        JSON.stringify({
          success: false,
          result: null,
          code: 'not_approved',
          message: 'Access to "TOOL" was not granted.',
        }),
      ]),
    );
    expect(await ask(client, 'c.thing')).toContain('No rule lets you request access to \\"c.thing\\".');
    expect(await call(client, 'request_access', { tool: 'a.count' })).toContain('"reason\\" must be a string');
  });
});

describe('approval_prompt', () => {
  const prompt = async (client: Client, tool: string, input: object = { a: 1 }) =>
    JSON.parse(await call(client, 'approval_prompt', { tool_name: tool, input, tool_use_id: 'toolu_1' })) as unknown;

  it('applies the rules and answers in the format of Claude Code', async () => {
    const { client } = await gateway.connect();
    expect(await prompt(client, 'Read')).toEqual({ behavior: 'allow', updatedInput: { a: 1 } });
    expect(await prompt(client, 'mcp__files__read')).toEqual({ behavior: 'allow', updatedInput: { a: 1 } });
    expect(await prompt(client, 'WebFetch')).toEqual({
      behavior: 'deny',
      message: 'security.prompts[1] does not allow it.',
    });
  });

  it('asks a person if no rule matches', async () => {
    const { client } = await gateway.connect();
    const asking = prompt(client, 'Bash', { command: 'rm -rf /' });
    expect(await decide('deny', '--reason', 'no')).toMatchObject({
      kind: 'prompt',
      arguments: '{"command":"rm -rf /"}',
    });
    expect(await asking).toEqual({
      behavior: 'deny',
      message: expect.stringMatching(/^Not approved \(by .*\): no\.$/),
    });
    const again = prompt(client, 'Bash', { command: 'ls' });
    await decide('approve');
    expect(await again).toEqual({ behavior: 'allow', updatedInput: { command: 'ls' } });
  });

  it('asks the person at the client where the configuration says so', async () => {
    const at = await startHttp({ config: `${config}\n[security]\napprovers = "client"\n`, env });
    const { client } = await openLegacy(at, () => ({ action: 'accept' }));
    expect(await prompt(client, 'Bash', {})).toEqual({ behavior: 'allow', updatedInput: {} });
  });

  it('refuses invalid input', async () => {
    const { client } = await gateway.connect();
    expect(await call(client, 'approval_prompt', { tool_name: 'x' })).toContain('input\\" must be an object');
    expect(await call(client, 'approval_prompt', { tool_name: '', input: {} })).toContain('tool_name');
  });
});
