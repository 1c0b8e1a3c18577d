/** A gateway with an encrypted address describes itself to authorization servers that register nobody. */
import { beforeAll, describe, expect, it } from 'vitest';
import { type AuthorizationServer, signIn, startProvider } from '../support/authorization-server.ts';
import { runCli } from '../support/cli.ts';
import { type HttpGateway, startHttp } from '../support/gateway.ts';
import { type GuardedServer, startGuarded } from '../support/guarded-server.ts';
import { waitFor } from '../support/processes.ts';
import { KEY } from './login.ts';
import { fieldIn, openBrowser, unescaped } from './page-browser.ts';

const ADA = 'a token that only ada has';
/** In front of it is a proxy with the certificate, which the tests leave out. */
const PUBLIC = 'https://tools.example.com';
const DOCUMENT = `${PUBLIC}/login/client.json`;

const inside = (address: string) => address.replace(PUBLIC, gateway.origin);
const read = async () => (await fetch(inside(DOCUMENT))).json() as Promise<Record<string, unknown>>;

let gateway: HttpGateway;
let provider: AuthorizationServer;
let guarded: GuardedServer;
/** The documents that the authorization server has asked for. */
const asked: string[] = [];

function configOf(publicUrl: string, oauth = ''): string {
  return `controls = []
[http]
public_url = "${publicUrl}"
admins = ["ada"]
[agents.ada]
token = "${ADA}"
[servers.remote]
url = "${guarded.url}"
credentials = "agent"
${oauth}`;
}

beforeAll(async () => {
  const findDocument = (address: string) => {
    asked.push(address);
    return inside(address);
  };
  provider = await startProvider({ findDocument });
  guarded = await startGuarded(provider.issuer);
  gateway = await startHttp({ config: configOf(`${PUBLIC}/mcp`), env: KEY });
});

const authorization = { authorization: `Bearer ${ADA}` };

/** Opens the page of a gateway with a link, and asks to log in to the server. */
async function leaveFrom({ origin }: HttpGateway, use: 'own' | 'list' = 'own') {
  const response = await fetch(`${origin}/login/link`, { method: 'POST', headers: authorization });
  const { url: link } = (await response.json()) as { url: string };
  const browser = openBrowser();
  const visit = (address: string, form?: Record<string, string>) => browser(address.replace(PUBLIC, origin), form);
  const ticket = fieldIn((await visit(link)).text, 'ticket');
  const proof = fieldIn((await visit(`${PUBLIC}/login`, { ticket })).text, 'proof');
  return { visit, leaving: await visit(`${PUBLIC}/login`, { act: 'login', server: 'remote', use, proof }) };
}

describe('the document', () => {
  it('has its own address as the client id, and nothing that is secret', async () => {
    expect(await read()).toEqual({
      client_id: DOCUMENT,
      client_name: 'Toolgate',
      client_uri: `${PUBLIC}/login`,
      redirect_uris: [`${PUBLIC}/login/callback`],
      application_type: 'web',
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      token_endpoint_auth_method: 'none',
    });
  });

  it('is there only if the address of the gateway is encrypted', async () => {
    const plain = await startHttp({ config: configOf('http://127.0.0.1/mcp'), env: KEY });
    const response = await fetch(`${plain.origin}/login/client.json`);
    expect(response.status).toBe(404);
    expect(await response.text()).toContain('http.public_url does not begin with https://');
  });
});

describe('a server whose authorization server registers nobody', () => {
  async function logInFor(use: 'own' | 'list', user: string) {
    const { visit, leaving } = await leaveFrom(gateway, use);
    const address = new URL(unescaped(/<a href="([^"]+)" rel/.exec(leaving.text)![1]!));
    expect(address.searchParams.get('client_id')).toBe(DOCUMENT);
    const back = new URL(address.searchParams.get('redirect_uri')!);
    back.search = (await signIn(address, user)).toString();
    return (await visit(back.href)).text;
  }

  it('is logged in to on the page with the document, for the list and for a person, and the login is renewed', async () => {
    const { client } = await gateway.connect({ headers: authorization });
    expect(await logInFor('list', 'operator@example.com')).toContain('For the list of tools');
    expect(asked).toContain(DOCUMENT);
    await waitFor(async () => (await client.listTools()).tools.length > 0);
    const whoami = async () => {
      const { content } = await client.callTool({ name: 'remote_whoami', arguments: {} });
      return (content as { text: string }[])[0]!.text;
    };
    expect(await whoami()).toContain('waits for a login');
    await logInFor('own', 'ada@example.com');
    await waitFor(async () => (await whoami()) === 'done');
    expect(provider.renewals).toBe(0);
    guarded.expireAll();
    await waitFor(async () => (await whoami()) === 'done');
    expect(guarded.callers.at(-1)).toBe('ada@example.com');
    expect(provider.renewals).toBeGreaterThan(0);
  });

  it.each([
    ['with a configured document that is not that of its page', 'https://tools.example.com/other/login/client.json'],
    ['with none', null],
  ])('is told how to log in by a command, %s', async (_, document) => {
    const oauth = document === null ? '' : `oauth = { client_metadata = "${document}" }`;
    const plain = await startHttp({ config: configOf('http://127.0.0.1/mcp', oauth), env: KEY });
    const { code, stderr } = await runCli(['login', 'remote', '--agent', 'ada', '--no-browser'], {
      cwd: plain.cwd,
      env: KEY,
    });
    expect(code, stderr).toBe(2);
    expect(stderr).toContain('registers no clients by itself');
    expect(stderr).toContain('whose http.public_url begins with https://');
  });
});

describe('a server whose authorization server registers clients and takes documents', () => {
  it('gets the document of the gateway if that is configured', async () => {
    const oauth = `oauth = { client_metadata = "${DOCUMENT}" }`;
    const other = await startHttp({ config: configOf(`${PUBLIC}/mcp`, oauth), env: KEY });
    const { leaving } = await leaveFrom(other);
    expect(unescaped(leaving.text)).toContain(encodeURIComponent(DOCUMENT));
  });
});
