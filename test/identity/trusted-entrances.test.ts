/** Whom a found configuration lets in over HTTP: nobody, before the user has trusted that. */
import { createHash } from 'node:crypto';
import { copyFileSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Agent, fetch as undiciFetch } from 'undici';
import { describe, expect, it } from 'vitest';
import { clientPair, makeAuthority, type Pair, pemOf, serverPair } from '../support/certificates.ts';
import { atEnd } from '../support/cleanup.ts';
import { runCli } from '../support/cli.ts';
import { type HttpGateway, startHttp } from '../support/gateway.ts';
import { isMissing } from '../support/needs.ts';
import { waitFor } from '../support/processes.ts';
import { type Files, tempFolder, writeFiles } from '../support/temp.ts';
import { startIssuer } from './issuer.ts';

/** A cloned project and a user who has not seen it yet. */
function project(files: Files) {
  return { cwd: tempFolder(files), env: { HOME: tempFolder(), TOOLGATE_TRUST: '' } };
}

async function trust({ cwd, env }: ReturnType<typeof project>): Promise<string> {
  const { code, stderr } = await runCli(['trust', '--yes'], { cwd, env });
  expect(code, stderr).toBe(0);
  return stderr;
}

const statusOf = async ({ origin }: HttpGateway, headers: Record<string, string> = {}) =>
  (await fetch(`${origin}/tools`, { headers })).status;
const withToken = (token: string) => ({ authorization: `Bearer ${token}` });

describe('agents.json that changes while Toolgate runs', () => {
  it('lets nobody in with a token that the user has not made or trusted, not for a moment', async () => {
    const evil = 'a-token-that-the-author-of-the-project-knows';
    const clone = project({ 'tools.toml': 'controls = []\n' });
    const mine = (await runCli(['agents', 'add', 'mine'], clone)).stdout.trim();
    const gateway = await startHttp(clone);
    expect(await statusOf(gateway, withToken(mine))).toBe(200);
    // As git pull writes it: the user's agents, and one more.
    const file = join(clone.cwd, '.toolgate/agents.json');
    const { agents } = JSON.parse(readFileSync(file, 'utf8')) as { agents: object[] };
    const created = '2026-01-01T00:00:00Z';
    const sha256 = createHash('sha256').update(evil).digest('hex');
    const added = { name: 'evil', description: '', created, tokens: [{ sha256, created, expires: null }] };
    writeFiles(clone.cwd, { '.toolgate/agents.json': JSON.stringify({ agents: [...agents, added] }) });
    await waitFor(async () => {
      expect(await statusOf(gateway, withToken(evil))).toBe(401);
      return gateway.stderr().includes('1 token of agents lets nobody in, because nobody has trusted it yet');
    });
    expect(await statusOf(gateway, withToken(evil))).toBe(401);
    expect(await statusOf(gateway, withToken(mine))).toBe(200);
    // What the user makes meanwhile is not held.
    const other = (await runCli(['agents', 'add', 'other'], clone)).stdout.trim();
    await waitFor(async () => (await statusOf(gateway, withToken(other))) === 200);
    expect(await statusOf(gateway, withToken(evil))).toBe(401);
    await trust(clone);
    await waitFor(async () => (await statusOf(gateway, withToken(evil))) === 200);
  });
});

