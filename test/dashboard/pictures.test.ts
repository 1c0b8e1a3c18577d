/** The pictures of docs/dashboard.md, of the shop. They are written with UPDATE_DOCS=1; otherwise only that they exist and can be made. */
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { beforeAll, describe, expect, it } from 'vitest';
import { type Any, enterDashboard, openBrowser } from '../support/browser.ts';
import { isMissing } from '../support/needs.ts';
import { CLAUDE, NIGHTLY, openShop, type Shop } from './shop.ts';

const folder = fileURLToPath(new URL('../../docs/images/', import.meta.url));
const isUpdate = process.env.UPDATE_DOCS === '1';

const PICTURES: readonly (readonly [name: string, view: string, colours: 'light' | 'dark', ready: string])[] = [
  ['overview', 'overview', 'light', 'Servers up'],
  ['overview-dark', 'overview', 'dark', 'Servers up'],
  ['calls', 'calls', 'dark', 'orders_order_status'],
  ['call', 'calls', 'light', 'orders_order_status'],
  ['catalog', 'catalog/tool/files_edit_file', 'light', 'What it takes'],
  ['try-it', 'catalog/tool/files_read_text_file?tab=try', 'dark', 'Call it'],
  ['toolsets', 'toolsets/reading', 'light', 'In this toolset'],
  ['access', 'access', 'light', 'nightly'],
  ['approvals', 'approvals', 'light', 'nightly asks'],
  ['namespaces', 'namespaces/orders', 'light', 'refunds.ts'],
  ['audit', 'audit/usage', 'light', 'By day'],
  ['servers', 'servers', 'dark', 'printer'],
];

let browser: Any;
let shop: Shop;

const bearer = (token: string) => ({ headers: { authorization: `Bearer ${token}` } });

/** A minute in the life of a shop, in a few seconds. */
async function work(claude: Client, nightly: Client, seconds: number): Promise<void> {
  const calls: [Client, string, Record<string, unknown>][] = [
    [claude, 'files_read_text_file', { path: 'shopping.md' }],
    [claude, 'orders_order_status', { order: '4711' }],
    [nightly, 'memory_read_graph', {}],
    [claude, 'files_list_directory', { path: '.' }],
    [nightly, 'memory_search_nodes', { query: 'tea' }],
    [claude, 'files_list_allowed_directories', {}],
    [nightly, 'files_read_text_file', { path: 'plans.md' }],
  ];
  const end = Date.now() + seconds * 1_000;
  for (let count = 0; Date.now() < end; count += 1) {
    const [client, name, args] = calls[count % calls.length]!;
    const isMissing = count % 29 === 13;
    await client
      .callTool(isMissing ? { name: 'files_read_text_file', arguments: { path: 'no.md' } } : { name, arguments: args })
      .catch(() => undefined);
    await new Promise((resolve) => setTimeout(resolve, 20 + 40 * Math.abs(Math.sin(count / 40))));
  }
}

describe.skipIf(isMissing('chromium'))('pictures of the dashboard', () => {
  beforeAll(async () => {
    [browser, shop] = await Promise.all([openBrowser(), openShop()]);
  }, 90_000);

  it(
    'are in docs/images',
    async () => {
      const claude = (await shop.gateway.connect({ ...bearer(CLAUDE), name: 'claude-code' })).client;
      const nightly = (await shop.gateway.connect({ ...bearer(NIGHTLY), name: 'cron' })).client;
      const looks = { width: 1200, height: 750 };
      const light = await enterDashboard(browser, shop.gateway, { ...looks, colours: 'light' });
      const dark = await enterDashboard(browser, shop.gateway, { ...looks, colours: 'dark' });
      await dark.show('calls');
      await dark.page.getByRole('button', { name: 'Record' }).click();
      await dark.page.getByRole('button', { name: /^Recording/ }).waitFor();
      await light.show('toolsets');
      await light.page.getByRole('button', { name: 'New toolset' }).click();
      await light.page.getByLabel('Name').fill('reading');
      await light.page.getByLabel('What it is for').fill('Looks and changes nothing');
      await light.page.getByRole('button', { name: 'Make it' }).click();
      await light.page.getByLabel('Add a name or pattern').fill('files.read_*');
      await light.page.getByRole('button', { name: 'Add pattern' }).click();
      await light.page.getByLabel('Add a name or pattern').fill('memory.search_nodes');
      await light.page.getByRole('button', { name: 'Add pattern' }).click();
      await light.page.getByRole('button', { name: 'Save' }).click();
      await work(claude, nightly, isUpdate ? 30 : 1);
      for (const [name, view, colours, ready] of PICTURES) {
        const { page, show } = colours === 'light' ? light : dark;
        // Not before: clients give up after a minute.
        if (view === 'approvals')
          nightly
            .callTool({ name: 'memory_delete_entities', arguments: { entityNames: ['old orders'] } })
            .catch(() => undefined);
        await show(view);
        await page.getByText(ready).first().waitFor();
        await page.evaluate("document.querySelectorAll('.toast button').forEach((one) => one.click())");
        if (view === 'calls' || view === 'overview') await work(claude, nightly, 1);
        if (name === 'call') {
          await page
            .getByRole('row', { name: /orders_order_status/ })
            .first()
            .click();
          await page.getByText('Where the time went').waitFor();
        }
        // Plots and rows are drawn a moment after the text.
        await page.waitForTimeout(isUpdate ? 600 : 50);
        if (isUpdate) mkdirSync(folder, { recursive: true });
        const path = join(folder, `dashboard-${name}.png`);
        const picture: Buffer = await page.screenshot(isUpdate ? { path } : {});
        expect(picture.length).toBeGreaterThan(10_000);
        expect(existsSync(path), path).toBe(true);
      }
      expect([...light.problems, ...dark.problems]).toEqual([]);
    },
    isUpdate ? 240_000 : 120_000,
  );
});
