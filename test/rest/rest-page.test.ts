/** `/docs` in a real browser: it shows and calls tools, asks for a token if needed, and runs no code from descriptions of tools. */
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { programs } from '../../scripts/programs.mjs';
import { isMissing } from '../support/needs.ts';
import { tempFolder } from '../support/temp.ts';
import { tool } from '../support/tools.ts';
import { basic, type RestGateway, startRest, TYPESCRIPT } from './rest.ts';

const TOKEN = 'a-token-for-the-page';
const EVIL = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>';
const EVIL_TOOLS = JSON.stringify([
  {
    name: 'evil',
    title: EVIL,
    description: `${EVIL} </script><script>window.hacked=1</script>`,
    inputSchema: {
      type: 'object',
      properties: { [EVIL]: { type: 'string', description: EVIL, default: EVIL }, pick: { enum: [EVIL] } },
    },
  },
]);

// biome-ignore lint/suspicious/noExplicitAny: playwright is not a package of the project
type Any = any;
let browser: Any;
let gateway: RestGateway;

describe.skipIf(isMissing('chromium'))('the page in Chromium', () => {
  beforeAll(async () => {
    const folder = tempFolder({ 'tools.json': EVIL_TOOLS });
    gateway = await startRest(
      { names: 'join', servers: { up: basic(), evil: basic('--raw-tools', join(folder, 'tools.json')) } },
      { '.toolgate/tools/ts/tools.ts': TYPESCRIPT },
      { BEARER_TOKEN: TOKEN },
    );
    const playwright = await import(pathToFileURL(tool('playwright-core', 'index.mjs')).href);
    browser = await playwright.chromium.launch({
      executablePath: programs.chromium.find(),
      args: ['--no-sandbox', '--disable-gpu'],
    });
  }, 60_000);
  afterAll(() => browser?.close());

  async function open(path: string) {
    const page = await browser.newPage();
    const problems: string[] = [];
    const asked: string[] = [];
    page.on('pageerror', (error: Error) => problems.push(error.message));
    page.on('console', (message: Any) => {
      // The browser itself logs a refused request.
      if (message.type() === 'error' && !message.text().includes('status of 4')) problems.push(message.text());
    });
    page.on('request', (request: Any) => asked.push(request.url()));
    await page.goto(gateway.origin + path);
    return { page, problems, asked };
  }

  async function signIn(page: Any): Promise<void> {
    await page.fill('#token', TOKEN);
    await page.click('#sign button');
    await page.waitForSelector('#tools details');
  }

  it('asks for the token, shows the tools, and calls them', async () => {
    const { page, problems, asked } = await open('/ns/ts/docs');
    await page.waitForSelector('#sign:not([hidden])');
    expect(await page.textContent('#state')).toBe('A token is needed.');
    await page.fill('#token', 'wrong');
    await page.click('#sign button');
    await page.waitForFunction("document.getElementById('state').textContent === 'A token is needed.'");
    await signIn(page);
    expect(await page.title()).toBe('Toolgate: ts');
    expect(await page.textContent('#state')).toBe('5 tools');

    // Its title is made from its name. What it does says more.
    expect(await page.locator('#tools summary').first().textContent()).toBe('add Adds two numbers.');
    const add = page.locator('details', { has: page.locator('summary code', { hasText: /^add$/ }) }).first();
    await add.locator('summary').first().click();
    await add.locator('[name=a]').fill('40');
    await add.locator('[name=b]').fill('2');
    await add.locator('form button').click();
    await add.locator('p', { hasText: /^200 in \d+ ms$/ }).waitFor();
    expect(await add.locator('pre').first().textContent()).toBe('42');
    await add.locator('[name=a]').fill('x');
    await add.locator('form button').click();
    await add.locator('p.bad', { hasText: 'a: expected a number' }).waitFor();
    await add.locator('[name=a]').fill('');
    await add.locator('form button').click();
    await add.locator('p.bad', { hasText: /^422/ }).waitFor();

    const greet = page.locator('details', { hasText: 'A greeting' }).first();
    await greet.locator('summary').first().click();
    await greet.locator('[name=person]').fill('{"name": "Ada"}');
    await greet.locator('form button').click();
    await greet.locator('pre', { hasText: 'Hello Ada' }).waitFor();

    expect(problems).toEqual([]);
    for (const url of asked) expect(url.startsWith(`${gateway.origin}/ns/ts/`), url).toBe(true);
    await page.close();
  });

  it('finds tools by words', async () => {
    const { page } = await open('/docs');
    await signIn(page);
    await page.fill('#filter', 'adds numbers');
    expect(await page.locator('#tools > details:visible summary code').allTextContents()).toEqual(['ts_add']);
    await page.close();
  });

  it('shows what tools say as text', async () => {
    const { page, problems } = await open('/ns/evil/docs');
    await signIn(page);
    await page.locator('#tools summary').first().click();
    await page.locator('#tools form button').click();
    await page.locator('#tools p', { hasText: /^\d{3} in/ }).waitFor();
    expect(await page.evaluate('window.hacked')).toBeUndefined();
    expect(await page.locator('#tools img, #tools script').count()).toBe(0);
    expect(await page.textContent('#tools .about')).toContain(EVIL);
    expect(problems).toEqual([]);
    await page.close();
  });

  it('runs no script but its own, and sends nothing elsewhere', async () => {
    const { page } = await open('/docs');
    await page.evaluate(
      `(() => { const s = document.createElement('script'); s.textContent = 'window.hacked = 1'; document.body.append(s); })()`,
    );
    expect(await page.evaluate('window.hacked')).toBeUndefined();
    const sent = await page.evaluate("fetch('http://localhost:1/').then(() => 'sent', (error) => error.name)");
    expect(sent).toBe('TypeError');
    await page.close();
  });
});
