/** Chromium with the dashboard of a gateway in it. */
import { readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { programs } from '../../scripts/programs.mjs';
import { atEnd } from './cleanup.ts';
import type { HttpGateway } from './gateway.ts';
import { waitFor } from './processes.ts';
import { tool } from './tools.ts';

// biome-ignore lint/suspicious/noExplicitAny: playwright is not a package of the project
export type Any = any;

export const OPERATOR = 'the-key-of-the-operator';

export interface Looks {
  readonly colours?: 'light' | 'dark';
  readonly width?: number;
  readonly height?: number;
  /** Whether scripts of the test may get past the policy of the page, as axe needs. */
  readonly pastPolicy?: boolean;
  readonly permissions?: readonly string[];
}

export interface Dashboard {
  readonly page: Any;
  /** Errors of the page, and what its policy stopped. */
  readonly problems: string[];
  /** Every address that it asked for. */
  readonly asked: string[];
  /** Milliseconds from the start of the navigation, by the link, until the first rows were drawn. */
  firstRows(): Promise<number>;
  /** Opens a view and waits for its title. */
  show(view: string): Promise<void>;
}

export async function openBrowser(): Promise<Any> {
  const playwright = await import(pathToFileURL(tool('playwright-core', 'index.mjs')).href);
  const browser = await playwright.chromium.launch({
    executablePath: programs.chromium.find(),
    args: ['--no-sandbox', '--disable-gpu'],
  });
  atEnd(() => browser.close());
  return browser;
}

/** Notes when the first rows of a table are on the screen: in the second frame after they were made. */
const NOTE_FIRST_ROWS = `{
  const look = new MutationObserver(() => {
    if (!document.querySelector('.rows [role=row]')) return;
    look.disconnect();
    requestAnimationFrame(() => requestAnimationFrame(() => { globalThis.firstRows = performance.now(); }));
  });
  look.observe(document, { childList: true, subtree: true });
}`;

/** A link that lets one browser in. */
export async function linkTo(gateway: HttpGateway): Promise<string> {
  const response = await fetch(`${gateway.origin}/admin/links`, {
    method: 'POST',
    headers: { authorization: `Bearer ${OPERATOR}`, 'content-type': 'application/json' },
    body: '{}',
  });
  const { url } = (await response.json()) as { url?: string };
  if (url === undefined) throw new Error(`There is no link: status ${response.status}`);
  return url;
}

export async function enterDashboard(browser: Any, gateway: HttpGateway, looks: Looks = {}): Promise<Dashboard> {
  const { colours = 'light', width = 1280, height = 800, pastPolicy = false, permissions } = looks;
  const context = await browser.newContext({
    viewport: { width, height },
    colorScheme: colours,
    // axe would judge colours in the middle of fading in.
    reducedMotion: 'reduce',
    bypassCSP: pastPolicy,
    timezoneId: 'UTC',
    locale: 'en-GB',
    // An empty list would refuse everything that a browser asks its user for.
    ...(permissions !== undefined && { permissions: [...permissions] }),
  });
  const page = await context.newPage();
  page.setDefaultTimeout(30_000);
  const problems: string[] = [];
  const asked: string[] = [];
  page.on('pageerror', (error: Error) => problems.push(error.message));
  page.on('console', (message: Any) => {
    // The browser itself logs a refused request.
    if (message.type() === 'error' && !/status of (4|503)/.test(message.text())) problems.push(message.text());
  });
  page.on('request', (request: Any) => asked.push(request.url()));
  await page.addInitScript(NOTE_FIRST_ROWS);
  await page.goto(await linkTo(gateway));
  await page.locator('h1').waitFor();
  const firstRows = async () => {
    // Not `waitForFunction`: it makes code from text in the page, which the policy of the page forbids.
    const found = (): Promise<number | undefined> => page.evaluate('globalThis.firstRows');
    await waitFor(async () => (await found()) !== undefined, 30_000);
    return (await found())!;
  };
  const show = async (view: string) => {
    await page.evaluate((hash: string) => {
      (globalThis as Any).location.hash = hash;
    }, `#/${view}`);
    await page.locator('h1').first().waitFor();
  };
  return { page, problems, asked, firstRows, show };
}

let axe: string | undefined;

/** What axe finds wrong, as one line each. The dashboard has to be opened with `pastPolicy`. */
export async function violations(page: Any): Promise<string[]> {
  axe ??= readFileSync(new URL('../../node_modules/axe-core/axe.min.js', import.meta.url), 'utf8');
  await page.evaluate(axe);
  const found: { id: string; nodes: { html: string; failureSummary: string }[] }[] = await page.evaluate(
    "axe.run({ resultTypes: ['violations'] }).then(({ violations }) => violations)",
  );
  return found.map(({ id, nodes }) => `${id}: ${nodes[0]?.html.slice(0, 200)} ${nodes[0]?.failureSummary}`);
}

/** By how many pixels the page is wider than the window. */
export function sideways(page: Any): Promise<number> {
  return page.evaluate(`(() => {
    const main = document.querySelector('main');
    const cut = [...document.querySelectorAll('.table .th')].filter((one) => one.scrollWidth > one.clientWidth);
    return cut.length + Math.max(0, document.documentElement.scrollWidth - innerWidth) + Math.max(0, main.scrollWidth - main.clientWidth);
  })()`);
}
