/** Names, descriptions, schemas and results that want to be more than text. None of them becomes markup or breaks the page. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { type Any, enterDashboard, OPERATOR, openBrowser, sideways } from '../support/browser.ts';
import { type HttpGateway, startHttp } from '../support/gateway.ts';
import { isMissing } from '../support/needs.ts';
import { server, serversToml } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';

const RUN = 'window.hacked=1';
const LONG = 'Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft';
const HOSTILE = [
  `<script>${RUN}</script>`,
  `</script><script>${RUN}</script>`,
  `<img src=x onerror="${RUN}">`,
  `<svg onload="${RUN}">`,
  `<svg><script>${RUN}</script></svg>`,
  `"><script>${RUN}</script>`,
  `'><img src=x onerror=${RUN}>`,
  `<iframe srcdoc="<script>parent.hacked=1</script>">`,
  `<iframe src="javascript:parent.hacked=1">`,
  `<a href="javascript:${RUN}">click</a>`,
  `javascript:${RUN}`,
  `JaVaScRiPt:${RUN}`,
  `java\nscript:${RUN}`,
  `data:text/html,<script>opener.hacked=1</script>`,
  `vbscript:msgbox(1)`,
  `<body onload=${RUN}>`,
  `<input autofocus onfocus=${RUN}>`,
  `<details open ontoggle=${RUN}>`,
  `<video><source onerror=${RUN}></video>`,
  `<math><mtext><img src=x onerror=${RUN}></mtext></math>`,
  `<style>*{display:none!important}</style>`,
  `<link rel=stylesheet href=//evil.example/x.css>`,
  `<meta http-equiv=refresh content="0;url=//evil.example">`,
  `<base href="//evil.example/">`,
  `<form action="//evil.example"><button>Log in</button></form>`,
  `<object data="javascript:${RUN}"></object>`,
  `<template><script>${RUN}</script></template>`,
  `<!--<img src=x onerror=${RUN}>-->`,
  `<![CDATA[<script>${RUN}</script>]]>`,
  `{{constructor.constructor('${RUN}')()}}`,
  `\${${RUN}}`,
  `<%= ${RUN} %>`,
  `#{${RUN}}`,
  `__proto__`,
  `constructor`,
  `toString`,
  `hasOwnProperty`,
  `dangerouslySetInnerHTML`,
  `&lt;script&gt;${RUN}&lt;/script&gt;`,
  `&#60;img src=x onerror=${RUN}&#62;`,
  `%3Cscript%3E${RUN}%3C/script%3E`,
  `\u202Eevitceffe\u202C`,
  `\u2066\u2067\u2068mixed\u2069`,
  `\u200B\u200C\u200D\uFEFFinvisible`,
  `\u0000\u0001\u0008\u001b[31mred\u001b[0m`,
  `\ud800 half a pair`,
  `Z̶̢̛͎̗̤a̷l̴g̸o̵${'\u0336\u0322\u031b'.repeat(60)}`,
  '👩‍👩‍👧‍👦'.repeat(40),
  'م'.repeat(300),
  '中'.repeat(300),
  LONG.repeat(8),
  'W'.repeat(2_000),
  'a b '.repeat(800),
  '\n'.repeat(300),
  '\t'.repeat(300),
  `${' '.repeat(500)}x`,
  '-'.repeat(500),
  `${'['.repeat(400)}`,
  `{"type":"text","text":"<b>bold</b>"}`,
  `](javascript:${RUN}) [x](data:text/html,x) ![i](//evil.example/i.png)`,
];

/** One tool for each, with the text wherever a definition has one. */
const tools = HOSTILE.map((text, index) => ({
  name: `tool_${index}`,
  title: text,
  description: text,
  inputSchema: {
    type: 'object',
    title: text,
    properties: {
      [text]: { type: 'string', title: text, description: text, default: text, pattern: text, format: text },
      pick: { enum: [text, 'b'], description: text },
      many: { type: 'array', items: { type: 'string', description: text } },
      deep: { type: 'object', properties: { [text]: { oneOf: [{ const: text, title: text }, { const: 2 }] } } },
      odd: { $ref: text },
    },
    required: [text],
  },
  outputSchema: { type: 'object', properties: { [text]: { type: 'string', description: text } } },
  annotations: { title: text, readOnlyHint: true },
}));

let browser: Any;
let gateway: HttpGateway;

