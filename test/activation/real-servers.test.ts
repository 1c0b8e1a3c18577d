/** The reference servers behind the gateway: their answers arrive unchanged. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, it } from 'vitest';
import { findMember, readElements, readMembers } from '../../src/protocol/json.ts';
import { childEnv, startChild } from '../support/child.ts';
import { openPipe, type PipeConnection } from '../support/connection.ts';
import {
  activated,
  call,
  callText,
  catalogLines,
  type Door,
  doors,
  type Guest,
  ownError,
  promptNames,
  type RawAnswer,
  resourceUris,
  templateUris,
  toolNames,
  useGateway,
} from '../support/doors.ts';
import { serversToml } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';
import { asGiven, definitionAt, listFields } from './eras.ts';

const program = (name: string) =>
  fileURLToPath(new URL(`../../node_modules/@modelcontextprotocol/server-${name}/dist/index.js`, import.meta.url));
const words = { ev: [program('everything'), 'stdio'], fs: [program('filesystem'), 'files'], mem: [program('memory')] };
const namespaces = ['ev', 'fs', 'mem'] as const;

/** The field that identifies a definition, by list method. */
const lists = {
  'tools/list': ['tools', 'name'],
  'resources/list': ['resources', 'uri'],
  'resources/templates/list': ['resourceTemplates', 'uriTemplate'],
  'prompts/list': ['prompts', 'name'],
} as const;

/** The text of every definition in a list result, with a prefix added to the identifying field. */
function definitions(result: string, method: keyof typeof lists, prefix = ''): string[] {
  const bytes = Buffer.from(result);
  const [list, identity] = lists[method];
  const array = findMember(bytes, list)!;
  return readElements(bytes, array.start, array.end)!.map(({ start, end }) => {
    const at = readMembers(bytes, start, end)!.find(({ key }) => key === identity)!.start + 1;
    return bytes.toString('utf8', start, at) + prefix + bytes.toString('utf8', at, end);
  });
}

const servers = serversToml(
  Object.fromEntries(namespaces.map((name) => [name, [process.execPath, ...words[name]].join(' ')])),
);

/** The servers themselves, connected directly without a gateway. */
const direct = {} as Record<(typeof namespaces)[number], (method: string, params: string) => Promise<RawAnswer>>;

beforeAll(async () => {
  const cwd = tempFolder();
  mkdirSync(join(cwd, 'files'));
  for (const name of namespaces) {
    const child = startChild(process.execPath, words[name], { cwd, env: childEnv(), ending: 'stdin' });
    const connection: PipeConnection = openPipe(child, { elicitation: { form: {}, url: {} }, sampling: {} }, 'ignored');
    await connection.connect();
    direct[name] = async (method, params) => {
      const line = await connection.request(method, params);
      return Object.fromEntries(
        (readMembers(line) ?? [])
          .filter(({ key }) => key === 'result' || key === 'error')
          .map(({ key, start, end }) => [key, line.toString('utf8', start, end)]),
      );
    };
  }
});

/** Sends the request both ways and expects the same bytes. */
async function expectSame(
  door: Door,
  { raw }: Guest,
  method: string,
  key: 'name' | 'uri',
  exposed: string,
  args?: object,
) {
  const at = exposed.indexOf('_');
  const params = (name: string) => JSON.stringify({ [key]: name, ...(args && { arguments: args }) });
  const asked = await raw(method, params(exposed));
  const server = direct[exposed.slice(0, at) as keyof typeof direct];
  expect(asked).toEqual(asGiven(door, method, await server(method, params(exposed.slice(at + 1)))));
  return asked;
}

