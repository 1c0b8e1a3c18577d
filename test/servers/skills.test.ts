/** Skills of servers: what a caller sees of them follows its view, as with other items. */
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { SkillsClient } from '@modelcontextprotocol/client/ext/skills';
import { describe, expect, it } from 'vitest';
import { atEnd } from '../support/cleanup.ts';
import { type HttpGateway, startHttp } from '../support/gateway.ts';
import { waitFor } from '../support/processes.ts';
import { server, serversToml } from '../support/server.ts';

const PDF = 'skill://pdf-forms/SKILL.md';
const NOTES = 'skill://release-notes/SKILL.md';

async function connect({ url }: HttpGateway, mode: 'auto' | 'legacy' = 'auto') {
  const client = new Client({ name: 'test', version: '1.0.0' }, { versionNegotiation: { mode } });
  atEnd(() => client.close());
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  return { client, skills: new SkillsClient(client) };
}

const one = (config = '') =>
  startHttp({ config: `controls = []\n${config}\n${serversToml({ docs: server('conformance') })}` });

describe('skills', () => {
  it.each(['auto', 'legacy'] as const)('are listed, got and read under the URIs of their server (%s)', async (mode) => {
    const { client, skills } = await connect(await one(), mode);
    const listed = (await skills.list()).skills;
    expect(listed.map(({ uri }) => uri)).toEqual([PDF, NOTES]);
    expect((await skills.get(PDF)).skill).toEqual(listed[0]);
    for (const skill of listed)
      for (const { uri } of skill.resources as { uri: string }[])
        expect(await skills.read(skill, uri)).toMatchObject({ verified: true });
    const names = async (uri: string) => (await skills.readDirectory(uri)).resources.map((child) => child.uri);
    expect(await names('skill://pdf-forms')).toEqual([PDF, 'skill://pdf-forms/references']);
    expect(await names('skill://pdf-forms/references')).toEqual([
      'skill://pdf-forms/references/FIELDS.md',
      'skill://pdf-forms/references/more',
    ]);
    // For clients without the extension.
    const { resourceTemplates } = await client.listResourceTemplates();
    expect(resourceTemplates).toContainEqual(
      expect.objectContaining({
        uriTemplate: 'docs_skill://pdf-forms/{+file}',
        name: 'pdf-forms',
        description: 'Fill and check PDF forms',
      }),
    );
  });

  it('that are unknown are refused as parameters, and so is what is no directory', async () => {
    const { skills } = await connect(await one());
    const code = -32602;
    await expect(skills.get('skill://other/SKILL.md')).rejects.toMatchObject({ code });
    for (const uri of ['skill://other', 'test://static-text', PDF, ''])
      await expect(skills.readDirectory(uri), uri).rejects.toMatchObject({ code });
    await expect(skills.list({ cursor: 'x' })).rejects.toMatchObject({ code });
  });

  it('that a policy denies are not listed, and not read either', async () => {
    const gateway = await one('denied_resources = { docs = ["skill://pdf-forms/*"] }');
    const { client, skills } = await connect(gateway);
    const listed = (await skills.list()).skills;
    expect(listed.map(({ uri }) => uri)).toEqual([NOTES]);
    await expect(skills.get(PDF)).rejects.toMatchObject({ code: -32602 });
    await expect(client.readResource({ uri: PDF })).rejects.toThrow();
    await expect(client.readResource({ uri: 'skill://pdf-forms/references/FIELDS.md' })).rejects.toThrow();
    await expect(skills.readDirectory('skill://pdf-forms')).rejects.toThrow();
    expect(await skills.read(listed[0]!)).toMatchObject({ verified: true });
  });

  it('that several servers have are listed under the namespace of each, and none of them takes the others over', async () => {
    const servers = { a: server('conformance'), b: server('conformance', '--era', 'legacy') };
    const gateway = await startHttp({ config: `controls = []\n${serversToml(servers)}` });
    const { client, skills } = await connect(gateway);
    const uris = [PDF, NOTES];
    const expected = ['a', 'b'].flatMap((name) => uris.map((uri) => `${name}+${uri}`));
    const listed = (await skills.list()).skills;
    expect(listed.map(({ uri }) => uri)).toEqual(expected);
    await expect(client.readResource({ uri: PDF })).rejects.toThrow('Several servers have');
    for (const { uri } of listed) {
      expect((await client.readResource({ uri })).contents).toHaveLength(1);
      expect((await skills.get(uri)).skill.uri).toBe(uri);
      expect((await skills.readDirectory(uri.replace('/SKILL.md', ''))).resources).toHaveLength(2);
    }
  });

  it('are switched on and off like other items', async () => {
    const gateway = await startHttp({
      config: `active_toolsets = []\n${serversToml({ docs: server('conformance') })}`,
    });
    const { client, skills } = await connect(gateway);
    expect((await skills.list()).skills).toEqual([]);
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toContain('toolman_activate');
    const lists = { tools_on: [], tools_off: [], resources_on: ['docs_skill://pdf-forms/*'], resources_off: [] };
    await client.callTool({ name: 'toolman_activate', arguments: lists });
    await waitFor(async () => (await skills.list()).skills.length === 1);
  });
});
