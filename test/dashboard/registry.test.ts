/** Servers of a registry in the page: searched, asked about, installed, and in use. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { serveRegistry } from '../../src/manager/installer/local-registry.ts';
import { enterDashboard, OPERATOR, openBrowser } from '../support/browser.ts';
import { atEnd } from '../support/cleanup.ts';
import { startHttp } from '../support/gateway.ts';
import { isMissing } from '../support/needs.ts';
import { server, serversToml } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';

describe.skipIf(isMissing('chromium'))('the registry in the dashboard', () => {
  it('finds a server, asks what it needs, and installs it', async () => {
    const remote = await startHttp({ config: `controls = []\n${serversToml({ far: server('basic') })}` });
    const entry = {
      name: 'com.example/parcels',
      description: 'Finds parcels on their way',
      version: '1.0.0',
      remotes: [
        {
          type: 'streamable-http',
          url: `${remote.origin}/{door}`,
          variables: { door: { isRequired: true, description: 'The door of your parcels' } },
        },
      ],
    };
    const registry = await serveRegistry(tempFolder({ 'parcels/server.json': JSON.stringify(entry) }), {
      host: '127.0.0.1',
      port: 0,
      problem: () => {},
    });
    atEnd(() => registry.close());
    const [browser, gateway] = await Promise.all([
      openBrowser(),
      startHttp({
        files: { 'tools.toml': 'controls = ["activate"]\n[registry]\nallow_private = true\n' },
        env: { TOOLGATE_OPERATOR_KEY: OPERATOR, MCP_REGISTRY_URL: registry.url },
      }),
    ]);
    const { page, problems, show } = await enterDashboard(browser, gateway);
    const dialog = page.getByRole('dialog');
    await show('servers/registry');
    await page.getByLabel('Search the registry').fill('parcels');
    await page.getByRole('row', { name: /com.example\/parcels/ }).click();
    await dialog.getByText('Finds parcels on their way').waitFor();
    await dialog.getByLabel('Names of its tools begin with').fill('post');
    await dialog.getByRole('button', { name: 'Install' }).click();
    // It is not installed before it has what it needs.
    await dialog.getByText('The door of your parcels').waitFor();
    const file = join(gateway.cwd, 'tools.toml');
    expect(readFileSync(file, 'utf8')).not.toContain('post');
    await dialog.getByLabel('door').fill('mcp');
    await dialog.getByRole('button', { name: 'Install' }).click();
    await dialog.getByText(/com.example\/parcels 1.0.0 is installed as/).waitFor();
    await dialog.getByRole('button', { name: 'Done' }).click();
    expect(readFileSync(file, 'utf8')).toContain(`${remote.origin}/mcp`);
    await show('servers');
    await page.getByRole('row', { name: /^up post/ }).waitFor();
    await show('catalog');
    await page
      .getByRole('row', { name: /^post_.*echo/ })
      .first()
      .waitFor();
    expect(problems).toEqual([]);
  }, 90_000);
});
