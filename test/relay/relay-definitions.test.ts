/** Definitions in lists are the upstream's own bytes. Only the namespace is added to the name or URI. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { runs } from '../support/wide.ts';
import { json, jsonObject, megabyte } from './json.ts';
import { doors, eras, type RawOffer, upstreams, useRoutes } from './paths.ts';

const PER_KIND = runs(200);

/** Definitions as text, each with its own name or URI, in any position. */
function definitions(identity: string, prefix: string): string[] {
  const parts = fc.tuple(jsonObject, json, json, fc.nat(3));
  return fc.sample(parts, PER_KIND).map(([schema, description, unknown, place], i) => {
    const members = [
      `"description":${description}`,
      // Without these two members, some kinds of definitions are left out.
      `"inputSchema":${schema}${identity === 'name' ? '' : ' ,"name":"\\u006e"'}`,
      `"_meta": {"io.example/x":${unknown}} ,"icons":[{"src":"data:","sizes":${unknown}}]`,
    ];
    return `{${members.toSpliced(place, 0, `"${identity}" : "${prefix}${i}"`).join(', ')}}`;
  });
}

const kinds = [
  ['tools/list', 'tools', 'name', 'tool-'],
  ['resources/list', 'resources', 'uri', 'test://resource/'],
  ['resources/templates/list', 'resourceTemplates', 'uriTemplate', 'test://{id}/'],
  ['prompts/list', 'prompts', 'name', 'prompt-'],
] as const;

const made = kinds.map(([, , identity, prefix]) => definitions(identity, prefix));
made[0]!.push(`{"name":"big","inputSchema":{"type":"object","x":${fc.sample(megabyte, 1)[0]!}}}`);
const [tools, resources, templates, prompts] = made.map((list) => `[${list.join(',')}]`);
const routes = useRoutes(upstreams, { tools, resources, templates, prompts } as RawOffer);

describe.each(doors.flatMap((door) => eras.map((client) => ({ door, client }))))(
  'a $client client on $door',
  ({ door, client }) => {
    it.each(kinds)('gets every definition of every upstream unchanged from %s', async (method, field, _, prefix) => {
      const route = routes.all.find((one) => one.door === door && one.client === client)!;
      const listed = (await route.request(method, `{${route.meta()}}`)).toString();
      const kind = kinds.findIndex(([name]) => name === method);
      const expected = upstreams.flatMap(({ namespace }) =>
        made[kind]!.map((text) =>
          text.replace(`"${prefix}`, `"${namespace}_${prefix}`).replace('"big"', `"${namespace}_big"`),
        ),
      );
      if (listed.includes(`"${field}":[${expected.join(',')}]}`)) return;
      // The whole text is too long to print.
      const changed = expected.find((one) => !listed.includes(one));
      expect.fail(`${method} lacks ${changed?.slice(0, 2000)} in ${listed.slice(0, 2000)}`);
    });
  },
);