describe('an issuer of JWTs', () => {
  it('of a found configuration lets nobody in before it is trusted, and the door stays closed', async () => {
    const issuer = await startIssuer();
    await issuer.rotate('RS256');
    const other = await startIssuer();
    await other.rotate('RS256');
    const section = (one: string) => `[[http.jwt]]\nissuer = "${one}"\naudience = "x"\n`;
    const clone = project({ 'tools.toml': `controls = []\n${section(issuer.issuer)}` });
    const gateway = await startHttp(clone);
    const token = withToken(await issuer.sign({ sub: 'evil', aud: 'x' }));
    expect([await statusOf(gateway, token), await statusOf(gateway)]).toEqual([401, 401]);
    expect(gateway.stderr()).toContain(`tokens of ${issuer.issuer} let nobody in, because nobody has trusted them yet`);
    expect(issuer.asked).toEqual([]);
    // It is not recommended to clients either.
    const { status } = await fetch(`${gateway.origin}/.well-known/oauth-protected-resource/mcp`);
    expect(status).toBe(404);
    expect(await trust(clone)).toContain(`tokens that ${issuer.issuer} signs, which let clients in over HTTP`);
    await waitFor(async () => (await statusOf(gateway, token)) === 200);
    // Another one needs trust for itself, and the first one goes on.
    const edited = `controls = []\n${section(issuer.issuer)}${section(other.issuer)}`;
    writeFiles(clone.cwd, { 'tools.toml': edited });
    await waitFor(() => gateway.stderr().includes(`tokens of ${other.issuer} let nobody in`));
    const foreign = withToken(await other.sign({ sub: 'evil', aud: 'x' }));
    expect([await statusOf(gateway, foreign), await statusOf(gateway, token)]).toEqual([401, 200]);
  });
});

describe.skipIf(isMissing('openssl'))('the authorities of client certificates', () => {
  it('of a found configuration let nobody in before they are trusted, also when their file changes', async () => {
    const [server, first, second] = [makeAuthority('Server'), makeAuthority('First'), makeAuthority('Second')];
    const own = serverPair(server);
    const files = { 'own.pem': readFileSync(own.cert), 'own.key': readFileSync(own.key) };
    const config = 'controls = []\n[http.tls]\ncert = "own.pem"\nkey = "own.key"\nclient_ca = "ca.pem"\n';
    const clone = project({ 'tools.toml': config, ...files, 'ca.pem': readFileSync(first.cert) });
    const gateway = await startHttp({ ...clone, ready: false });
    const statusWith = (pair: Pair | null) => {
      const ca = readFileSync(server.cert);
      const dispatcher = new Agent({ connect: { ca, ...(pair !== null && pemOf(pair)) } });
      atEnd(() => dispatcher.close());
      return undiciFetch(`${gateway.origin}/tools`, { dispatcher }).then(
        ({ status }) => status,
        () => 0,
      );
    };
    const [ann, eve] = [clientPair(first, '/CN=ann'), clientPair(second, '/CN=eve')];
    expect(await statusWith(ann)).toBe(401);
    expect(await statusWith(null)).toBe(403);
    expect(gateway.stderr()).toContain('client certificates let nobody in, because nobody has trusted them yet');
    expect(await trust(clone)).toContain('certificates of the authorities in');
    await waitFor(async () => (await statusWith(ann)) === 200);
    // As git pull changes it.
    copyFileSync(second.cert, join(clone.cwd, 'ca.pem'));
    await waitFor(async () => {
      expect(await statusWith(eve)).not.toBe(200);
      return (await statusWith(eve)) === 401;
    });
    await trust(clone);
    await waitFor(async () => (await statusWith(eve)) === 200);
  });
});

describe('settings of http that open the door further', () => {
  it('have no effect before they are trusted', async () => {
    const config =
      'controls = []\n[http]\nallowed_origins = ["https://evil.example"]\nallowed_hosts = ["evil.example"]\n';
    const clone = project({ 'tools.toml': `${config}trust_agent_header = true\n` });
    const gateway = await startHttp(clone);
    const origin = { origin: 'https://evil.example' };
    expect(await statusOf(gateway, origin)).toBe(403);
    expect(gateway.stderr()).toContain(
      'http.allowed_origins, http.allowed_hosts, http.trust_agent_header let nobody in',
    );
    const shown = await trust(clone);
    expect(shown).toContain('http.allowed_origins, which opens the HTTP door further: ["https://evil.example"]');
    await waitFor(async () => (await statusOf(gateway, origin)) === 200);
  });

  it('need no trust in a configuration that is named', async () => {
    const cwd = tempFolder({ 'mine.toml': 'controls = []\n[http]\nallowed_origins = ["https://mine.example"]\n' });
    const gateway = await startHttp({ cwd, args: ['--config', 'mine.toml'], env: { TOOLGATE_TRUST: '' } });
    expect(await statusOf(gateway, { origin: 'https://mine.example' })).toBe(200);
  });
});