describe.each(doors)('everything, filesystem and memory over %s', (door) => {
  const arrive = useGateway(door, () => {
    const cwd = tempFolder();
    mkdirSync(join(cwd, 'files'));
    return {
      cwd,
      config: `active_toolsets = ["*"]\ncatalog = "full"\n${servers}`,
      env: { MEMORY_FILE_PATH: join(cwd, 'memory.jsonl') },
    };
  });

  it('have their definitions listed byte for byte, except for the prefix', async () => {
    const guest = await arrive();
    for (const method of Object.keys(lists) as (keyof typeof lists)[]) {
      const expected = [];
      for (const name of namespaces) {
        const { result } = await direct[name](method, '{}');
        if (result !== undefined)
          expected.push(...definitions(result, method, `${name}_`).map((text) => definitionAt(door, text)));
      }
      const { result = '' } = await guest.raw(method, '{}');
      const { [lists[method][0]]: _, ...fields } = JSON.parse(result) as Record<string, unknown>;
      expect(fields).toEqual(listFields(door));
      const listed = definitions(result, method);
      expect(method === 'tools/list' ? listed.slice(1) : listed).toEqual(expected);
      expect(expected.length).toBeGreaterThan(1);
    }
  });

  it('have their results returned byte for byte', async () => {
    const guest = await arrive();
    const tool = (name: string, args: object) => expectSame(door, guest, 'tools/call', 'name', name, args);
    await tool('ev_echo', { message: 'caf\u00e9 😀 "\\' });
    await tool('ev_get-sum', { a: 0.1, b: 0.2 });
    await tool('ev_get-tiny-image', {});
    await tool('ev_get-annotated-message', { messageType: 'error', includeImage: true });
    await tool('ev_get-structured-content', { location: 'Chicago' });
    await tool('ev_get-resource-links', { count: 3 });
    await expectSame(door, guest, 'resources/read', 'uri', 'ev_demo://resource/static/document/features.md');
    await expectSame(door, guest, 'prompts/get', 'name', 'ev_args-prompt', { city: 'Oslo', state: 'x' });
  });

  it('have their errors returned byte for byte', async () => {
    const guest = await arrive();
    const answers = [
      await expectSame(door, guest, 'tools/call', 'name', 'ev_get-sum', { a: 'x' }),
      await expectSame(door, guest, 'tools/call', 'name', 'fs_read_text_file', {}),
      await expectSame(door, guest, 'tools/call', 'name', 'mem_add_observations', {
        observations: [{ entityName: 'nobody', contents: ['x'] }],
      }),
      await expectSame(door, guest, 'prompts/get', 'name', 'ev_args-prompt', {}),
      await expectSame(door, guest, 'resources/read', 'uri', 'ev_demo://resource/dynamic/text/none'),
    ];
    for (const { result, error } of answers) expect(error ?? result).toMatch(/"isError":true|"code":-?\d/);
  });

  it('do what they are asked to do', async () => {
    const { client, cwd } = await arrive();
    const file = join(cwd, 'files', `${door} 😀.txt`);
    await callText(client, 'fs_write_file', { path: file, content: 'one\ntwo\n' });
    expect(await callText(client, 'fs_read_text_file', { path: file })).toBe('one\ntwo\n');
    const entity = { name: door, entityType: 'door', observations: ['is open'] };
    await callText(client, 'mem_create_entities', { entities: [entity] });
    expect(JSON.parse(await callText(client, 'mem_open_nodes', { names: [door] }))).toMatchObject({
      entities: [entity],
    });
    const { contents } = await client.readResource({ uri: 'mem_memory://knowledge-graph' });
    expect(JSON.stringify(contents)).toContain('is open');
  });

  it('have resources that can be read by expanded URIs and by the bare URIs that results mention', async () => {
    const { client } = await arrive();
    const { contents } = await client.readResource({ uri: 'ev_demo://resource/dynamic/text/7' });
    expect(contents).toMatchObject([{ uri: 'demo://resource/dynamic/text/7', mimeType: 'text/plain' }]);
    const { content } = await call(client, 'ev_get-resource-links', { count: 4 });
    const links = (content as unknown as { type: string; uri: string }[]).filter(
      ({ type }) => type === 'resource_link',
    );
    expect(links).toHaveLength(4);
    for (const { uri } of links) {
      const read = await client.readResource({ uri });
      expect(read.contents).toMatchObject([{ uri }]);
    }
  });

  it('can be activated and deactivated the way a model would do it', async () => {
    const { client } = await arrive();
    await activated(client, { tools_off: ['*'], resources_off: ['*'] });
    expect([await toolNames(client), await resourceUris(client), await templateUris(client)]).toEqual([[], [], []]);
    expect(await promptNames(client)).toHaveLength(4);
    expect(ownError(await call(client, 'fs_list_directory', { path: '.' })).message).toContain(
      '"fs_list_directory" in tools_on',
    );
    await activated(client, { tools_on: ['fs_list_*', 'ev_echo'], resources_on: ['ev_demo://*{resourceId}'] });
    expect(await toolNames(client)).toEqual([
      'ev_echo',
      'fs_list_directory',
      'fs_list_directory_with_sizes',
      'fs_list_allowed_directories',
    ]);
    expect(await templateUris(client)).toHaveLength(2);
    const { tools } = await catalogLines(client);
    expect(tools).toHaveLength(39);
    expect(tools).toContain('*ev_echo - Echoes back the input string');
    expect(Math.max(...tools.map((line) => [...line.replace(/^[^ ]* - /, '')].length))).toBe(132);
  });
});
