/** Calls that wait for an approval: who may decide, what happens to them, and that none runs without one. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import type { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { beforeAll, describe, expect, it } from 'vitest';
import { readPetitions } from '../../src/index.ts';
import { waitForLines } from '../support/audit-records.ts';
import { runCli } from '../support/cli.ts';
import { type HttpGateway, startHttp, startStdio } from '../support/gateway.ts';
import { waitFor } from '../support/processes.ts';
import { answersTo, askedIn, callModern, jsonOf, openLegacy, openLegacyPipe } from '../support/questions.ts';
import { server, serversToml } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';

const KEY = 'the-key-of-the-operator';
const SERVERS = serversToml({ a: server('basic') });
const config = (security = '', more = '') => `controls = []\n${more}
[security]
dangerous_tools = { a = ["count", "raw"] }
${security}
[[security.confirm]]
tools = ["a.echo"]
arguments = { path = "/etc/*" }
[audit]
enabled = true
${SERVERS}`;
const env = { TOOLGATE_OPERATOR_KEY: KEY };

let gateway: HttpGateway;
beforeAll(async () => {
  gateway = await startHttp({ config: config(), env });
});

const textOf = (result: unknown) => ((result as { content: { text: string }[] }).content[0]?.text ?? '') as string;
const call = async (client: Client, name: string, args: Record<string, unknown> = {}, options = {}) =>
  textOf(await client.callTool({ name, arguments: args }, undefined, options));
/** Waits for an open approval request of the gateway. */
/** The file of a request that a client answered at once can appear for a moment afterwards: `since` tells it apart. */
const waiting = (at: HttpGateway = gateway, since = '') =>
  waitFor(async () => {
    const all = await readPetitions(join(at.cwd, '.toolgate'));
    return all.find(({ asked }) => asked >= since) ?? null;
  });
const now = () => new Date().toISOString();
const cli = (args: string[], at: { cwd: string } = gateway) => runCli(['approvals', ...args], { cwd: at.cwd, env });

describe('a call of a dangerous tool', () => {
  it('runs when the operator approves it, and the approval request shows tool and arguments', async () => {
    const { client } = await gateway.connect();
    const calling = call(client, 'a_count', { token: 'x' });
    const petition = await waiting();
    expect(petition).toMatchObject({
      kind: 'call',
      tool: 'a_count',
      arguments: '{"token":"x"}',
      reason: 'security.dangerous_tools',
    });
    const { stdout } = await cli(['list']);
    expect(stdout).toContain(`${petition.id}  `);
    expect((await cli(['approve', petition.id])).stdout).toBe(`Approved ${petition.id}.\n`);
    expect(JSON.parse(await calling)).toBe(1);
    expect((await cli(['list'])).stdout).toBe('Nothing waits for an approval.\n');
  });

  it('does not run when it is denied, and the model gets the reason', async () => {
    const { client } = await gateway.connect();
    const calling = call(client, 'a_count');
    const { id } = await waiting();
    await cli(['deny', id, '--reason', 'not today']);
    expect(JSON.parse(await calling)).toMatchObject({
      code: 'not_approved',
      message: expect.stringMatching(/"a_count" needs the approval of a person.*: not today\. Do not try it again/),
    });
  });

  it('accepts one decision, and the second approver is told', async () => {
    const { client } = await gateway.connect();
    const calling = call(client, 'a_count');
    const { id } = await waiting();
    const both = await Promise.all([cli(['approve', id]), cli(['deny', id])]);
    const codes = both.map(({ code }) => code).sort();
    expect(codes).toEqual([0, 2]);
    expect(both.map(({ stderr }) => stderr).join('')).toMatch(
      /Somebody else has just decided|No open request has the id/,
    );
    expect((await calling).includes('not_approved')).toBe(both[0]!.code !== 0);
  });

  it('has its approval request withdrawn when it is cancelled or its client disconnects', async () => {
    const { client, transport } = await gateway.connect();
    const abort = new AbortController();
    const calling = call(client, 'a_count', {}, { signal: abort.signal }).catch(() => 'aborted');
    await waiting();
    abort.abort();
    expect(await calling).toBe('aborted');
    await waitFor(async () => (await readPetitions(join(gateway.cwd, '.toolgate'))).length === 0);
    const again = call(client, 'a_count').catch(() => 'gone');
    await waiting();
    await transport.terminateSession();
    await client.close();
    expect(await again).toBe('gone');
    await waitFor(async () => (await readPetitions(join(gateway.cwd, '.toolgate'))).length === 0);
  });

  it('needs no new approval for a while, for the same agent', async () => {
    const at = await startHttp({ config: config(), env });
    const { client } = await at.connect();
    const calling = call(client, 'a_count');
    const { id } = await waiting(at);
    await cli(['approve', id, '--for', '1h'], at);
    expect(await calling).toBe('1');
    expect(await call(client, 'a_count')).toBe('2');
  });
});

