/** What a folder says about itself in tooldock.yaml reaches clients. */
import { expect, it } from 'vitest';
import { openHttpDoor } from '../../src/index.ts';
import { atEnd } from '../support/cleanup.ts';
import { tsTool } from '../support/dock.ts';
import { openDock } from '../support/open-dock.ts';
import { useProcesses } from '../support/switch.ts';

useProcesses();

it('description, version and author are in /namespaces and in the OpenAPI document', { timeout: 60_000 }, async () => {
  const dock = await openDock({
    'a/x.ts': tsTool('x', 'return "x";'),
    'a/tooldock.yaml': 'description: Says x.\nversion: 1.2.3\nauthor: Ann\n',
    'b/y.ts': tsTool('y', 'return "y";'),
  });
  await dock.lists('a_x', 'b_y');
  const http = await openHttpDoor(dock.gateway, { host: '127.0.0.1', port: 0, token: null });
  atEnd(() => http.close());
  const ask = async (path: string) => (await fetch(new URL(path, http.url))).json();
  expect(await ask('/namespaces')).toEqual([
    { name: 'a', description: 'Says x.', version: '1.2.3', author: 'Ann', tool_count: 1, state: 'up' },
    { name: 'b', tool_count: 1, state: 'up' },
  ]);
  const { info } = (await ask('/ns/a/openapi.json')) as { info: Record<string, unknown> };
  expect(info).toMatchObject({ title: 'Toolgate: a', version: '1.2.3', contact: { name: 'Ann' } });
  expect(info.description).toContain('Says x.');
});
