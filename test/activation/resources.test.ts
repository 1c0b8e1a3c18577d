/** Resources and templates: listed under prefixed URIs, read by their servers' own URIs. */
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  activated,
  doorsOf,
  enter,
  type Guest,
  isModern,
  received,
  refusal,
  resourceUris,
  templateUris,
  useGateway,
} from '../support/doors.ts';
import { waitFor } from '../support/processes.ts';
import { server, serversToml } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';
import { codeAt, headerMissing } from './eras.ts';

const doors = doorsOf('resources');

const a = ['--name', 'A', '--resources', 'n://1,n://2,shared://x', '--templates', 'n://{id},n://{id}/text'];
const b = ['--name', 'B', '--resources', 'm://1,shared://x', '--templates', 'm://{id}'];

async function readText({ client }: Guest, uri: string): Promise<string> {
  const { contents } = await client.readResource({ uri });
  return (contents[0] as { text: string }).text;
}

/** Toolgate's own error from a read, with its form checked. */
async function refused({ client }: Guest, uri: string) {
  const { code, message, data } = (await refusal(client.readResource({ uri }))) as unknown as {
    code: number;
    message: string;
    data: { code: string; message: string };
  };
  expect(data).toMatchObject({ success: false, result: null });
  expect(message).toContain(data.message);
  return { rpc: code, code: data.code, message: data.message };
}

describe.each(doors)('resources over %s', (door) => {
  const arrive = useGateway(door, () => ({
    config: `active_toolsets = ["*"]\n${serversToml({ a: server('basic', ...a), b: server('basic', ...b) })}`,
  }));

  it('are listed with a prefixed URI and otherwise unchanged', async () => {
    const { client } = await arrive();
    expect(await resourceUris(client)).toEqual(['a_n://1', 'a_n://2', 'a_shared://x', 'b_m://1', 'b_shared://x']);
    expect(await templateUris(client)).toEqual(['a_n://{id}', 'a_n://{id}/text', 'b_m://{id}']);
    const { resources } = await client.listResources();
    expect(resources[0]).toEqual({
      uri: 'a_n://1',
      name: 'n://1',
      description: 'Resource n://1',
      mimeType: 'text/plain',
    });
  });

  it('are read by their server’s own URI, and the result is unchanged', async () => {
    const guest = await arrive();
    const { contents } = await guest.client.readResource({ uri: 'a_n://1' });
    expect(contents).toEqual([{ uri: 'n://1', mimeType: 'text/plain', text: 'n://1 from A' }]);
    expect(await readText(guest, 'b_shared://x')).toBe('shared://x from B');
  });

  it('are read by URIs expanded from a template, which are passed on unchanged', async () => {
    const guest = await arrive();
    for (const id of ['7', 'a b', '%2F%20', 'x?y=z#w', '日本😀', '"\\']) {
      expect(await readText(guest, `a_n://${id}`)).toBe(`n://${id} from A`);
      expect(await readText(guest, `a_n://${id}/text`)).toBe(`n://${id}/text from A`);
      expect(await readText(guest, `b_m://${id}`)).toBe(`m://${id} from B`);
    }
    expect(await refused(guest, 'a_n://1/2/3')).toMatchObject({ code: 'resource_unknown', rpc: codeAt(door, -32002) });
  });

  it('are also read by the bare URI, as results mention it, if one server owns it', async () => {
    const guest = await arrive();
    expect(await readText(guest, 'n://1')).toBe('n://1 from A');
    expect(await readText(guest, 'm://1')).toBe('m://1 from B');
    expect(await readText(guest, 'm://expanded')).toBe('m://expanded from B');
  });

  it('with a bare URI that several servers own are refused with the list of exposed URIs', async () => {
    const guest = await arrive();
    const { code, message } = await refused(guest, 'shared://x');
    expect(code).toBe('params_invalid');
    expect(message).toBe(
      'Several servers have "shared://x". Read one of these instead: "a_shared://x", "b_shared://x".',
    );
    // Once only one of them is active, the URI is no longer ambiguous.
    await activated(guest.client, { resources_off: ['a_shared://x'] });
    expect(await readText(guest, 'shared://x')).toBe('shared://x from B');
  });

  it('that are inactive are refused with advice on how to activate them, under either URI', async () => {
    const guest = await arrive();
    await activated(guest.client, { resources_off: ['a_n://1', 'b_*'] });
    const advice = (uri: string, name: string) =>
      `The resource "${uri}" is not active. Activate it first: call toolman_activate with "${name}" in resources_on.`;
    for (const [uri, name] of [
      ['a_n://1', 'a_n://1'],
      ['n://1', 'a_n://1'],
      ['b_m://1', 'b_m://1'],
      ['b_m://7', 'b_m://{id}'],
      ['m://7', 'b_m://{id}'],
    ] as const) {
      expect(await refused(guest, uri)).toEqual({ rpc: -32602, code: 'item_inactive', message: advice(uri, name) });
    }
    // Other resources are not affected.
    expect(await readText(guest, 'a_n://2')).toBe('n://2 from A');
    expect(await readText(guest, 'a_n://7')).toBe('n://7 from A');
    await activated(guest.client, { resources_on: ['b_m://{id}'] });
    expect(await templateUris(guest.client)).toEqual(['a_n://{id}', 'a_n://{id}/text', 'b_m://{id}']);
    expect(await readText(guest, 'b_m://7')).toBe('m://7 from B');
    expect((await refused(guest, 'b_m://1')).code).toBe('item_inactive');
  });

  it('that are unknown are refused with suggestions', async () => {
    const guest = await arrive();
    expect(await refused(guest, 'a_shared://y')).toMatchObject({
      code: 'resource_unknown',
      rpc: codeAt(door, -32002),
      message: expect.stringContaining('Did you mean "a_shared://x"'),
    });
    expect((await refused(guest, 'http://elsewhere/')).message).toContain('List the resources');
  });

  it('cannot be read without a URI', async () => {
    const { raw } = await arrive();
    const { error = '' } = await raw('resources/read', '{"name":"a_n://1"}');
    // If a header must repeat the URI, the missing header is reported first.
    const expected =
      door === 'modern http'
        ? headerMissing
        : { code: -32602, data: { success: false, result: null, code: 'params_invalid' } };
    expect(JSON.parse(error)).toMatchObject(expected);
  });
});

