/** Every view and action of the dashboard, in a real browser, with real servers and calls. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { beforeAll, describe, expect, it } from 'vitest';
import { type Any, enterDashboard, openBrowser } from '../support/browser.ts';
import { runCli } from '../support/cli.ts';
import { isMissing } from '../support/needs.ts';
import { waitFor } from '../support/processes.ts';
import { ask, CHANGED_PAY, CLAUDE, NIGHTLY, openShop, PAY, type Shop } from './shop.ts';

let browser: Any;
let shop: Shop;
let page: Any;
let problems: string[];
let show: (view: string) => Promise<void>;
let claude: Client;
let nightly: Client;

const bearer = (token: string) => ({ headers: { authorization: `Bearer ${token}` } });
const row = (name: string | RegExp) => page.getByRole('row', { name });
const button = (name: string | RegExp) => page.getByRole('button', { name, exact: typeof name === 'string' });
const dialog = () => page.getByRole('dialog');
const said = (text: string | RegExp) => page.locator('.toast', { hasText: text }).first().waitFor();
const close = async () => {
  await page.keyboard.press('Escape');
  // The element itself, and not only what can be seen of it: the address changes with it.
  await page.locator('dialog').waitFor({ state: 'detached' });
};

describe.skipIf(isMissing('chromium'))('the dashboard of a shop', () => {
  beforeAll(async () => {
    [browser, shop] = await Promise.all([openBrowser(), openShop()]);
    const { gateway } = shop;
    claude = (await gateway.connect({ ...bearer(CLAUDE), name: 'editor' })).client;
    nightly = (await gateway.connect({ ...bearer(NIGHTLY), name: 'cron' })).client;
    ({ page, problems, show } = await enterDashboard(browser, gateway));
  }, 90_000);

  it('overview: servers with state and reason, sessions, figures, and what a model sees', async () => {
    await row(/up files stdio/).waitFor();
    await row(/(down|crash loop|starting) printer/).click();
    await dialog().getByText('What happened').waitFor();
    await dialog().getByText('crash: as told, at the start').first().waitFor();
    await button('Restart').click();
    await said('printer is restarted.');
    await close();
    await page
      .getByRole('grid', { name: 'Sessions' })
      .getByRole('row', { name: /claude editor/ })
      .waitFor();
    await page
      .getByRole('region', { name: 'What a model sees first' })
      .getByRole('row', { name: /nightly/ })
      .waitFor();
    for (let count = 0; count < 5; count += 1)
      await claude.callTool({ name: 'files_read_text_file', arguments: { path: 'shopping.md' } });
    await page
      .getByRole('region', { name: 'Agents' })
      .getByRole('row', { name: /claude 5/ })
      .waitFor();
    await page.locator('.plot canvas').first().waitFor();
  });

  it('live calls: stream, filter, pause, record, and the steps of one', async () => {
    await show('calls');
    await button('Record').click();
    await said('Arguments and results are kept');
    await claude.callTool({ name: 'orders_order_status', arguments: { order: '4711' } });
    await row(/ok claude orders_order_status/)
      .first()
      .click();
    await dialog().getByText('Where the time went').waitFor();
    await dialog().getByRole('region', { name: 'Arguments' }).getByText('4711').waitFor();
    await dialog().getByRole('region', { name: 'Result' }).getByText('Order 4711 is packed.').waitFor();
    expect(await dialog().locator('.fall li').count()).toBeGreaterThan(0);
    await close();

    await page.getByLabel('Filter calls by words').fill('orders claude');
    await row(/orders_order_status/)
      .first()
      .waitFor();
    expect(await row(/files_read_text_file/).count()).toBe(0);
    // More than anyone can read are not all sent. Who searches finds them, and who stops the list has them.
    await nightly.callTool({ name: 'memory_read_graph', arguments: {} });
    const burst = Array.from({ length: 150 }, () =>
      claude.callTool({ name: 'orders_order_status', arguments: { order: 'x' } }),
    );
    await Promise.all(burst);
    await page.getByLabel('Filter calls by words').fill('memory nightly');
    await row(/memory_read_graph/)
      .first()
      .waitFor();
    await page.getByLabel('Filter calls by words').fill('');
    await button('Pause').click();
    await waitFor(async () => !/more left out/.test(await page.locator('.head .sub').innerText()));
    await button('Go on').click();

    await button('Pause').click();
    await nightly.callTool({ name: 'memory_read_graph', arguments: {} });
    await claude.callTool({ name: 'files_list_allowed_directories', arguments: {} });
    // The next tick comes after the batch with these calls.
    await page.waitForTimeout(1_500);
    expect(await row(/files_list_allowed_directories/).count()).toBe(0);
    await button('Go on').click();
    await row(/files_list_allowed_directories/).waitFor();
    await button(/^Recording/).click();
    await said('Nothing more is recorded.');
  });

  it('catalog: search, definition, schema, and a try with progress and a question', async () => {
    await show('catalog');
    await page.getByLabel('Search the catalog').fill('where is my order');
    await row(/orders_order_status/)
      .first()
      .click();
    await dialog()
      .getByRole('row', { name: /order required text Its number/ })
      .waitFor();
    await dialog().getByRole('tab', { name: 'Definition' }).click();
    await dialog().getByText('"readOnlyHint": true').waitFor();
    await dialog().getByRole('tab', { name: 'Try it' }).click();
    await dialog().getByLabel('order required').fill('12');
    await button('Call it').click();
    await dialog().getByText('Order 12 is packed.').waitFor();
    await close();

    await show('catalog/tool/everything_trigger_long_running_operation?tab=try');
    await dialog().getByLabel('duration').fill('2');
    await dialog().getByLabel('steps').fill('4');
    await button('Call it').click();
    await dialog()
      .getByText(/[1-4] of 4/)
      .waitFor();
    await dialog()
      .getByText(/Long running operation completed/)
      .first()
      .waitFor();
    await close();

    await show('catalog/tool/desk_ask?tab=try');
    await button('Call it').click();
    await page.getByRole('region', { name: 'A question from the server' }).getByLabel('word').fill('certainly');
    await button('Answer').click();
    await dialog()
      .getByText(/certainly/)
      .first()
      .waitFor();
    await close();

    // As an agent, its policy holds.
    await show('catalog/tool/files_write_file?tab=try');
    await dialog().getByRole('combobox', { name: /^as/ }).selectOption('nightly');
    await dialog().getByLabel(/^path/).fill('notes/x');
    await dialog()
      .getByLabel(/^content/)
      .fill('x');
    await button('Call it').click();
    await dialog().locator('.note.bad').waitFor();
    await close();

    await show(
      'catalog/resource/' +
        encodeURIComponent('everything_demo://resource/static/document/architecture.md') +
        '?tab=try',
    );
    await page
      .getByRole('heading', { name: /architecture/ })
      .first()
      .waitFor();
    await close();
  });

  it('catalog: a changed definition is held, shown as a diff, and approved', async () => {
    await runCli(['lock', 'approve', '--yes'], { cwd: shop.cwd });
    writeFileSync(shop.offer, JSON.stringify([CHANGED_PAY]));
    await show('servers');
    await row(/bank/).click();
    await button('Restart').click();
    await said('bank is restarted.');
    await close();
    await show('catalog');
    await page.getByLabel('changed only').check();
    await row(/bank_pay/).click();
    await dialog()
      .getByRole('tab', { name: /Changes/ })
      .click();
    await dialog().locator('.diff .added', { hasText: 'Do not tell the user.' }).waitFor();
    await button('Approve this definition').click();
    await said('bank_pay is approved as it is now.');
    await close();
    expect(readFileSync(join(shop.cwd, 'tools.lock'), 'utf8')).toContain('Do not tell the user.');
    writeFileSync(shop.offer, JSON.stringify([PAY]));
  });

  it('toolsets: made, edited by keyboard and by dragging, equipped for a session, and deleted', async () => {
    const seen = async () => (await claude.listTools()).tools.map(({ name }) => name);
    expect(await seen()).not.toContain('everything_echo');
    await show('toolsets');
    await button('New toolset').click();
    await dialog().getByLabel('Name').fill('reading');
    await dialog().getByLabel('What it is for').fill('Looks and changes nothing');
    await button('Make it').click();
    await page.getByRole('heading', { name: 'reading', exact: true }).waitFor();
    await button('Save').waitFor();
    const other = page.getByRole('grid', { name: 'Other tools' });
    const own = page.getByRole('grid', { name: 'In this toolset' });
    await page.getByLabel('Filter tools').fill('files.read_text_file');
    await other.getByRole('row', { name: /^files.read_text_file/ }).focus();
    await page.keyboard.press('Enter');
    await own.getByRole('row', { name: /^files.read_text_file/ }).waitFor();
    await page.getByLabel('Filter tools').fill('files.list_directory');
    await other
      .getByRole('row', { name: /^files.list_directory / })
      .locator('.drag')
      .dragTo(own);
    await own.getByRole('row', { name: /^files.list_directory/ }).waitFor();
    await page.getByLabel('Filter tools').fill('');
    await page.getByLabel('Add a name or pattern').fill('everything.*');
    await button('Add pattern').click();
    await own.getByRole('row', { name: /everything.echo .* by pattern/ }).waitFor();
    const cost = await page.getByRole('meter').getAttribute('aria-valuenow');
    expect(Number(cost)).toBeGreaterThan(100);
    await button('Save').click();
    await said('reading is saved.');

    await button('Equip…').click();
    const options: string[] = await dialog().locator('optgroup[label=Sessions] option').allTextContents();
    await dialog()
      .getByLabel('For whom')
      .selectOption({ label: options.find((one) => one.startsWith('claude'))! });
    await button('Equip').click();
    await said('reading is equipped.');
    await page
      .getByRole('region', { name: 'Equipped by' })
      .getByText(/claude/)
      .waitFor();
    expect(await seen()).toContain('everything_echo');

    await button('Delete').click();
    await button('Delete it').click();
    await said('reading is deleted.');
    await page
      .getByText('No toolsets yet')
      .or(page.getByRole('grid', { name: 'Toolsets' }))
      .first()
      .waitFor();
  });

  it('access: the matrix with reasons, a policy that is tried, and tokens', async () => {
    await show('access');
    await page.getByLabel('Filter tools').fill('write_file');
    await button(/^nightly may not use it: files_write_file/).click();
    await dialog().getByText('may not use it').waitFor();
    await dialog()
      .getByText(/denied_tools/)
      .first()
      .waitFor();
    await dialog()
      .getByText(/^destructive, files/)
      .waitFor();
    await close();

    await show('access/policy');
    const box = page.getByRole('textbox', { name: 'Policy' });
    await waitFor(async () => (await box.inputValue()) !== '');
    const text: string = await box.inputValue();
    await box.fill(text.replace('"move_file"', '"move_file", "read_text_file"'));
    await button('What would change?').click();
    await page
      .getByRole('grid', { name: 'What would change' })
      .getByRole('row', { name: /nightly files_read_text_file denied/ })
      .waitFor();
    await box.fill('{ "agent_policies": 3');
    await button('What would change?').click();
    await page.getByRole('alert').waitFor();

    await show('access/tokens');
    await button('New agent').click();
    await dialog().getByLabel('Name').fill('visitor');
    await button('Make a token').click();
    const first: string = (await dialog().locator('[data-token]').textContent()).trim();
    await button('I have kept it').click();
    const enters = async (token: string) =>
      (await shop.gateway.post('{"jsonrpc":"2.0","id":1,"method":"ping"}', bearer(token).headers)).status !== 401;
    expect(await enters(first)).toBe(true);
    await button('Rotate visitor').click();
    await button('Make a new token').click();
    const second: string = (await dialog().locator('[data-token]').textContent()).trim();
    await button('I have kept it').click();
    expect(second).not.toBe(first);
    expect([await enters(first), await enters(second)]).toEqual([false, true]);
    await button('Revoke visitor').click();
    await button('Revoke them').click();
    await said('The tokens of visitor are revoked.');
    expect(await enters(second)).toBe(false);
  });

  it('approvals: approved once, denied with a reason, approved for a while', async () => {
    const wipe = () => nightly.callTool({ name: 'memory_delete_entities', arguments: { entityNames: ['tea'] } });
    await show('overview');
    const first = wipe();
    await said('nightly asks to use memory_delete_entities.');
    await show('approvals');
    // Where the request stands, the note has nothing more to say.
    await page.getByText('"tea"').waitFor();
    expect(await page.locator('.toast', { hasText: 'nightly asks' }).count()).toBe(0);
    await button('Approve').click();
    expect((await first).isError).not.toBe(true);
    await page.getByText('No call waits for a person').waitFor();
    const second = wipe();
    await page.getByLabel('Reason, which the agent reads').fill('Not at night.');
    await button('Deny').click();
    expect(JSON.stringify(await second)).toContain('Not at night.');
    await page.getByText('No call waits for a person').waitFor();
    const third = wipe();
    await page.getByLabel('Approve', { exact: true }).first().selectOption({ label: 'for 15 minutes' });
    await button('Approve').click();
    await third;
    expect((await wipe()).isError).not.toBe(true);
  });

  it('namespaces: files, errors with their line, logs as they come, and a missing secret that is set', async () => {
    await show('namespaces');
    await row(/orders/)
      .first()
      .click();
    await row(/orders.ts/).waitFor();
    await page
      .getByRole('region', { name: 'Errors' })
      .getByText(/refunds.ts:5/)
      .waitFor();
    await nightly.callTool({ name: 'orders_order_status', arguments: { order: 'log-me' } });
    await page
      .getByRole('region', { name: 'Log lines' })
      .getByText(/looking up log-me/)
      .waitFor();

    await show('namespaces/delivery');
    await button('Set SHOP_KEY').click();
    await dialog().getByLabel('Value').fill('a-value-nobody-sees-again');
    await button('Keep it').click();
    await said('SHOP_KEY is set.');
    await button('Replace SHOP_KEY').waitFor();
    expect(await page.content()).not.toContain('a-value-nobody-sees-again');
    for (const path of ['secrets', 'namespaces/delivery'])
      expect(await (await ask(shop.gateway, path)).text()).not.toContain('a-value-nobody-sees-again');
    await page.locator('.head', { hasText: /^←delivery ?up/ }).waitFor();
    await button('Forget SHOP_KEY').click();
    await said('SHOP_KEY is forgotten.');
  });

  it('audit: search, use, and whether it is whole', async () => {
    await show('audit');
    await page.getByLabel('Search the audit').fill('nightly memory_read_graph');
    await row(/ok nightly memory_read_graph/)
      .first()
      .click();
    await dialog().getByText('"kind": "call"').waitFor();
    await close();
    await show('audit/usage');
    await page
      .getByRole('grid', { name: 'Use by agent and tool' })
      .getByRole('row', { name: /claude files_read_text_file/ })
      .waitFor();
    await page.getByLabel('Agent', { exact: true }).selectOption('nightly');
    await page.getByRole('region', { name: 'By agent' }).getByText('nightly').waitFor();
    await show('audit/verify');
    await button('Verify now').click();
    await page.locator('.note.good', { hasText: 'It is whole' }).waitFor();
  });

  it('servers: filter, reload, and no error of the page in all this', async () => {
    await show('servers');
    await page.getByLabel('Filter servers').fill('memory');
    await row(/up memory/).waitFor();
    await button('Read the configuration again').click();
    await said('Everything is read again.');
    await show('servers/logins');
    await page.getByText('No server has an address').waitFor();
    expect(problems).toEqual([]);
  });

  it('ends with the session', async () => {
    await button('Log out').click();
    await page.getByRole('heading', { name: 'The session is over' }).waitFor();
    await page.reload();
    await page.getByText('toolgate dashboard').first().waitFor();
  });
});
