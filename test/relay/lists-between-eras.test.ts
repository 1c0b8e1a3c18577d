/** A list is the same for both eras, byte for byte, except for members that the eras prescribe. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ERA_FIELDS, splitOutcome } from './eras.ts';
import { json, jsonObject } from './json.ts';
import { type Member, membersOf } from './members.ts';
import { doors, type Era, outcomeOf, upstreams, useRoutes } from './paths.ts';

const definitions = (identity: string, prefix: string) =>
  `[${fc
    .sample(fc.tuple(jsonObject, json), 50)
    .map(
      ([object, unknown], i) =>
        `{ "${identity}":"${prefix}${i}", "inputSchema":${object},"n\\u0061me2":${unknown} ,"name":"x${i}"}`,
    )
    .join(',')}]`;

const tools = fc.sample(fc.tuple(jsonObject, json), 50).map(([object, unknown], i) => {
  const schema = `{"type":"object","x":${object}}`;
  return `{"x":${unknown}, "name":"t${i}" ,"inputSchema":${schema},"outputSchema":${schema},"ttlMs":1}`;
});
const routes = useRoutes(upstreams, {
  tools: `[${tools.join(',')}]`,
  resources: definitions('uri', 'test://r/'),
  templates: definitions('uriTemplate', 'test://{x}/'),
  prompts: `[${tools.join(',')}]`,
});

describe.each(doors)('lists on %s', (door) => {
  async function list(client: Era, method: string): Promise<Member[]> {
    const route = routes.all.find((one) => one.door === door && one.client === client)!;
    const [key, object] = splitOutcome(outcomeOf(await route.request(method, `{${route.meta()}}`)));
    expect(key).toBe('"result":');
    return membersOf(object);
  }

  it.each([
    ['tools/list', 'tools'],
    ['resources/list', 'resources'],
    ['resources/templates/list', 'resourceTemplates'],
    ['prompts/list', 'prompts'],
  ])('%s is the same for clients of both eras', async (method, field) => {
    const [legacy, modern] = [await list('legacy', method), await list('modern', method)];
    expect(legacy.map(({ key }) => key)).toEqual([field]);
    expect(modern.map(({ key }) => key)).toEqual([...ERA_FIELDS, '_meta', field]);
    const value = (wanted: string) => modern.find(({ key }) => key === wanted)!.value;
    expect(value(field) === legacy[0]!.value).toBe(true);
    expect((JSON.parse(value(field)) as unknown[]).length).toBe(50 * upstreams.length);
    expect([value('resultType'), value('ttlMs'), value('cacheScope')]).toEqual(['"complete"', '0', '"private"']);
    expect(JSON.parse(value('_meta'))).toMatchObject({
      'io.modelcontextprotocol/serverInfo': { name: 'toolgate' },
    });
  });
});
