/** The page of logins on a gateway of several processes: what one of them began, the others go on with. */
import { expect, it } from 'vitest';
import { signIn, startProvider } from '../support/authorization-server.ts';
import { startHttp } from '../support/gateway.ts';
import { startGuarded } from '../support/guarded-server.ts';
import { waitFor } from '../support/processes.ts';
import { useProcesses } from '../support/switch.ts';
import { KEY, logIn } from './login.ts';
import { fieldIn, openBrowser, unescaped } from './page-browser.ts';

useProcesses();

it('works whichever process a request of the browser reaches, and calls of all of them use the login', async () => {
  const { issuer } = await startProvider();
  const guarded = await startGuarded(issuer);
  const config = `controls = []
[agents.ada]
token = "a token that only ada has"
[servers.remote]
url = "${guarded.url}"
credentials = "agent"
`;
  const gateway = await startHttp({ config, env: KEY, args: ['--processes', '2'] });
  expect((await logIn(gateway.cwd, 'operator')).code).toBe(0);
  const headers = { authorization: 'Bearer a token that only ada has' };
  const page = `${gateway.origin}/login`;
  const made = await fetch(`${page}/link`, { method: 'POST', headers });
  const { url } = (await made.json()) as { url: string };

  // Connections are handed out in turn, so that every second request reaches the other process.
  const visit = openBrowser();
  for (let i = 0; i < 4; i++) expect((await visit(url)).status).toBe(200);
  const ticket = fieldIn((await visit(url)).text, 'ticket');
  const list = await visit(page, { ticket });
  expect(list.text).toContain('not logged in');
  for (let i = 0; i < 4; i++) expect((await visit(page)).status).toBe(200);
  // A link works once, everywhere.
  for (let i = 0; i < 2; i++) expect((await openBrowser()(url)).status).toBe(410);

  const leaving = await visit(page, { act: 'login', server: 'remote', proof: fieldIn(list.text, 'proof') });
  const address = new URL(unescaped(/<a href="([^"]+)" rel/.exec(leaving.text)![1]!));
  const back = new URL(address.searchParams.get('redirect_uri')!);
  back.search = (await signIn(address, 'ada@example.com')).toString();
  expect(unescaped((await visit(back.href)).text)).toContain('logged in as ada@example.com');
  guarded.callers.length = 0;
  for (let i = 0; i < 4; i++) {
    const { client } = await gateway.connect({ headers });
    await waitFor(async () => {
      const { content } = await client.callTool({ name: 'remote_whoami', arguments: {} });
      return (content as { text: string }[])[0]!.text === 'done';
    });
  }
  expect(new Set(guarded.callers)).toEqual(new Set(['ada@example.com']));
});
