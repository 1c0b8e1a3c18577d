/** A caller that can be sent to an address is asked to log in, in both eras, and its call goes on after that. */
import { cpSync } from 'node:fs';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { beforeAll, describe, expect, it } from 'vitest';
import { type AuthorizationServer, signIn, startProvider } from '../support/authorization-server.ts';
import { runCli } from '../support/cli.ts';
import { startModernStdio, startStdio } from '../support/gateway.ts';
import { type GuardedServer, startGuarded } from '../support/guarded-server.ts';
import { waitFor } from '../support/processes.ts';
import { tempFolder } from '../support/temp.ts';
import { KEY, logIn } from './login.ts';

let provider: AuthorizationServer;
let guarded: GuardedServer;
/** The tools are known there from an earlier login, and nobody is logged in now. */
let used: string;

beforeAll(async () => {
  provider = await startProvider();
  guarded = await startGuarded(provider.issuer);
  const config = `controls = []\nshared = false\n[servers.remote]\nurl = "${guarded.url}"\n`;
  used = tempFolder({ 'tools.toml': config });
  expect((await logIn(used, 'alice')).code).toBe(0);
  expect((await runCli(['list'], { cwd: used, env: KEY })).stdout).toContain('remote_whoami');
  await runCli(['logout', 'remote'], { cwd: used, env: KEY });
});

function copyOfUsed(): string {
  const cwd = tempFolder();
  cpSync(used, cwd, { recursive: true, filter: (path) => !path.includes('/run') });
  return cwd;
}

/** Opens the address as a person would, and returns to Toolgate. */
async function openIt(url: string, user: string): Promise<void> {
  const back = new URL(new URL(url).searchParams.get('redirect_uri')!);
  back.search = (await signIn(new URL(url), user)).toString();
  expect((await fetch(back)).status).toBe(200);
}

const textOf = (answer: object) => (answer as { content: { text: string }[] }).content[0]!.text;
const CALL = { name: 'remote_whoami', arguments: {} };

describe('a client that can open addresses', () => {
  it('is asked in a session, and the call goes on', async () => {
    const cwd = copyOfUsed();
    const { client } = await startStdio({ cwd, env: KEY, capabilities: { elicitation: { url: {} } } });
    const asked: unknown[] = [];
    client.setRequestHandler(ElicitRequestSchema, async ({ params }) => {
      asked.push(params.message);
      await openIt((params as { url: string }).url, 'bob');
      return { action: 'accept' };
    });
    guarded.callers.length = 0;
    expect(textOf(await client.callTool(CALL))).toBe('done');
    expect(guarded.callers).toEqual(['bob']);
    expect(asked).toEqual([expect.stringContaining('Log in to "remote"')]);
    // More rights are asked for in the same way.
    expect(textOf(await client.callTool({ ...CALL, name: 'remote_more' }))).toBe('done');
    expect(asked).toHaveLength(2);
  });

  it('is asked without a session, and the call goes on', async () => {
    const cwd = copyOfUsed();
    const { client } = await startModernStdio({ cwd, env: KEY, capabilities: { elicitation: { url: {} } } });
    client.setRequestHandler('elicitation/create', async ({ params }) => {
      await openIt((params as { url: string }).url, 'carol');
      return { action: 'accept' };
    });
    guarded.callers.length = 0;
    expect(textOf(await client.callTool(CALL))).toBe('done');
    expect(guarded.callers).toEqual(['carol']);
  });

  it.each(['legacy', 'modern'])('may take its time after the login (%s)', async (era) => {
    const options = { cwd: copyOfUsed(), env: KEY, args: ['--log-level', 'debug'] };
    const capabilities = { elicitation: { url: {} } };
    /** The server is there again, as another one than the call has asked. */
    const isServed = () => /"source":"remote"[^\n]*"up/.test(gateway.stderr());
    const logInSlowly = async ({ params }: { params: object }) => {
      await openIt((params as { url: string }).url, 'dave');
      await waitFor(isServed);
      return { action: 'accept' as const };
    };
    const legacy = era === 'legacy' ? await startStdio({ ...options, capabilities }) : null;
    const modern = legacy === null ? await startModernStdio({ ...options, capabilities }) : null;
    const gateway = (legacy ?? modern)!;
    legacy?.client.setRequestHandler(ElicitRequestSchema, logInSlowly);
    modern?.client.setRequestHandler('elicitation/create', logInSlowly);
    guarded.callers.length = 0;
    expect(textOf(await gateway.client.callTool(CALL))).toBe('done');
    expect(guarded.callers).toEqual(['dave']);
  });

  it('may refuse, and is told what to do', async () => {
    const cwd = copyOfUsed();
    const { client } = await startStdio({ cwd, env: KEY, capabilities: { elicitation: { url: {} } } });
    client.setRequestHandler(ElicitRequestSchema, () => ({ action: 'decline' }));
    expect(textOf(await client.callTool(CALL))).toContain('needs a login. Run toolgate login remote, then try again.');
  });
});
