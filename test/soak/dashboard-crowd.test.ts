/** The dashboard of a large gateway: 10,000 tools, 1,000 sessions and 500 calls a second keep the page at 30 frames a second or more, and its first view comes within a second. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { beforeAll, describe, expect, it } from 'vitest';
import { type Any, enterDashboard, OPERATOR, openBrowser } from '../support/browser.ts';
import { atEnd } from '../support/cleanup.ts';
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
/** Milliseconds until the first view. */
const FIRST_VIEW = 1_000;

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

interface Load {
  readonly sent: number;
  readonly answered: number;
  readonly failed: number;
  /** The first failure. */
  readonly problem: string | null;
  readonly waiting: number;
  /** The most calls that waited for their answers at once. */
  readonly most: number;
  readonly seconds: number;
}

/** A process with all sessions open, which makes calls from `start` until `stop`. It ends with the test, also with one that fails. */
async function openCallers(): Promise<{ start(): void; stop(): Promise<Load> }> {
  const child: ChildProcess = fork(
    new URL('./steady-calls.mjs', import.meta.url),
    [gateway.origin, RATE, SESSIONS, SERVERS].map(String),
    { execArgv: [] },
  );
  atEnd(() => void child.kill('SIGKILL'));
  const ended = once(child, 'exit').then(() => ['ended']);
  const [first] = await Promise.race([once(child, 'message'), ended]);
  if (first !== 'ready') throw new Error('The callers could not open their sessions.');
  return {
    start: () => void child.send('start'),
    async stop() {
      const answer = once(child, 'message');
      child.send('stop');
      return (await answer)[0] as Load;
    },
  };
}

/** Frames a second and the longest time between two of them, while the table is scrolled by some rows in each if `scrolls`. */
function frames(page: Any, scrolls: boolean): Promise<{ count: number; longest: number }> {
  return page.evaluate(`new Promise((resolve) => {
    const box = document.querySelector('.rows');
    const begin = performance.now();
    let count = 0;
    let last = begin;
    let longest = 0;
    const frame = () => {
      const now = performance.now();
      count += 1;
      longest = Math.max(longest, now - last);
      last = now;
      if (${scrolls} && box) box.scrollTop += 100;
      if (now - begin < ${SECONDS * 1_000}) requestAnimationFrame(frame);
      else resolve({ count: Math.round((count / (now - begin)) * 1_000), longest: Math.round(longest) });
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
      startHttp({
        cwd,
        config: `controls = ["search"]\nactive_toolsets = ["*_echo"]\n${servers}`,
        env: { TOOLGATE_OPERATOR_KEY: OPERATOR },
      }),
    ]);
  }, 120_000);

  it('the first view within a second', async () => {
    const times: number[] = [];
    for (let round = 0; round < 5; round += 1) {
      const { page, firstRows } = await enterDashboard(browser, gateway);
      times.push(Math.round(await firstRows()));
      await page.context().close();
    }
    console.log(`first rows of the overview: ${times.join(', ')} ms`);
    for (const time of times) expect(time).toBeLessThan(FIRST_VIEW);
  }, 120_000);

  it('30 frames a second or more in every view that moves', async () => {
    const callers = await openCallers();
    const { page, problems, show } = await enterDashboard(browser, gateway);
    await page.getByText('1,000 sessions').first().waitFor();
    callers.start();
    const found: Record<string, { count: number; longest: number }> = {};
    for (const [view, title, scrolls] of [
      ['overview', 'Overview', false],
      ['calls', 'Live calls', false],
      ['calls', 'Live calls', true],
      ['catalog', 'Catalog', true],
      ['access', 'Access', true],
    ] as const) {
      await show(view);
      await page.locator('h1', { hasText: title }).waitFor();
      await waitFor(async () => (await page.locator('.rows [role=row]').count()) > 0, 30_000).catch(async (error) => {
        throw new Error(`${view}: ${error.message}\n${await page.locator('main').innerText()}\n${problems.join('\n')}`);
      });
      found[`${view}${scrolls ? ', scrolled' : ''}`] = await frames(page, scrolls);
    }
    const load = await callers.stop();
    console.log(
      Object.entries(found)
        .map(([view, { count, longest }]) => `${view}: ${count} frames a second, longest ${longest} ms`)
        .join('\n'),
      `\n${Math.round(load.answered / load.seconds)} calls a second answered, at most ${load.most} at once`,
    );
    expect(load).toMatchObject({ failed: 0, problem: null });
    expect(load.answered / load.seconds).toBeGreaterThan(RATE * 0.9);
    for (const [view, { count }] of Object.entries(found)) expect(count, view).toBeGreaterThanOrEqual(LEAST_FRAMES);
    expect(problems).toEqual([]);
  }, 300_000);
});
