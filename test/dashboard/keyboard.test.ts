/** Everything that the dashboard does, done by keyboard only. */
import type { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { beforeAll, describe, expect, it } from 'vitest';
import { type Any, type Dashboard, enterDashboard, openBrowser } from '../support/browser.ts';
import { isMissing } from '../support/needs.ts';
import { CLAUDE, NIGHTLY, openShop } from './shop.ts';

describe.skipIf(isMissing('chromium'))('the dashboard by keyboard', () => {
  let later: Client;
  /** A call that waits for a person. Clients give up after a minute, so it is made shortly before it is decided. */
  const askSomebody = () =>
    void later.callTool({ name: 'memory_delete_entities', arguments: { entityNames: ['tea'] } }).catch(() => undefined);
  let dashboard: Dashboard;
  /** Effects of a key come with the next picture. Who asks before it where the focus is takes one step too many. */
  const press = async (...keys: string[]) => {
    for (const key of keys) {
      await dashboard.page.keyboard.press(key);
      await drawn();
    }
  };
  const drawn = () =>
    dashboard.page.evaluate(
      'new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done))))',
    );
  /** The second key counts only shortly after the first, which a busy machine may miss. */
  const go = async (key: string, name: string) => {
    const heading = dashboard.page.getByRole('heading', { name, exact: true, level: 1 });
    for (let tries = 0; tries < 10; tries += 1) {
      await press('g', key);
      const isThere = await heading.waitFor({ timeout: 5_000 }).then(
        () => true,
        () => false,
      );
      if (isThere) return;
    }
    throw new Error(`g ${key} does not go to ${name}`);
  };
  beforeAll(async () => {
    const [browser, shop] = await Promise.all([openBrowser(), openShop()]);
    const bearer = (token: string) => ({ headers: { authorization: `Bearer ${token}` } });
    const claude = await shop.gateway.connect(bearer(CLAUDE));
    await claude.client.callTool({ name: 'orders_order_status', arguments: { order: '1' } });
    later = (await shop.gateway.connect(bearer(NIGHTLY))).client;
    dashboard = await enterDashboard(browser, shop.gateway);
  }, 90_000);

  it('goes to every view', async () => {
    const views = {
      l: 'Live calls',
      c: 'Catalog',
      t: 'Toolsets',
      a: 'Access',
      p: 'Approvals',
      n: 'Namespaces',
      u: 'Audit',
      s: 'Servers',
      o: 'Overview',
    };
    for (const [key, name] of Object.entries(views)) {
      await go(key, name);
    }
  });

  it('finds a tool, opens it, tries it, and returns to where it was', async () => {
    const { page } = dashboard;
    await go('c', 'Catalog');
    await press('/');
    await page.keyboard.type('order');
    const row = page.getByRole('row', { name: /orders_order_status/ }).first();
    await row.waitFor();
    await press('Tab');
    // Past the selects and the heads, to the rows.
    for (
      let steps = 0;
      steps < 20 && !(await row.evaluate((one: Any) => one === one.ownerDocument.activeElement));
      steps += 1
    )
      await press((await page.evaluate("document.activeElement.getAttribute('role') === 'row'")) ? 'ArrowDown' : 'Tab');
    await press('Enter');
    await page.getByRole('tab', { name: 'About' }).waitFor();
    await page.getByRole('tab', { name: 'About' }).focus();
    await press('ArrowRight');
    await press('Tab');
    await page.keyboard.type('77');
    await press('Enter');
    await page.getByText('Order 77 is packed.').waitFor();
    await press('Escape');
    await page.locator('dialog').waitFor({ state: 'detached' });
    await drawn();
    expect(await row.evaluate((one: Any) => one === one.ownerDocument.activeElement)).toBe(true);
  });

  it('walks a table with arrows, Home and End', async () => {
    const { page } = dashboard;
    await go('c', 'Catalog');
    await page.getByLabel('Search the catalog').fill('');
    await expect
      .poll(async () => Number(await page.getByRole('grid').getAttribute('aria-rowcount')))
      .toBeGreaterThan(40);
    const first = page.locator('[role=row][aria-rowindex="2"]');
    await first.focus();
    const at = () => page.evaluate("Number(document.activeElement.getAttribute('aria-rowindex'))");
    await press('ArrowDown', 'ArrowDown');
    await expect.poll(at).toBe(4);
    await press('End');
    const count = Number(await page.getByRole('grid').getAttribute('aria-rowcount'));
    await expect.poll(at).toBe(count);
    await press('Home');
    await expect.poll(at).toBe(2);
  });

  it('edits a toolset, decides on a call, and reads the keys', async () => {
    const { page } = dashboard;
    await dashboard.show('toolsets');
    await page.getByRole('button', { name: 'New toolset' }).click();
    await page.getByLabel('Name').fill('reading');
    await page.getByRole('button', { name: 'Make it' }).click();
    await page.getByRole('button', { name: 'Save' }).waitFor();
    await page.getByRole('grid', { name: 'Other tools' }).locator('[role=row][tabindex="0"]').focus();
    await press('Enter');
    await page.getByRole('grid', { name: 'In this toolset' }).locator('[role=row][aria-rowindex="2"]').focus();
    await press('Enter');
    await page.getByText('No tool is in it.').waitFor();
    askSomebody();
    await go('p', 'Approvals');
    await page.getByLabel('Reason, which the agent reads').last().focus();
    await page.keyboard.type('no');
    await press('Tab', 'Enter');
    await page.locator('.toast', { hasText: 'Denied: memory_delete_entities for nightly.' }).waitFor();
    await press('?');
    await page.getByRole('dialog', { name: 'Keys' }).waitFor();
    await press('Escape');
    await page.locator('dialog').waitFor({ state: 'detached' });
  });

  describe('every other action', () => {
    const isFocused = (one: Any): Promise<boolean> =>
      one.evaluate((element: Any) => element === element.ownerDocument.activeElement);
    const button = (name: string | RegExp) =>
      dashboard.page.getByRole('button', { name, exact: typeof name === 'string' });
    const said = (text: string) => dashboard.page.locator('.toast', { hasText: text }).first().waitFor();
    /** Presses Tab until it has the focus. */
    const tabTo = async (one: Any) => {
      await one.waitFor();
      for (let steps = 0; steps < 120; steps += 1) {
        if (await isFocused(one)) return;
        await press('Tab');
      }
      throw new Error(`Tab does not reach ${one}`);
    };
    const enter = async (one: Any) => {
      await tabTo(one);
      await press('Enter');
    };
    /** From the first row down to this one. */
    const openRow = async (grid: string, name: RegExp) => {
      const rows = dashboard.page.getByRole('grid', { name: grid, exact: true });
      const row = rows.getByRole('row', { name }).first();
      await row.waitFor();
      await tabTo(rows.locator('[role=row][tabindex="0"]'));
      await press('Home');
      for (let steps = 0; steps < 60 && !(await isFocused(row)); steps += 1) await press('ArrowDown');
      await press('Enter');
    };
    const closed = async () => {
      await press('Escape');
      await dashboard.page.locator('dialog').waitFor({ state: 'detached' });
    };
    const type = (text: string) => dashboard.page.keyboard.type(text);

    it('of the overview, live calls and servers', async () => {
      const { page } = dashboard;
      await go('o', 'Overview');
      await openRow('Servers', /printer/);
      await enter(button('Restart'));
      await said('printer is restarted.');
      await closed();
      await go('l', 'Live calls');
      await enter(button('Record'));
      await enter(button(/^Recording/));
      await said('Nothing more is recorded.');
      await enter(button('Pause'));
      await enter(button('Go on'));
      await later.callTool({ name: 'memory_read_graph', arguments: {} });
      await press('/');
      await type('memory_read_graph');
      await openRow('Calls', /memory_read_graph/);
      await page.getByText('Where the time went').waitFor();
      await closed();
      await go('s', 'Servers');
      await enter(button('Read the configuration again'));
      await said('Everything is read again.');
    });

    it('of toolsets', async () => {
      const { page } = dashboard;
      await go('t', 'Toolsets');
      await enter(button('New toolset'));
      await tabTo(page.getByRole('dialog').getByLabel('Name'));
      await type('by-keys');
      await press('Enter');
      await page.getByRole('heading', { name: 'by-keys', exact: true }).waitFor();
      await tabTo(page.getByLabel('Add a name or pattern'));
      await type('files.list_*');
      await press('Enter');
      await page
        .getByRole('grid', { name: 'In this toolset' })
        .getByRole('row', { name: /list_directory/ })
        .first()
        .waitFor();
      await enter(button('Save'));
      await said('by-keys is saved.');
      await enter(button('Equip…'));
      await tabTo(page.getByLabel('For whom'));
      await type('nightly');
      await enter(button('Equip'));
      await said('by-keys is equipped.');
      await enter(button('Delete'));
      await enter(button('Delete it'));
      await said('by-keys is deleted.');
    });

    it('of access: a reason, a policy, and tokens', async () => {
      const { page } = dashboard;
      await go('a', 'Access');
      await press('/');
      await type('files_write_file');
      // The filter takes effect a moment later, and may move the focus.
      const agents = page.getByRole('dialog').getByRole('combobox');
      for (let tries = 0; tries < 5 && !(await agents.isVisible()); tries += 1) {
        await openRow('Agents and tools', /files_write_file/);
        await agents.waitFor({ timeout: 10_000 }).catch(() => {});
      }
      await tabTo(agents);
      await type('nightly');
      await page
        .getByRole('dialog')
        .getByText(/denied_tools/)
        .first()
        .waitFor();
      await closed();
      await tabTo(page.getByRole('tab', { name: 'Agents and tools' }));
      await press('ArrowRight');
      const box = page.getByRole('textbox', { name: 'Policy' });
      await tabTo(box);
      await expect.poll(() => box.inputValue()).toContain('move_file');
      await press('Control+End');
      await type('\n[agent_policies.claude]\ndenied_tools = { orders = ["*"] }\n');
      await press('Control+Enter');
      await page
        .getByRole('grid', { name: 'What would change' })
        .getByRole('row', { name: /claude orders_order_status denied/ })
        .waitFor();
      await dashboard.show('access/tokens');
      await enter(button('New agent'));
      await tabTo(page.getByRole('dialog').getByLabel('Name'));
      await type('keys');
      await press('Enter');
      await enter(button('I have kept it'));
      await enter(button('Rotate keys'));
      await enter(button('Make a new token'));
      await enter(button('I have kept it'));
      await enter(button('Revoke keys'));
      await enter(button('Revoke them'));
      await said('The tokens of keys are revoked.');
    });

    it('of approvals, namespaces and the audit, and the end of the session', async () => {
      const { page } = dashboard;
      askSomebody();
      await go('p', 'Approvals');
      await enter(button('Approve').first());
      await said('Approved: memory_delete_entities for nightly.');
      await go('n', 'Namespaces');
      await openRow('Namespaces', /delivery/);
      // The list that it replaces has the same button.
      await page.getByRole('link', { name: 'Back to all namespaces' }).waitFor();
      await enter(button('Set SHOP_KEY'));
      await tabTo(page.getByRole('dialog').getByLabel('Value'));
      await type('a-value-nobody-sees-again');
      await press('Enter');
      await said('SHOP_KEY is set.');
      await enter(button('Forget SHOP_KEY'));
      await said('SHOP_KEY is forgotten.');
      await go('u', 'Audit');
      await press('/');
      await type('memory_read_graph');
      await openRow('Records', /memory_read_graph/);
      await page.getByRole('dialog').getByText('"kind": "call"').waitFor();
      await closed();
      await tabTo(page.getByRole('tab', { name: 'Records' }));
      await press('ArrowRight', 'ArrowRight');
      await enter(button('Verify now'));
      await page.locator('.note.good', { hasText: 'It is whole' }).waitFor();
      await enter(button('Log out'));
      await page.getByRole('heading', { name: 'The session is over' }).waitFor();
    });
  });
});
