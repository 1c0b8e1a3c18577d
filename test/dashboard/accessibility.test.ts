/** Every view of the dashboard for everybody: axe finds nothing in dark and light, and every size of screen shows it. */
import type { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { beforeAll, describe, expect, it } from 'vitest';
import { type Any, enterDashboard, openBrowser, sideways, violations } from '../support/browser.ts';
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

  it('phones, tablets and small screens show every view without scrolling sideways or cutting columns', async () => {
    const { page, show } = await enterDashboard(browser, shop.gateway, { width: 375, height: 720 });
    const wide: string[] = [];
    for (const view of VIEWS) {
      await show(view);
      await settle(page);
      for (const width of [375, 768, 1024, 1440]) {
        await page.setViewportSize({ width, height: 720 });
        // Tables choose their columns in the next frame.
        await page.evaluate('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))');
        if ((await sideways(page)) > 0) wide.push(`${view} at ${width}`);
      }
      await page.setViewportSize({ width: 375, height: 720 });
    }
    expect(wide).toEqual([]);
    await show('overview');
    await page.getByRole('button', { name: 'Menu' }).click();
    await page.getByRole('link', { name: 'Catalog' }).click();
    await page.getByRole('heading', { name: 'Catalog' }).waitFor();
    await page.context().close();
  }, 120_000);
});
