/** `/login`: a person logs in to their servers on a shared gateway, with a one-time link, in a browser. */
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { beforeAll, describe, expect, it } from 'vitest';
import { type AuthorizationServer, signIn, startProvider } from '../support/authorization-server.ts';
import { runCli } from '../support/cli.ts';
import { type HttpGateway, startHttp } from '../support/gateway.ts';
import { type GuardedServer, startGuarded } from '../support/guarded-server.ts';
import { waitFor } from '../support/processes.ts';
import { KEY, logIn } from './login.ts';
import { fieldIn, openBrowser, unescaped } from './page-browser.ts';

const EVIL = '<img src=x onerror=alert(1)>';
const ADA = 'a token that only ada has';
const BOB = 'a token that only bob has';
let provider: AuthorizationServer;
let guarded: GuardedServer;
let gateway: HttpGateway;

beforeAll(async () => {
  provider = await startProvider();
  guarded = await startGuarded(provider.issuer);
  const config = `controls = []
[http]
allowed_origins = ["https://partner.example"]
[agents.ada]
token = "${ADA}"
[agents.bob]
token = "${BOB}"
[servers.remote]
url = "${guarded.url}"
credentials = "agent"
description = "${EVIL}"
[servers.secluded]
url = "${guarded.url}"
credentials = "agent"
[servers.shared]
url = "${guarded.url}"
[default_policy]
allow_unknown_tools = true
[agent_policies.ada]
allowed_servers = ["remote", "shared"]
`;
  gateway = await startHttp({ config, env: KEY });
  expect((await logIn(gateway.cwd, 'operator')).code).toBe(0);
  const { client } = await gateway.connect({ headers: { authorization: `Bearer ${ADA}` } });
  await waitFor(async () => (await client.listTools()).tools.length === 3);
});

const linkFor = async (token: string) => {
  const headers = { authorization: `Bearer ${token}` };
  const response = await fetch(`${gateway.origin}/login/link`, { method: 'POST', headers });
  expect(response.status).toBe(200);
  return ((await response.json()) as { url: string }).url;
};
const page = () => `${gateway.origin}/login`;

/** Opens a link and confirms it. */
async function enter(token: string) {
  const visit = openBrowser();
  const link = await linkFor(token);
  const asked = await visit(link);
  const list = await visit(page(), { ticket: fieldIn(asked.text, 'ticket') });
  return { visit, link, list, proof: fieldIn(list.text, 'proof') };
}

/** Presses the button, signs in at the provider, and returns. */
async function logInTo(server: string, user: string, { visit, proof }: Awaited<ReturnType<typeof enter>>) {
  const leaving = await visit(page(), { act: 'login', server, proof });
  const address = new URL(unescaped(/<a href="([^"]+)" rel/.exec(leaving.text)![1]!));
  const back = new URL(address.searchParams.get('redirect_uri')!);
  expect(back.href).toBe(`${page()}/callback`);
  back.search = (await signIn(address, user)).toString();
  return { back, list: await visit(back.href) };
}

const callAs = async (token: string) => {
  const { client } = await gateway.connect({ headers: { authorization: `Bearer ${token}` } });
  const { content } = await client.callTool({ name: 'remote_whoami', arguments: {} });
  return (content as { text: string }[])[0]!.text;
};