describe.each(doors)('a resource read over %s', (door) => {
  it('arrives at exactly one server, without the prefix', async () => {
    const cwd = tempFolder();
    const logs = [join(cwd, 'a.log'), join(cwd, 'b.log')] as const;
    const config = `active_toolsets = ["*"]\n${serversToml({
      a: server('basic', ...a, '--log', logs[0]),
      '': server('basic', ...b, '--log', logs[1]),
    })}`;
    const guest = await enter(door, { cwd, config });
    await readText(guest, 'a_n://7/text');
    await readText(guest, 'm://1');
    // With an empty namespace the bare URI is also the exposed one.
    expect(await readText(guest, 'shared://x')).toBe('shared://x from B');
    // The envelope is not passed on; only an object without keys is left of it.
    const left = isModern(door) ? { _meta: {} } : {};
    expect(received(logs[0], 'resources/read').map(({ params }) => params)).toEqual([{ uri: 'n://7/text', ...left }]);
    expect(received(logs[1], 'resources/read').map(({ params }) => params?.uri)).toEqual(['m://1', 'shared://x']);
  });

  it('does not reach a resource that its server has removed', async () => {
    const guest = await enter(door, { config: `active_toolsets = ["*"]\n${serversToml({ c: server('changing') })}` });
    expect(await readText(guest, 'c_changing://first')).toBe('changing://first from changing');
    await guest.client.callTool({ name: 'c_remove_resource', arguments: { name: 'changing://first' } });
    await waitFor(() => guest.changes('resources') === 1);
    expect((await refused(guest, 'c_changing://first')).code).toBe('resource_unknown');
  });
});
