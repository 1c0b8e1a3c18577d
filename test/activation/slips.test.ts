/** Likely slips in the arguments of Toolgate's own tools, and the hints that put them right. */
import { expect, it } from 'vitest';
import { startStdio } from '../support/gateway.ts';
import { server, serversToml } from '../support/server.ts';

const fs = server('basic', '--tools', 'read,write', '--resources', 'fs://one');

/** The message of an error of Toolgate's own. */
function messageIn(content: unknown): string {
  return (JSON.parse((content as { text: string }[])[0]!.text) as { message: string }).message;
}

async function activate(lists: Record<string, string[]>): Promise<string> {
  const { client } = await startStdio({ config: serversToml({ fs }) });
  const all = { tools_on: [], tools_off: [], resources_on: [], resources_off: [], ...lists };
  const { content } = await client.callTool({ name: 'toolman_activate', arguments: all });
  return (content as { text: string }[])[0]!.text;
}

it.each([
  [{ tools_on: ['fs_fs://one'] }, 'fs_fs://one in tools_on (it belongs in resources_on)'],
  [{ tools_off: ['fs_fs://*'] }, 'fs_fs://* in tools_off (it belongs in resources_off)'],
  [{ resources_on: ['fs_read'] }, 'fs_read in resources_on (it belongs in tools_on)'],
  [{ tools_on: ['fs'] }, 'fs in tools_on (did you mean fs_*?)'],
  [{ tools_on: ['FS.'] }, 'FS. in tools_on (did you mean fs_*?)'],
  [{ resources_on: ['fs'] }, 'fs in resources_on (did you mean fs_*?)'],
])('%j: %s', async (lists, hint) => {
  expect(await activate(lists)).toContain(`Nothing was changed. Unknown names: ${hint}.`);
});

it('the name of a server in place of a tool is explained', async () => {
  const { client } = await startStdio({ config: serversToml({ fs }) });
  const { content } = await client.callTool({ name: 'fs', arguments: {} });
  expect(messageIn(content)).toContain(
    'There is no tool "fs". It is the name of a server, whose items are called "fs_*".',
  );
});

it('a tool that is not equipped is answered with the toolsets that have it', async () => {
  const config = `controls = ["equip"]\n[toolsets.reading]\ntools = ["fs.read"]\n${serversToml({ fs })}`;
  const { client } = await startStdio({ config });
  const said = async (name: string) => messageIn((await client.callTool({ name, arguments: {} })).content);
  expect(await said('fs_read')).toContain('call equip-toolset with the name "reading" or "fs", or build-toolset.');
  expect(await said('fs_write')).toContain('call equip-toolset with the name "fs", or build-toolset.');
});