describe('an approval decision', () => {
  it('is accepted over HTTP with the operator key only', async () => {
    const { client } = await gateway.connect();
    const calling = call(client, 'a_count');
    const { id } = await waiting();
    const post = (path: string, token: string | null, body: unknown = { decision: 'approve' }) =>
      fetch(`${gateway.origin}/admin/approvals${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...(token !== null && { authorization: `Bearer ${token}` }) },
        body: JSON.stringify(body),
      });
    for (const token of [null, 'x', `${KEY}x`]) expect((await post(`/${id}`, token)).status).toBe(403);
    expect((await post('/nothing', KEY)).status).toBe(404);
    for (const body of [{}, { decision: 'maybe' }, [], { decision: 'approve', lasting_ms: -1 }])
      expect((await post(`/${id}`, KEY, body)).status).toBe(400);
    const listed = await fetch(`${gateway.origin}/admin/approvals`, { headers: { authorization: `Bearer ${KEY}` } });
    expect(await listed.json()).toMatchObject({ approvals: [{ id, tool: 'a_count' }] });
    expect((await runCli(['approvals', 'approve', id, '--url', gateway.origin], { env })).stdout).toBe(
      `Approved ${id}.\n`,
    );
    expect(await calling).toMatch(/^\d+$/);
  });

  it('is refused without the signature, or for another text than was shown', async () => {
    const { client } = await gateway.connect();
    const calling = call(client, 'a_count', { to: 'me' });
    const { id } = await waiting();
    const folder = join(gateway.cwd, '.toolgate/approvals');
    const forged = { approved: true, by: 'me', lasting: null, reason: '', signature: 'AAAA' };
    writeFileSync(join(folder, `${id}.decision`), JSON.stringify(forged));
    await waitFor(() => gateway.stderr().includes('is not signed with the operator'));
    // An approval is only valid for exactly what the person was shown.
    const file = join(folder, `${id}.json`);
    const honest = readFileSync(file, 'utf8');
    writeFileSync(file, honest.replace('\\"me', '\\"you'));
    const approving = cli(['approve', id]);
    await waitFor(() => gateway.stderr().split('is not signed with the operator').length > 2);
    expect((await approving).stderr).toContain('rejected the decision');
    const listed = await fetch(`${gateway.origin}/admin/approvals`, { headers: { authorization: `Bearer ${KEY}` } });
    expect(await listed.json()).toMatchObject({ approvals: [{ id }] });
    await runCli(['approvals', 'deny', id, '--url', gateway.origin], { env });
    expect(await calling).toContain('not_approved');
  });
});

describe('over HTTP, by default', () => {
  it('an agent cannot approve its own call: the client is not asked, and its answer would not count', async () => {
    const { client, questions } = await openLegacy(gateway, () => ({ action: 'accept' }));
    const calling = call(client, 'a_count');
    const { id } = await waiting();
    await cli(['deny', id]);
    expect(await calling).toContain('not_approved');
    expect(questions).toEqual([]);
  });

  it('nor can it without a session: no question comes back that it could answer', async () => {
    const calling = callModern(gateway, 'a_count');
    const { id } = await waiting();
    await cli(['deny', id]);
    const { result } = await calling;
    expect(result).toMatchObject({ resultType: 'complete', isError: true });
    expect(result!.content![0]!.text).toContain('not_approved');
  });
});

it('on stdio the person at the client is asked by default, because that person started the gateway', async () => {
  const { client, questions } = await openLegacyPipe(config(), () => ({ action: 'accept' }));
  expect(await call(client, 'a_count')).toBe('1');
  expect(questions).toEqual([expect.stringContaining('wants to call "a_count"')]);
});

describe('the user of the client, with approvers = "any"', () => {
  let gateway: HttpGateway;
  beforeAll(async () => {
    gateway = await startHttp({ config: config('approvers = "any"'), env });
  });

  it('is named in the audit as the client, and the operator by name', async () => {
    const { client } = await openLegacy(gateway, () => ({ action: 'accept' }));
    await call(client, 'a_count');
    const { client: other } = await gateway.connect();
    const since = now();
    const calling = call(other, 'a_count');
    const { id } = await waiting(gateway, since);
    await cli(['approve', id], gateway);
    await calling;
    const lines = await waitForLines(gateway.cwd, 2, ({ act }) => act === 'approval_approved');
    expect(lines.map(({ detail }) => String(detail).replace(/\(\w+\)/, ''))).toEqual([
      'a_count , by the client of anonymous',
      `a_count , by ${userInfo().username}`,
    ]);
  });

  it.each(['accept', 'decline', 'cancel'] as const)('is asked, and answers %s', async (action) => {
    const { client, questions } = await openLegacy(gateway, () => ({ action }));
    const text = await call(client, 'a_count', { path: 'x' });
    expect(questions).toEqual([
      'The agent "anonymous" wants to call "a_count" with {"path":"x"}. It needs your approval (security.dangerous_tools). Allow it?',
    ]);
    if (action === 'accept') expect(text).toMatch(/^\d+$/);
    else expect(text).toContain('not_approved');
  });

  it('is asked without a session too', async () => {
    const first = await callModern(gateway, 'a_count');
    expect(askedIn(first)[0]).toContain('wants to call "a_count"');
    const second = await callModern(gateway, 'a_count', {}, answersTo(first, { action: 'accept', content: {} }));
    expect(jsonOf(second.result)).toEqual(expect.any(Number));
  });

  it('is no longer asked when the operator has decided', async () => {
    let answer: (value: { action: 'accept' }) => void = () => {};
    const { client, questions } = await openLegacy(gateway, () => new Promise((resolve) => (answer = resolve)));
    const since = now();
    const calling = call(client, 'a_count');
    const { id } = await waiting(gateway, since);
    await waitFor(() => questions.length === 1);
    await cli(['deny', id], gateway);
    expect(await calling).toContain('not_approved');
    answer({ action: 'accept' });
    expect(await call(client, 'a_echo', { a: 1 })).toBe('{"a":1}');
  });
});

it('an approval is required depending on arguments, and if their meaning is ambiguous', async () => {
  const at = await startHttp({ config: config('approvers = "client"'), env });
  const { client } = await openLegacy(at, () => ({ action: 'decline' }));
  const isAsked = async (args: Record<string, unknown>) =>
    (await call(client, 'a_echo', args)).includes('not_approved');
  expect(await isAsked({ path: '/etc/passwd' })).toBe(true);
  expect(await isAsked({ path: '/tmp/../etc/passwd' })).toBe(true);
  expect(await isAsked({ PATH: '/etc/passwd' })).toBe(true);
  expect(await isAsked({ path: ['/tmp/x', '/etc/passwd'] })).toBe(true);
  expect(await isAsked({ path: '/tmp/x' })).toBe(false);
  expect(await isAsked({})).toBe(false);
});

describe('an approval request without a decision', () => {
  it('is denied after approval_timeout, or allowed with on_timeout = "allow"', async () => {
    for (const [on, expected] of [
      ['deny', 'not_approved'],
      ['allow', '1'],
    ] as const) {
      const at = await startHttp({ config: config(`approval_timeout = "300ms"\non_timeout = "${on}"`), env });
      const { client } = await at.connect();
      expect(await call(client, 'a_count')).toContain(expected);
    }
  });

  it('is denied at once if only the client may approve and cannot be asked', async () => {
    const at = await startHttp({ config: config('approvers = "client"'), env });
    const { client } = await at.connect();
    expect(await call(client, 'a_count')).toContain('this client cannot ask');
    const asked = await openLegacy(at, () => ({ action: 'accept' }));
    expect(await call(asked.client, 'a_count')).toBe('1');
  });

  it('ends with its gateway, and its file is no longer listed', async () => {
    const at = await startHttp({ config: config(), env, process: true });
    const { client } = await at.connect();
    const calling = call(client, 'a_count').catch(() => 'lost');
    const { id } = await waiting(at);
    at.process.kill('SIGKILL');
    await calling;
    await waitFor(async () => (await readPetitions(join(at.cwd, '.toolgate'))).length === 0);
    expect((await cli(['approve', id], at)).stderr).toContain('The gateway was stopped or restarted while');
    const again = await startHttp({ config: config(), env, cwd: at.cwd });
    const next = await again.connect();
    const second = call(next.client, 'a_count');
    const petition = await waiting(again);
    expect(petition.id).not.toBe(id);
    await cli(['approve', petition.id], again);
    expect(await second).toBe('1');
  });
});

it('a hundred concurrent calls: none runs unapproved, none is lost, and all are audited', async () => {
  const at = await startHttp({ config: config(), env });
  const clients = await Promise.all(Array.from({ length: 10 }, () => at.connect()));
  const calls = clients.flatMap(({ client }) => Array.from({ length: 10 }, () => call(client, 'a_count')));
  const open = async () =>
    (await (await fetch(`${at.origin}/admin/approvals`, { headers: { authorization: `Bearer ${KEY}` } })).json()) as {
      approvals: { id: string }[];
    };
  const all = await waitFor(async () => {
    const { approvals } = await open();
    return approvals.length === 100 ? approvals : null;
  }, 20_000);
  // The next call is refused: the agent has too many open approval requests.
  expect(await call(clients[0]!.client, 'a_count')).toContain('source_busy');
  await Promise.all(
    all.map(({ id }, i) =>
      fetch(`${at.origin}/admin/approvals/${id}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
        body: JSON.stringify({ decision: i % 2 === 0 ? 'approve' : 'deny' }),
      }),
    ),
  );
  const texts = await Promise.all(calls);
  const counts = texts.filter((text) => /^\d+$/.test(text)).map(Number);
  expect(counts.sort((a, b) => a - b)).toEqual(Array.from({ length: 50 }, (_, i) => i + 1));
  expect(texts.filter((text) => text.includes('not_approved')).length).toBe(50);
  const logs = join(at.cwd, '.toolgate/logs');
  await waitFor(() => {
    const text = readdirSync(logs)
      .map((name) => readFileSync(join(logs, name), 'utf8'))
      .join('');
    const count = (word: string) => text.split(word).length - 1;
    return (
      count('"act":"approval_asked"') === 100 &&
      count('"act":"approval_approved"') === 50 &&
      count('"act":"approval_denied"') === 50 &&
      count('"error":"not_approved"') === 50
    );
  });
});

it('approvals work on stdio, with a generated key in the home folder that only its owner can read', async () => {
  const home = tempFolder();
  const at = await startStdio({ config: config(), env: { HOME: home, XDG_CONFIG_HOME: undefined } });
  const calling = call(at.client as Client, 'a_count');
  const { id } = await waitFor(async () => (await readPetitions(join(at.cwd, '.toolgate')))[0] ?? null);
  const { stdout } = await runCli(['approvals', 'approve', id], { cwd: at.cwd, env: { HOME: home } });
  expect(stdout).toBe(`Approved ${id}.\n`);
  expect(await calling).toBe('1');
  expect(readFileSync(join(home, '.config/toolgate/operator.key'), 'utf8')).toMatch(/^[\w-]{43}\n$/);
});
