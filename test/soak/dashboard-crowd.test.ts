/** The dashboard of a large gateway: 10,000 tools, 1,000 sessions and 500 calls a second keep the page at 30 frames a second or more. */
import { beforeAll, describe, expect, it } from 'vitest';
import { type Any, enterDashboard, OPERATOR, openBrowser } from '../support/browser.ts';
import { type HttpGateway, startHttp } from '../support/gateway.ts';
import { isMissing } from '../support/needs.ts';
import { waitFor } from '../support/processes.ts';
import { server, serversToml } from '../support/server.ts';
import { useProcesses } from '../support/switch.ts';
import { tempFolder } from '../support/temp.ts';

// The gateway must not share its thread with the clients of this test.
useProcesses();

const SERVERS = 10;
const TOOLS = 1_000;
const SESSIONS = 1_000;
const RATE = 500;
const SECONDS = 5;
const LEAST_FRAMES = 30;

let browser: Any;
let gateway: HttpGateway;

const offer = (index: number) =>
  JSON.stringify(
    Array.from({ length: TOOLS }, (_, at) => ({
      name: at === 0 ? 'echo' : `tool_${index}_${at}`,
      description: `Does the thing number ${at} of server ${index}, and says how it went.`,
      inputSchema: { type: 'object', properties: { word: { type: 'string', description: 'A word' } } },
    })),
  );

const post = (body: object, headers: Record<string, string> = {}) => gateway.post(JSON.stringify(body), headers);

/** So many calls a second, without waiting for one before the next. */
function keepCalling(sessions: readonly string[]): { stop(): Promise<number> } {
  const open = new Set<Promise<unknown>>();
  let count = 0;
  const started = Date.now();
  const timer = setInterval(() => {
    const due = ((Date.now() - started) / 1_000) * RATE;
    for (; count < due; count += 1) {
      const call = post(
        {
          jsonrpc: '2.0',
          id: count,
          method: 'tools/call',
          params: { name: `s${count % SERVERS}_echo`, arguments: { word: 'tea' } },
        },
        { 'mcp-session-id': sessions[count % sessions.length]! },
      )
        .then((response) => response.text())
        .finally(() => open.delete(call));
      open.add(call);
    }
  }, 10);
  return {
    async stop() {
      clearInterval(timer);
      const rate = count / ((Date.now() - started) / 1_000);
      await Promise.allSettled(open);
      return rate;
    },
  };
}

/** Frames a second, while the table is scrolled by some rows in each if `scrolls`. */
function frames(page: Any, scrolls: boolean): Promise<number> {
  return page.evaluate(`new Promise((resolve) => {
    const box = document.querySelector('.rows');
    const begin = performance.now();
    let count = 0;
    const frame = () => {
      count += 1;
      if (${scrolls} && box) box.scrollTop += 100;
      const passed = performance.now() - begin;
      if (passed < ${SECONDS * 1_000}) requestAnimationFrame(frame);
      else resolve((count / passed) * 1_000);
    };
    requestAnimationFrame(frame);
  })`);
}

describe.skipIf(isMissing('chromium'))('a crowd in the dashboard', () => {
  beforeAll(async () => {
    const files = Object.fromEntries(
      Array.from({ length: SERVERS }, (_, index) => [`offer-${index}.json`, offer(index)]),
    );
    const cwd = tempFolder(files);
    const servers = serversToml(
      Object.fromEntries(
        Array.from({ length: SERVERS }, (_, index) => [
          `s${index}`,
          server('basic', '--raw-tools', `${cwd}/offer-${index}.json`),
        ]),
      ),
    );
    [browser, gateway] = await Promise.all([
      openBrowser(),
      startHttp({ cwd, config: `controls = ["search"]\n${servers}`, env: { TOOLGATE_OPERATOR_KEY: OPERATOR } }),
    ]);
  }, 120_000);

  it('30 frames a second or more in every view that moves', async () => {
    const sessions: string[] = [];
    for (let count = 0; count < SESSIONS; count += 1) {
      const response = await post({
        jsonrpc: '2.0',
        id: 1,
        method: 'initialize',
        params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'crowd', version: '1' } },
      });
      await response.text();
      sessions.push(response.headers.get('mcp-session-id')!);
    }
    const { page, problems, show } = await enterDashboard(browser, gateway);
    await page.getByText('1,000 sessions').first().waitFor();
    const calling = keepCalling(sessions);
    const found: Record<string, number> = {};
    for (const [view, scrolls] of [
      ['overview', false],
      ['calls', false],
      ['calls', true],
      ['catalog', true],
      ['access', true],
    ] as const) {
      await show(view);
      await waitFor(async () => (await page.locator('.rows [role=row]').count()) > 0, 30_000);
      found[`${view}${scrolls ? ', scrolled' : ''}`] = Math.round(await frames(page, scrolls));
    }
    const rate = await calling.stop();
    console.log(`frames a second: ${JSON.stringify(found)}, at ${Math.round(rate)} calls a second`);
    expect(rate).toBeGreaterThan(RATE * 0.9);
    for (const [view, count] of Object.entries(found)) expect(count, view).toBeGreaterThanOrEqual(LEAST_FRAMES);
    expect(problems).toEqual([]);
  }, 300_000);
});
