/** A first look at the dashboard in a real browser: it lets in whom it should, shows what happens as it happens, and tries a tool. */
import { beforeAll, describe, expect, it } from 'vitest';
import { type Any, enterDashboard, OPERATOR, openBrowser } from '../support/browser.ts';
import { type HttpGateway, startHttp } from '../support/gateway.ts';
import { isMissing } from '../support/needs.ts';
import { server, serversToml } from '../support/server.ts';

/** On a quiet machine it takes about 0.3 s. A page that waits for something takes seconds. */
const FIRST_VIEW = 5_000;
const CONFIG = `controls = []
[security]
dangerous_tools = { a = ["count"] }
${serversToml({ a: server('basic'), desk: server('asking') })}
${serversToml({ a: server('basic', '--tools', 'echo', '--name', 'second') })}`;

let browser: Any;
let gateway: HttpGateway;

describe.skipIf(isMissing('chromium'))('the dashboard in Chromium', () => {
  beforeAll(async () => {
    [browser, gateway] = await Promise.all([
      openBrowser(),
      startHttp({ config: CONFIG, env: { TOOLGATE_OPERATOR_KEY: OPERATOR } }),
    ]);
  });

  it('shows nothing without a key', async () => {
    const page = await browser.newPage();
    await page.goto(gateway.origin);
    expect(await page.textContent('body')).toContain('toolgate dashboard');
    const { status } = await fetch(`${gateway.origin}/admin/overview`);
    expect([401, 403]).toContain(status);
    await page.close();
  });

  it('shows servers, calls as they happen, a try with a question, and an approval', async () => {
    const { page, problems, asked, firstRows, show } = await enterDashboard(browser, gateway);
    await page.getByRole('row', { name: /up a / }).waitFor();
    // The log and doctor name it too: see test/activation/names.test.ts.
    await page.getByRole('region', { name: 'Problems' }).getByText('tool "a_echo" is dropped: server "a"').waitFor();
    const shown = await firstRows();
    console.log(`first rows of the overview: ${Math.round(shown)} ms`);
    expect(shown).toBeLessThan(FIRST_VIEW);

    await show('calls');
    await page.getByText('No calls yet').waitFor();
    await page.locator('.top [role=status]', { hasText: 'live' }).waitFor();
    const { client } = await gateway.connect();
    await client.callTool({ name: 'a_echo', arguments: { word: 'tea' } });
    await page.getByRole('row', { name: /ok .*a_echo/ }).click();
    await page.getByRole('dialog', { name: 'a_echo' }).getByText('Where the time went').waitFor();
    await page.keyboard.press('Escape');
    await page.locator('dialog').waitFor({ state: 'detached' });

    await show('catalog/tool/desk_ask?tab=try');
    await page.getByRole('button', { name: 'Call it' }).click();
    const question = page.getByRole('region', { name: 'A question from the server' });
    await question.getByLabel('word').fill('yes');
    await question.getByRole('button', { name: 'Answer' }).click();
    await page.getByRole('region', { name: 'Part 1' }).getByText('yes').waitFor();
    await page.keyboard.press('Escape');
    await page.locator('dialog').waitFor({ state: 'detached' });

    const calling = client.callTool({ name: 'a_count', arguments: {} });
    await page.getByRole('link', { name: 'Approvals 1 waiting' }).click();
    await page.getByRole('button', { name: 'Approve', exact: true }).click();
    expect(await calling).toMatchObject({ content: [{ type: 'text' }] });
    await page.getByText('No call waits for a person').waitFor();

    expect(problems).toEqual([]);
    for (const url of asked) expect(url.startsWith(gateway.origin), url).toBe(true);
    await page.context().close();
  });
});
