/**
 * Two gateways in one process that serve the same folder of tools: each falls back to its own last
 * good version.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { configFromValue, type Gateway, openGateway } from '../../src/index.ts';
import { atEnd } from '../support/cleanup.ts';
import { waitFor } from '../support/processes.ts';
import { useProcesses } from '../support/switch.ts';
import { tempFolder } from '../support/temp.ts';

useProcesses();

const tool = (name: string) => `export const ${name} = {
  description: 'Tool ${name}',
  inputSchema: { type: 'object' },
  execute: () => '${name}',
};
`;
const BROKEN = 'export const = 3;\n';

const names = (gateway: Gateway) => [...gateway.catalog.entries.tool.keys()];

async function open(cwd: string): Promise<{ gateway: Gateway; notes: string[] }> {
  const gateway = await openGateway(configFromValue({ controls: [] }, { cwd, env: {} }));
  atEnd(() => gateway.close());
  const notes: string[] = [];
  gateway.events.listen((name, event) => {
    if (name === 'note' || name === 'source') notes.push(JSON.stringify(event));
  });
  return { gateway, notes };
}

it('a second gateway serves the working tools of a folder even if the first has seen a better version', async () => {
  const cwd = tempFolder({ '.toolgate/tools/a/one.ts': tool('one'), '.toolgate/tools/a/two.ts': tool('two') });
  const first = await open(cwd);
  await waitFor(() => names(first.gateway).includes('a_two') || null);

  writeFileSync(join(cwd, '.toolgate/tools/a/two.ts'), BROKEN);
  await waitFor(() => first.notes.join().includes('Its last good version stays in use') || null);
  expect(names(first.gateway)).toEqual(['a_one', 'a_two']);

  const second = await open(cwd);
  await second.gateway.tried();
  await waitFor(() => names(second.gateway).includes('a_one') || null);
  expect(names(second.gateway)).toEqual(['a_one']);
  expect(second.notes.join()).toContain('two.ts');

  // The version that the second gateway accepted must not become the first gateway's last good version.
  writeFileSync(join(cwd, '.toolgate/tools/a/two.ts'), `${BROKEN}\n`);
  const before = first.notes.length;
  await waitFor(() => first.notes.slice(before).join().includes('Its last good version stays in use') || null);
  expect(names(first.gateway)).toEqual(['a_one', 'a_two']);

  // Closing the first gateway must not clear the second gateway's last good version.
  await first.gateway.close();
  writeFileSync(join(cwd, '.toolgate/tools/a/one.ts'), BROKEN);
  await waitFor(() => second.notes.join().includes('Its last good version stays in use') || null);
  expect(names(second.gateway)).toEqual(['a_one']);
});