describe.skipIf(isMissing('chromium'))('hostile texts', () => {
  beforeAll(async () => {
    const cwd = tempFolder();
    const offer = join(cwd, 'offer.json');
    const raw = { name: 'raw', description: 'x', inputSchema: { type: 'object' } };
    writeFileSync(offer, JSON.stringify([raw, ...tools]));
    const names = join(cwd, 'names.json');
    writeFileSync(names, JSON.stringify(HOSTILE.map((name) => ({ ...raw, name, description: name }))));
    [browser, gateway] = await Promise.all([
      openBrowser(),
      startHttp({
        cwd,
        config: `controls = []\n[audit]\nenabled = true\n${serversToml({
          x: server('basic', '--raw-tools', offer, '--instructions', HOSTILE[2]!),
          n: server('basic', '--raw-tools', names),
        })}`,
        env: { TOOLGATE_OPERATOR_KEY: OPERATOR },
      }),
    ]);
  }, 60_000);

  /** What a text must never become. */
  const foreign =
    'document.querySelectorAll(\'iframe, object, embed, img, video, base, template, main form[action], body style, body link, body script, a[href^="javascript" i], a[href^="data" i], [srcdoc]\').length';

  async function expectUnharmed(page: Any, what: string): Promise<void> {
    expect(await page.evaluate('window.hacked'), what).toBeUndefined();
    expect(await page.evaluate(foreign), what).toBe(0);
    expect(await sideways(page), what).toBe(0);
    expect(await page.locator('nav').first().isVisible(), what).toBe(true);
  }

  for (const [name, width] of [
    ['a desk', 1280],
    ['a phone', 375],
  ] as const)
    it(`in definitions stay text and keep the layout, on ${name}`, async () => {
      const { page, problems, show } = await enterDashboard(browser, gateway, { width });
      page.on('dialog', (box: Any) => problems.push(`a dialog: ${box.message()}`));
      await show('catalog');
      await page.getByRole('row', { name: /x_tool_0/ }).waitFor();
      const isDesk = width > 760;
      if (isDesk) await expectUnharmed(page, 'catalog');
      for (const [index, text] of HOSTILE.entries()) {
        // A phone takes a tenth: the texts are the same, and only the layout is another one.
        if (!isDesk && index % 10 !== 0) continue;
        await show(`catalog/tool/x_tool_${index}`);
        const sheet = page.getByRole('dialog', { name: `x_tool_${index}` });
        await sheet.getByRole('heading', { name: 'What it takes' }).waitFor();
        const shown: string = await sheet
          .locator('p.wrap')
          .first()
          .evaluate((one: Any) => one.textContent);
        // The browser itself replaces half a pair, and JSON cannot carry it.
        if (!/\ud800/.test(text)) expect(shown.trim()).toBe(text.trim());
        await sheet.getByRole('tab', { name: 'Try it' }).click();
        await sheet.getByRole('button', { name: 'Call it' }).waitFor();
        if (isDesk) await expectUnharmed(page, text);
        const inside: number = await sheet.evaluate((one: Any) => one.scrollWidth - one.clientWidth);
        expect(inside, text).toBeLessThanOrEqual(0);
        await show('catalog');
      }
      for (const view of ['overview', 'toolsets', 'access', 'servers', 'audit']) await show(view);
      expect(problems).toEqual([]);
      await page.context().close();
    }, 180_000);

  it('as names stay text: those that are served, and those that are named as problems', async () => {
    const { page, problems, show } = await enterDashboard(browser, gateway);
    page.on('dialog', (box: Any) => problems.push(`a dialog: ${box.message()}`));
    await page.getByRole('grid', { name: 'Servers' }).getByRole('row', { name: /up n / }).waitFor();
    await expectUnharmed(page, 'overview');
    await show('catalog?server=n');
    const rows = page.getByRole('grid', { name: 'Tools' }).locator('.rows [role=row]');
    await rows.first().waitFor();
    await expectUnharmed(page, 'catalog');
    for (let index = 0; index < 12; index += 1) {
      await rows.nth(index).click();
      await page.getByRole('dialog').getByRole('heading').first().waitFor();
      await page.getByRole('dialog').getByRole('tab', { name: 'About' }).waitFor();
      await expectUnharmed(page, `the tool in row ${index}`);
      await page.keyboard.press('Escape');
      await page.locator('dialog').waitFor({ state: 'detached' });
    }
    await show('access?q=n_');
    await page.getByRole('grid', { name: 'Agents and tools' }).locator('.rows [role=row]').first().waitFor();
    await expectUnharmed(page, 'access');
    expect(problems).toEqual([]);
    await page.context().close();
  }, 120_000);

  it('in results and arguments stay text, where they are tried and where they are recorded', async () => {
    const { page, problems, show } = await enterDashboard(browser, gateway);
    await show('calls');
    await page.getByRole('button', { name: 'Record' }).click();
    await page.getByRole('button', { name: /^Recording/ }).waitFor();
    const { client } = await gateway.connect({ name: HOSTILE[2]! });
    for (const [index, text] of HOSTILE.entries()) {
      const result = {
        content: [
          { type: 'text', text },
          { type: 'resource_link', uri: `javascript:${RUN}`, name: text },
          { type: 'image', mimeType: 'image/svg+xml', data: Buffer.from(HOSTILE[3]!).toString('base64') },
        ],
        structuredContent: { text },
        isError: index % 2 === 1,
      };
      await client.callTool({ name: 'x_raw', arguments: { json: JSON.stringify(result) } });
    }
    await page.getByText('60 calls', { exact: true }).waitFor();
    await page.getByRole('row', { name: /x_raw/ }).first().click();
    await page.getByRole('dialog').waitFor();
    const last = Number((await page.evaluate('location.hash')).split('/').at(-1));
    for (let count = 0; count < 60; count += 9) {
      await show(`calls/${last - count}`);
      await page.getByRole('dialog').getByRole('region', { name: 'Result' }).waitFor();
      await expectUnharmed(page, `call ${count}`);
    }
    await show('catalog/tool/x_raw?tab=try');
    await page.getByLabel('as JSON').check();
    for (const text of HOSTILE.filter((_, index) => index % 6 === 0)) {
      const json = JSON.stringify({
        content: [
          { type: 'text', text },
          { type: 'resource_link', uri: `javascript:${RUN}`, name: text },
        ],
      });
      await page.getByLabel(/Arguments/).fill(JSON.stringify({ json }));
      await page.getByRole('button', { name: 'Call it' }).click();
      await page.getByRole('dialog').locator('.chip.good').waitFor();
      await expectUnharmed(page, text);
    }
    await show('audit');
    await page.getByRole('grid', { name: 'Records' }).getByRole('row', { name: /x_raw/ }).first().waitFor();
    await show('overview');
    await page.getByRole('grid', { name: 'Sessions' }).getByRole('row').nth(1).waitFor();
    await expectUnharmed(page, 'overview');
    expect(problems).toEqual([]);
    await page.context().close();
  }, 180_000);
});
