/** The dashboard of several processes on one port: one login for all of them, and a page that looks at one. */
import { beforeAll, describe, expect, it } from 'vitest';
import type * as types from '../../src/dashboard/api-types.ts';
import { type Any, enterDashboard, linkTo, OPERATOR, openBrowser } from '../support/browser.ts';
import { type HttpGateway, startHttp } from '../support/gateway.ts';
import { isMissing } from '../support/needs.ts';
import { waitFor } from '../support/processes.ts';
import { server, serversToml } from '../support/server.ts';
import { useProcesses } from '../support/switch.ts';

useProcesses();

/** So many new connections reach both processes, which take turns. */
const TIMES = 8;
let gateway: HttpGateway;

beforeAll(async () => {
  gateway = await startHttp({
    config: `controls = []\n[security]\ndangerous_tools = { a = ["count"] }\n${serversToml({ a: server('basic'), desk: server('asking') })}`,
    env: { TOOLGATE_OPERATOR_KEY: OPERATOR },
    args: ['--processes', '2'],
  });
}, 90_000);

/** On a connection of its own. */
const at = (path: string, headers: Record<string, string>, method = 'GET') =>
  fetch(`${gateway.origin}/admin/${path}`, { method, headers: { connection: 'close', ...headers } });

async function each<T>(work: () => Promise<T>): Promise<T[]> {
  const all: T[] = [];
  for (let count = 0; count < TIMES; count += 1) all.push(await work());
  return all;
}

async function homes(headers: Record<string, string>): Promise<string[]> {
  const found = await each(async () => {
    const response = await at('session', headers);
    expect(response.status).toBe(200);
    return ((await response.json()) as types.SessionInfo).replica!.id;
  });
  return [...new Set(found)];
}

it('a link works once in all, its session in each of them, and a log-out ends it everywhere', async () => {
  const link = await linkTo(gateway);
  const entries = await each(() => fetch(link, { headers: { connection: 'close' } }));
  expect(entries.map(({ status }) => status).sort()).toEqual([200, ...Array(TIMES - 1).fill(401)]);
  const cookie = entries
    .find(({ status }) => status === 200)!
    .headers.get('set-cookie')!
    .split(';')[0]!;
  const own = { cookie, 'x-toolgate-page': '1' };
  await waitFor(async () => (await homes(own)).length === 2);
  expect((await at('session', own, 'DELETE')).status).toBe(204);
  for (const { status } of await each(() => at('session', own))) expect(status).toBe(401);
});

it('what is for one process is passed on to it, with its errors', async () => {
  const key = { authorization: `Bearer ${OPERATOR}` };
  let both: string[] = [];
  await waitFor(async () => {
    both = await homes(key);
    return both.length === 2;
  });
  for (const home of both) expect(await homes({ ...key, 'x-toolgate-replica': home })).toEqual([home]);
  // One that is gone is nobody's home.
  expect((await homes({ ...key, 'x-toolgate-replica': 'nobody' })).length).toBeGreaterThan(0);
  for (const home of both) {
    const refused = await each(() => at('calls/77', { ...key, 'x-toolgate-replica': home }));
    for (const response of refused)
      expect([response.status, ((await response.json()) as types.ApiError).code]).toEqual([404, 'path_unknown']);
  }
});

describe.skipIf(isMissing('chromium'))('a page', () => {
  it('shows whole calls of one process, says so, answers questions, and decides on calls of all', async () => {
    const browser: Any = await openBrowser();
    const { page, problems, show } = await enterDashboard(browser, gateway);
    await page.getByText('one of 2 processes').waitFor();
    await show('calls');
    await page.getByRole('heading', { name: 'Live calls' }).waitFor();
    const { client } = await gateway.connect();
    await waitFor(async () => {
      for (let count = 0; count < 4; count += 1) await client.callTool({ name: 'a_echo', arguments: { word: 'tea' } });
      return (await page.getByRole('row', { name: /ok .*a_echo/ }).count()) > 0;
    });
    for (let count = 0; count < 4; count += 1) {
      await page
        .getByRole('row', { name: /ok .*a_echo/ })
        .first()
        .click();
      await page.getByRole('dialog').getByText('Where the time went').waitFor();
      await page.keyboard.press('Escape');
      await page.locator('dialog').waitFor({ state: 'detached' });
    }
    for (let count = 0; count < 3; count += 1) {
      await show('catalog/tool/desk_ask?tab=try');
      await page.getByRole('button', { name: 'Call it' }).click();
      const question = page.getByRole('region', { name: 'A question from the server' });
      await question.getByLabel('word').fill('yes');
      await question.getByRole('button', { name: 'Answer' }).click();
      await page.getByRole('region', { name: 'Part 1' }).getByText('yes').waitFor();
      await page.keyboard.press('Escape');
      await page.locator('dialog').waitFor({ state: 'detached' });
    }
    await show('approvals');
    for (let count = 0; count < 4; count += 1) {
      const calling = client.callTool({ name: 'a_count', arguments: {} });
      await page.getByRole('button', { name: 'Approve', exact: true }).click();
      expect(await calling).toMatchObject({ content: [{ type: 'text' }] });
      await page.getByText('No call waits for a person').waitFor();
    }
    expect(problems).toEqual([]);
    await page.context().close();
  }, 120_000);
});
