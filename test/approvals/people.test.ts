/** People who approve under their own name: their keys, their roles, and calls that need two of them. */
import { createHash } from 'node:crypto';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import type { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { beforeAll, describe, expect, it } from 'vitest';
import { type ApprovalRequest, readApprovalRequests } from '../../src/index.ts';
import { waitForLines } from '../support/audit-records.ts';
import { runCli } from '../support/cli.ts';
import { type HttpGateway, startHttp } from '../support/gateway.ts';
import { waitFor } from '../support/processes.ts';
import { server, serversToml } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';

const OPERATOR = 'the-key-of-the-operator';
const ANN = 'the-own-key-of-ann';
const BOB = 'the-own-key-of-bob';
const hash = (key: string) => createHash('sha256').update(key).digest('hex');
const env = { TOOLGATE_OPERATOR_KEY: OPERATOR };
const config = `controls = []
[security]
dangerous_tools = { a = ["count", "echo", "whoami"] }
[security.people]
ann = { key_sha256 = "${hash(ANN)}" }
bob = { key_sha256 = ["${hash('an-older-key-of-bob')}", "${hash(BOB)}"] }
[security.roles]
ops = ["ann", "bob"]
[[security.confirm]]
tools = ["a.echo"]
approvers = "role:ops"
require = 2
[[security.confirm]]
tools = ["a.whoami"]
approvers = ["operator", "ann"]
require = 2
[audit]
enabled = true
${serversToml({ a: server('basic') })}`;

let gateway: HttpGateway;
let client: Client;
beforeAll(async () => {
  gateway = await startHttp({ config, env });
  client = (await gateway.connect()).client;
});

const call = async (name: string, args: Record<string, unknown> = {}) =>
  ((await client.callTool({ name, arguments: args })).content as { text: string }[])[0]!.text;
/** The request that waits: the gateway has it, and its file is as it is now. The file of an earlier one may be left for a moment. */
const waiting = (): Promise<ApprovalRequest> =>
  waitFor(async () => {
    const reply = await fetch(`${gateway.origin}/admin/approvals`, {
      headers: { authorization: `Bearer ${OPERATOR}` },
    });
    const { approvals } = (await reply.json()) as { approvals: ApprovalRequest[] };
    const files = await readApprovalRequests(join(gateway.cwd, '.toolgate'));
    const isWritten = ({ id, approved }: ApprovalRequest) =>
      files.some((file) => file.id === id && file.approved.length === approved.length);
    return approvals.find(isWritten) ?? null;
  });
const post = async (key: string, id: string, body: object = { decision: 'approve' }) => {
  const reply = await gateway.post(JSON.stringify(body), { authorization: `Bearer ${key}` }, `/admin/approvals/${id}`);
  return { status: reply.status, text: await reply.text() };
};
const cli = (key: Record<string, string>, ...args: string[]) =>
  runCli(['approvals', ...args], { cwd: gateway.cwd, env: key });
const lines = (id: string, act: string) =>
  waitForLines(gateway.cwd, 1, (line) => line.act === act && String(line.detail).includes(id));

describe('a person with a key of their own', () => {
  it('approves over HTTP, and the audit has their name, whatever they say', async () => {
    const calling = call('a_count');
    const { id, approvers } = await waiting();
    expect(approvers).toEqual(['ann', 'bob', 'operator']);
    expect(await post(ANN, id, { decision: 'approve', by: 'bob' })).toMatchObject({ status: 200 });
    expect(await calling).toBe('1');
    expect((await lines(id, 'approval_approved'))[0]!.detail).toMatch(/, by ann$/);
  });

  it('decides on the command line, with --url and without', async () => {
    for (const [key, more] of [
      [ANN, []],
      [BOB, ['--url', gateway.origin]],
    ] as const) {
      const calling = call('a_count');
      const { id } = await waiting();
      const own = { TOOLGATE_APPROVER_KEY: key };
      expect((await cli(own, 'list', ...more)).stdout).toContain(id);
      expect((await cli(own, 'deny', id, ...more)).stdout).toBe(`Denied ${id}.\n`);
      expect(await calling).toContain(`not approved (by ${key === ANN ? 'ann' : 'bob'})`);
    }
  });

  it('can decide, and nothing else of the operator', async () => {
    for (const path of ['/admin/status', '/admin/tools/a_count'])
      expect((await fetch(gateway.origin + path, { headers: { authorization: `Bearer ${ANN}` } })).status).toBe(403);
    const listed = await fetch(`${gateway.origin}/admin/approvals`, { headers: { authorization: `Bearer ${ANN}x` } });
    expect(listed.status).toBe(403);
    const { stderr } = await cli({ TOOLGATE_APPROVER_KEY: `${ANN}x` }, 'list', '--url', gateway.origin);
    expect(stderr).toContain('does not know your key');
  });

  it('is told apart from an operator who uses their name', async () => {
    const calling = call('a_count');
    const { id } = await waiting();
    await post(OPERATOR, id, { decision: 'approve', by: 'ann' });
    expect(await calling).toMatch(/^\d+$/);
    expect((await lines(id, 'approval_approved'))[0]!.detail).toMatch(/, by the operator \(ann\)$/);
  });
});

describe('a rule that requires two people', () => {
  it('holds the call until two different ones have approved, and the audit names both', async () => {
    const calling = call('a_echo', { a: 1 });
    const { id, require, approvers } = await waiting();
    expect([require, approvers]).toEqual([2, ['ann', 'bob']]);
    expect(JSON.parse((await post(ANN, id)).text)).toEqual({ id, decision: 'approve', more: 1 });
    expect(JSON.parse((await post(ANN, id)).text)).toMatchObject({ more: 1 });
    await waitFor(async () => (await waiting()).approved.includes('ann'));
    expect((await cli(env, 'show', id)).stdout).toContain('2 of "ann" and "bob"; approved by "ann"');
    expect((await cli({ TOOLGATE_APPROVER_KEY: BOB }, 'approve', id)).stdout).toBe(`Approved ${id}.\n`);
    expect(await calling).toBe('{"a":1}');
    expect((await lines(id, 'approval_agreed'))[0]!.detail).toMatch(/, by ann$/);
    expect((await lines(id, 'approval_approved'))[0]!.detail).toMatch(/, by ann and bob$/);
  });

  it('is not satisfied by the operator key, which can only deny', async () => {
    const calling = call('a_echo', { a: 2 });
    const { id } = await waiting();
    expect(await post(OPERATOR, id)).toMatchObject({
      status: 403,
      text: expect.stringContaining('Only \\"ann\\" or \\"bob\\"'),
    });
    expect((await cli(env, 'approve', id)).stderr).toContain(`Only "ann" or "bob" may approve ${id}`);
    expect((await waiting()).approved).toEqual([]);
    expect((await cli(env, 'deny', id)).stdout).toBe(`Denied ${id}.\n`);
    expect(await calling).toContain('not_approved');
  });

  it('counts the operator key as one of them where it is named', async () => {
    const calling = call('a_whoami');
    const { id } = await waiting();
    expect((await cli(env, 'approve', id)).stdout).toBe(`Approved ${id}. 1 more approval is needed.\n`);
    expect((await cli({ TOOLGATE_APPROVER_KEY: ANN }, 'approve', id)).stdout).toBe(`Approved ${id}.\n`);
    expect(await calling).not.toContain('not_approved');
  });

  it('ends with one no', async () => {
    const calling = call('a_echo', { a: 3 });
    const { id } = await waiting();
    await post(ANN, id);
    await post(BOB, id, { decision: 'deny', reason: 'too late today' });
    expect(await calling).toContain('too late today');
  });
});

it('`approvals key` makes a key that only its owner can read, and prints its hash for the configuration', async () => {
  const home = tempFolder();
  const first = await runCli(['approvals', 'key'], { env: { HOME: home, XDG_CONFIG_HOME: join(home, '.config') } });
  expect(first.stdout).toMatch(/\[security\.people\.YOUR-NAME\]\nkey_sha256 = "[0-9a-f]{64}"\n$/);
  expect(statSync(join(home, '.config/toolgate/approver.key')).mode & 0o777).toBe(0o600);
  const again = await runCli(['approvals', 'key'], { env: { HOME: home, XDG_CONFIG_HOME: join(home, '.config') } });
  expect(again.stdout).toBe(first.stdout);
});

it.each([
  ['approvers = ["anna"]', 'has "anna", who is not in security.people. Did you mean "ann"?'],
  ['approvers = ["role:dev"]', 'has "role:dev", but security.roles has no "dev".'],
  ['require = 4', 'asks for the approval of 4 people, but only 3 can approve'],
  ['approvers = "operator"\nrequire = 2', 'asks for the approval of 2 people, but only 1 can approve'],
  ['roles = { ops = ["eve"] }', 'names "eve", who is not in security.people'],
  ['people.eve = { key_sha256 = "abc" }', 'is not a SHA-256 hash of 64 hexadecimal digits'],
  ['people.operator = { key_sha256 = "abc" }', 'is not a valid name here'],
])('a configuration with %s is refused', async (line, problem) => {
  const people = line.startsWith('people')
    ? ''
    : `people = { ann = { key_sha256 = "${hash(ANN)}" }, bob = { key_sha256 = "${hash(BOB)}" } }`;
  const { code, stdout } = await runCli(['doctor'], { config: `[security]\n${line}\n${people}\n` });
  expect([code, stdout]).toEqual([2, expect.stringContaining(problem)]);
});
