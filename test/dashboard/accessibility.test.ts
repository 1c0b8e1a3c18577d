/** Every view of the dashboard for everybody: axe finds nothing in dark and light, the keyboard does everything, and a phone shows it. */
import type { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { beforeAll, describe, expect, it } from 'vitest';
import { type Any, type Dashboard, enterDashboard, openBrowser, sideways, violations } from '../support/browser.ts';
import { isMissing } from '../support/needs.ts';
import { CLAUDE, NIGHTLY, openShop, type Shop } from './shop.ts';

const VIEWS = [
  'overview',
  'calls',
  'catalog',
  'catalog/tool/orders_order_status',
  'catalog/tool/everything_get_structured_content?tab=try',
  'toolsets',
  'toolsets/reading',
  'access',
  'access/policy',
  'access/tokens',
  'approvals',
  'namespaces',
  'namespaces/orders',
  'audit',
  'audit/usage',
  'audit/verify',
  'servers',
  'servers/logins',
  'servers/registry',
];

let browser: Any;
let shop: Shop;
let later: Client;

/** A call that waits for a person. Clients give up after a minute, so it is made shortly before it is looked at. */
const askSomebody = () =>
  void later.callTool({ name: 'memory_delete_entities', arguments: { entityNames: ['tea'] } }).catch(() => undefined);

/** Waits until nothing more is asked for, so that what is judged is the whole view. */
const settle = (page: Any) => page.waitForLoadState('networkidle', { timeout: 3_000 }).catch(() => undefined);

describe.skipIf(isMissing('chromium'))('the dashboard for everybody', () => {
  beforeAll(async () => {
    [browser, shop] = await Promise.all([openBrowser(), openShop()]);
    const { gateway } = shop;
    const claude = await gateway.connect({ headers: { authorization: `Bearer ${CLAUDE}` } });
    const nightly = await gateway.connect({ headers: { authorization: `Bearer ${NIGHTLY}` } });
    await claude.client.callTool({ name: 'orders_order_status', arguments: { order: '1' } });
    later = nightly.client;
    const { page, show } = await enterDashboard(browser, gateway);
    await show('toolsets');
    await page.getByRole('button', { name: 'New toolset' }).click();
    await page.getByLabel('Name').fill('reading');
    await page.getByRole('button', { name: 'Make it' }).click();
    await page.getByRole('heading', { name: 'reading', exact: true }).waitFor();
    await page.context().close();
  }, 90_000);

  for (const colours of ['light', 'dark'] as const)
    it(`axe finds nothing in any view, ${colours}`, async () => {
      const { page, show } = await enterDashboard(browser, shop.gateway, { colours, pastPolicy: true });
      const found: string[] = [];
      for (const view of VIEWS) {
        if (view === 'approvals') askSomebody();
        await show(view);
        await settle(page);
        for (const one of await violations(page)) found.push(`${view}: ${one}`);
      }
      // Dialogs, the list of keys, and notes.
      await show('access/tokens');
      await page.getByRole('button', { name: 'New agent' }).click();
      found.push(...(await violations(page)));
      await page.keyboard.press('Escape');
      await page.keyboard.press('?');
      await page.getByRole('dialog', { name: 'Keys' }).waitFor();
      found.push(...(await violations(page)));
      expect(found).toEqual([]);
      await page.context().close();
    }, 180_000);

  it('a phone shows every view without scrolling sideways', async () => {
    const { page, show } = await enterDashboard(browser, shop.gateway, { width: 375, height: 720 });
    const wide: string[] = [];
    for (const view of VIEWS) {
      await show(view);
      await settle(page);
      if ((await sideways(page)) > 0) wide.push(view);
    }
    expect(wide).toEqual([]);
    await show('overview');
    await page.getByRole('button', { name: 'Menu' }).click();
    await page.getByRole('link', { name: 'Catalog' }).click();
    await page.getByRole('heading', { name: 'Catalog' }).waitFor();
    await page.context().close();
  }, 120_000);

  describe('by keyboard', () => {
    let dashboard: Dashboard;
    const press = async (...keys: string[]) => {
      for (const key of keys) await dashboard.page.keyboard.press(key);
    };
    const heading = (name: string) => dashboard.page.getByRole('heading', { name, exact: true, level: 1 }).waitFor();
    beforeAll(async () => {
      dashboard = await enterDashboard(browser, shop.gateway);
    });

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
        await press('g', key);
        await heading(name);
      }
    });

    it('finds a tool, opens it, tries it, and returns to where it was', async () => {
      const { page } = dashboard;
      await press('g', 'c');
      await heading('Catalog');
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
        await press(
          (await page.evaluate("document.activeElement.getAttribute('role') === 'row'")) ? 'ArrowDown' : 'Tab',
        );
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
      expect(await row.evaluate((one: Any) => one === one.ownerDocument.activeElement)).toBe(true);
    });

    it('walks a table with arrows, Home and End', async () => {
      const { page } = dashboard;
      await press('Escape');
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
      await dashboard.show('toolsets/reading');
      await page.getByRole('button', { name: 'Save' }).waitFor();
      await page.getByRole('grid', { name: 'Other tools' }).locator('[role=row][tabindex="0"]').focus();
      await press('Enter');
      await page.getByRole('grid', { name: 'In this toolset' }).locator('[role=row][aria-rowindex="2"]').focus();
      await press('Enter');
      await page.getByText('No tool is in it.').waitFor();
      askSomebody();
      await press('g', 'p');
      await heading('Approvals');
      await page.getByLabel('Reason, which the agent reads').last().focus();
      await page.keyboard.type('no');
      await press('Tab', 'Enter');
      await page.locator('.toast', { hasText: 'Denied: memory_delete_entities for nightly.' }).waitFor();
      await press('?');
      await page.getByRole('dialog', { name: 'Keys' }).waitFor();
      await press('Escape');
      await page.locator('dialog').waitFor({ state: 'detached' });
    });
  });
});
