/**
 * The pages that a newcomer follows, each in an empty home folder: install the command, then every block from top to
 * bottom. README.md has its own file.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { startChild } from '../support/child.ts';
import { entryOf, toolsOf } from '../support/client-entries.ts';
import { openPipe } from '../support/connection.ts';
import { root, runPage, type Sandbox } from '../support/docs-page.ts';
import { waitFor } from '../support/processes.ts';
import { tempFolder } from '../support/temp.ts';
import { isNewcomerPage } from './pages.ts';

/** Calls the tool on stdio with the arguments of the page, as a model would. */
async function activate(text: string, { env, home }: Sandbox): Promise<void> {
  const args = ['--config', join(home, 'toolgate', 'tools.toml')];
  const pipe = openPipe(startChild('toolgate', args, { cwd: tempFolder(), env, ending: 'stdin' }));
  await pipe.connect();
  const before = (await pipe.client.listTools()).tools.map((tool) => tool.name);
  expect(before).toContain('toolman_activate');
  await pipe.client.callTool({ name: 'toolman_activate', arguments: JSON.parse(text) });
  await waitFor(() => pipe.changes('tools') === 1);
  const after = (await pipe.client.listTools()).tools.map((tool) => tool.name);
  expect(after.filter((name) => !before.includes(name))).toHaveLength(9);
}

/** Connects with the entry of the page and the token that its agent was given. */
async function review(text: string, { env, home }: Sandbox): Promise<void> {
  const token = readFileSync(join(home, 'gateway', 'reviewer.token'), 'utf8').trim();
  const entry = entryOf(JSON.parse(text.replace('${REVIEWER_TOKEN}', token)));
  const names = await toolsOf(entry!, env, token);
  expect(names).toContain('files_read_text_file');
  expect(names).not.toContain('files_write_file');
}

describe('in an empty home folder, every block works as described', () => {
  const pages = readdirSync(join(root, 'docs')).filter(isNewcomerPage);

  const checks = { toolman_activate: activate, 'reviewer.mcp.json': review };

  it.each(pages)('docs/%s', (page) => runPage(`docs/${page}`, checks, { isNewcomer: true }), 120_000);
});
