/** What the page asks a person for in a browser of theirs: to log in to a server, and to look at a call that waits. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startProvider } from '../support/authorization-server.ts';
import { type Any, enterDashboard, OPERATOR, openBrowser } from '../support/browser.ts';
import { type HttpGateway, startHttp } from '../support/gateway.ts';
import { type GuardedServer, startGuarded } from '../support/guarded-server.ts';
import { isMissing } from '../support/needs.ts';
import { server } from '../support/server.ts';

const CLAUDE = 'the-token-of-claude-who-asks-people';
let browser: Any;
let guarded: GuardedServer;
let gateway: HttpGateway;
const enter = () => enterDashboard(browser, gateway);
const headers = { authorization: `Bearer ${CLAUDE}` };

describe.skipIf(isMissing('chromium'))('a person at the dashboard', () => {
  beforeAll(async () => {
    const provider = await startProvider();
    [browser, guarded] = await Promise.all([openBrowser(), startGuarded(provider.issuer)]);
    const config = `controls = []
[agents.claude]
token = "${CLAUDE}"
[security]
dangerous_tools = { local = ["echo"] }
[servers.local]
command = ${JSON.stringify(server('basic'))}
[servers.remote]
url = "${guarded.url}"
`;
    gateway = await startHttp({
      config,
      env: { TOOLGATE_OPERATOR_KEY: OPERATOR, SECRETS_KEY: 'a key that only this test has' },
      ready: false,
    });
  }, 60_000);
  afterAll(() => browser?.close());

  it('logs in to a server at its provider in another window, calls are made as them, and logs out', async () => {
    const { page, problems, show } = await enter();
    await show('servers/logins');
    const row = page.getByRole('grid', { name: 'Logins' }).getByRole('row', { name: /remote/ });
    await row.getByText('nobody').waitFor();
    const opened = page.waitForEvent('popup');
    await page.getByRole('button', { name: 'Log in to remote' }).click();
    const window: Any = await opened;
    await window.locator('input[name=login]').fill('ada@example.com');
    await window.locator('input[name=password]').fill('any');
    await window.locator('button[type=submit]').click();
    await window.getByRole('button', { name: /continue/i }).click();
    await window.getByText(/you are logged in|close this/i).waitFor();
    // The provider's page must not be able to send the dashboard elsewhere.
    expect(await window.evaluate('window.opener')).toBe(null);
    await window.close();
    await row.getByText('ada@example.com').waitFor();
    await row.getByText('up', { exact: true }).waitFor();
    const { client } = await gateway.connect({ headers });
    await expect.poll(async () => (await client.listTools()).tools.map(({ name }) => name)).toContain('remote_whoami');
    guarded.callers.length = 0;
    await client.callTool({ name: 'remote_whoami', arguments: {} });
    expect(guarded.callers).toEqual(['ada@example.com']);
    await page.getByRole('button', { name: 'Log out of remote' }).click();
    await page.locator('.toast', { hasText: 'Logged out of remote.' }).waitFor();
    await row.getByText('nobody').waitFor();
    expect(problems).toEqual([]);
  });

  it('is shown a login that is under way, and why one failed', async () => {
    const { page, show } = await enter();
    await show('servers/logins');
    const row = page.getByRole('grid', { name: 'Logins' }).getByRole('row', { name: /remote/ });
    const opened = page.waitForEvent('popup');
    await page.getByRole('button', { name: 'Log in to remote' }).click();
    const window: Any = await opened;
    await window.locator('input[name=login]').waitFor();
    await row.getByRole('link', { name: 'go on in this window' }).waitFor();
    await window.getByRole('link', { name: /cancel/i }).click();
    const why = row.locator('.bad[title]');
    await why.waitFor();
    expect(await why.getAttribute('title')).toMatch(/^Server "remote" was refused a token .*access_denied/);
  });

  it('gets a notification of the browser for a call that waits, once, while the page is not looked at', async () => {
    const { page, show } = await enter();
    await show('approvals');
    const ask = page.getByRole('button', { name: 'Notify me in the browser' });
    await ask.waitFor();
    // A person says yes when the browser asks. One without a screen has to be told before.
    await page.context().grantPermissions(['notifications'], { origin: gateway.origin });
    await ask.click();
    await page.getByText('notifications are on').waitFor();
    await page.evaluate(() => {
      const { Notification: Real, document } = globalThis as Any;
      const shown: Any[] = [];
      // The browser's own notification is made. Nothing else tells that it was, and a window without a screen is never hidden.
      class Noted extends Real {
        constructor(title: string, options: object) {
          super(title, options);
          shown.push({ title, ...options, note: this });
        }
      }
      Object.assign(globalThis, { Notification: Noted, shown });
      Object.defineProperty(document, 'visibilityState', {
        configurable: true,
        get: () => (globalThis as Any).seen ?? 'hidden',
      });
    });
    const notes = (): Promise<{ title: string; body: string }[]> =>
      page.evaluate(() => (globalThis as Any).shown.map(({ title, body }: Any) => ({ title, body })));
    const { client } = await gateway.connect({ headers });
    const call = (text: string) => client.callTool({ name: 'local_echo', arguments: { text } });
    const answered = call('one');
    await expect
      .poll(notes)
      .toEqual([{ title: 'Toolgate: a call waits for you', body: 'claude asks to use local_echo.' }]);
    await show('overview');
    await page.evaluate(() => (globalThis as Any).shown[0].note.onclick());
    await page.getByRole('heading', { name: 'Approvals' }).waitFor();
    await page.getByRole('button', { name: 'Approve', exact: true }).click();
    expect(await answered).toMatchObject({ content: [{ text: expect.stringContaining('one') }] });
    await page.getByText('nothing waits').waitFor();
    // A person who looks at the page sees the call there.
    await page.evaluate(() => {
      (globalThis as Any).seen = 'visible';
    });
    const denied = call('two');
    await page.getByRole('button', { name: 'Deny', exact: true }).click();
    expect(await denied).toMatchObject({ isError: true });
    expect(await notes()).toHaveLength(1);
  });
});