describe('the page', () => {
  it('opens only by a link, once, and only after a person has confirmed it', async () => {
    const visit = openBrowser();
    expect(await visit(page())).toMatchObject({ status: 401, text: expect.stringContaining('toolgate login --url') });
    const { link, list, visit: own } = await enter(ADA);
    expect(list).toMatchObject({ status: 200, text: expect.stringContaining('<b>ada</b>') });
    expect((await visit(link)).status).toBe(410);
    expect((await visit(page(), { ticket: new URL(link).searchParams.get('ticket')! })).status).toBe(410);
    expect((await own(page())).status).toBe(200);
    const second = await linkFor(ADA);
    // Programs that look at links do not use them up.
    for (let i = 0; i < 3; i++) expect((await openBrowser()(second)).status).toBe(200);
    expect((await fetch(`${gateway.origin}/login/link`, { method: 'POST' })).status).toBe(401);
  });

  it('shows what the person may know of, as text, and lets in no script', async () => {
    const { list } = await enter(ADA);
    expect(list.text).toContain('<b>remote</b>');
    expect(list.text).not.toContain('secluded');
    // Everybody uses that login, so only admins may change it.
    expect(list.text).not.toContain('shared');
    expect(list.text).not.toContain('For the list of tools');
    expect(list.text).toContain('&#60;img');
    expect(list.text).not.toMatch(/<img|<script/);
    const policy = list.headers.get('content-security-policy')!;
    expect(policy).toMatch(
      /default-src 'none'; style-src 'sha256-[^']+'; .*form-action 'self'; frame-ancestors 'none'/,
    );
    expect(list.headers.get('cache-control')).toBe('no-store');
  });

  it('logs a person in and out, and calls are made as them', async () => {
    expect(await callAs(ADA)).toContain('toolgate login remote --agent ada');
    const ada = await enter(ADA);
    expect(ada.list.text).toContain('not logged in');
    const { list, back } = await logInTo('remote', 'ada@example.com', ada);
    expect(list.text).toContain('You are logged in to remote.');
    expect(unescaped(list.text)).toContain('logged in as ada@example.com, renewed by itself');
    guarded.callers.length = 0;
    await waitFor(async () => (await callAs(ADA)) === 'done');
    expect(guarded.callers).toEqual(['ada@example.com']);
    expect(await callAs(BOB)).toContain('toolgate login remote --agent bob');
    // A code works once.
    expect(await ada.visit(back.href)).toMatchObject({ status: 400 });
    const out = await ada.visit(page(), { act: 'logout', server: 'remote', proof: ada.proof });
    expect(out.text).toContain('You are logged out of remote.');
    await waitFor(async () => (await callAs(ADA)).includes('toolgate login remote --agent ada'));
  });

  it('does nothing for forms and codes that come from elsewhere', async () => {
    const ada = await enter(ADA);
    const bob = await enter(BOB);
    for (const proof of ['', 'wrong', bob.proof])
      expect((await ada.visit(page(), { act: 'logout', server: 'remote', proof })).status).toBe(403);
    const foreign = { origin: 'https://evil.example' };
    const form = { act: 'login', server: 'remote', proof: ada.proof };
    expect((await ada.visit(page(), form, foreign)).status).toBe(403);
    // A page that may call tools could otherwise open a link of its own in the browser of somebody else.
    const ticket = new URL(await linkFor(BOB)).searchParams.get('ticket')!;
    for (const sent of [{ ticket }, form])
      expect((await openBrowser()(page(), sent, { origin: 'https://partner.example' })).status).toBe(403);
    expect((await openBrowser()(page(), { ticket }, { origin: gateway.origin })).status).toBe(200);
    expect((await ada.visit(page(), { ...form, use: 'list' })).text).toContain('There is no such server for you.');
    expect((await ada.visit(page(), { ...form, server: 'secluded' })).text).toContain(
      'There is no such server for you.',
    );
    // Bob began a login, and ada is made to end it in her browser.
    const leaving = await bob.visit(page(), { act: 'login', server: 'remote', proof: bob.proof });
    const address = new URL(unescaped(/<a href="([^"]+)" rel/.exec(leaving.text)![1]!));
    const back = new URL(address.searchParams.get('redirect_uri')!);
    back.search = (await signIn(address, 'ada@example.com')).toString();
    expect(await ada.visit(back.href)).toMatchObject({ status: 400 });
    expect(await callAs(BOB)).toContain('toolgate login remote --agent bob');
  });

  it('closes for good, and when the token is revoked', async () => {
    const ada = await enter(ADA);
    await ada.visit(page(), { act: 'leave', proof: ada.proof });
    expect((await ada.visit(page())).status).toBe(401);
  });

  it('is opened by toolgate login --url, with the token of the person', async () => {
    const env = { TOOLGATE_TOKEN: ADA };
    const { code, stderr } = await runCli(['login', '--no-browser', '--url', gateway.origin], { env });
    expect(code, stderr).toBe(0);
    const link = /^ {2}(\S+)$/m.exec(stderr)![1]!;
    expect((await openBrowser()(link)).text).toContain('the agent <b>ada</b>');
    const refused = await runCli(['login', '--no-browser', '--url', gateway.origin], {});
    expect(refused.code).toBe(2);
    expect(refused.stderr).toContain('Set TOOLGATE_TOKEN to your own token.');
  });
});

it('a client that can open addresses is sent to the page, and the call goes on', async () => {
  const headers = { authorization: `Bearer ${BOB}` };
  const { client } = await gateway.connect({ headers, capabilities: { elicitation: { url: {} } } });
  client.setRequestHandler(ElicitRequestSchema, async ({ params }) => {
    const visit = openBrowser();
    const asked = await visit((params as { url: string }).url);
    const list = await visit(page(), { ticket: fieldIn(asked.text, 'ticket') });
    const proof = fieldIn(list.text, 'proof');
    await logInTo('remote', 'bob@example.com', { visit, proof, list, link: '' });
    return { action: 'accept' };
  });
  guarded.callers.length = 0;
  const { content } = await client.callTool({ name: 'remote_whoami', arguments: {} });
  expect(content).toMatchObject([{ text: 'done' }]);
  expect(guarded.callers).toEqual(['bob@example.com']);
});
