/** Definitions in lists are the upstream's own bytes, with the namespace in front of what identifies them and nothing else changed. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { json, jsonObject, megabyte } from './json.ts';
import { openRoute, paths } from './paths.ts';

const PER_KIND = 200;

/** Definitions as text, each with its own identity, the identifying member in any place. */
function definitions(identity: string, prefix: string, count = PER_KIND): string[] {
  const parts = fc.tuple(jsonObject, json, json, fc.nat(3));
  return fc.sample(parts, count).map(([schema, description, unknown, place], i) => {
    const members = [
      `"description":${description}`,
      // Without these two, definitions of one kind or another are left out.
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

describe.each(paths)('from a client on %s to an upstream on %s', (client, upstream) => {
  it('lists every definition of every kind untouched', { timeout: 60_000 }, async () => {
    const made = kinds.map(([, , identity, prefix]) => definitions(identity, prefix));
    const big = fc.sample(megabyte, 1)[0]!;
    made[0]!.push(`{"name":"big","inputSchema":{"type":"object"},"outputSchema":${big}}`);
    const [tools, resources, templates, prompts] = made.map((list) => `[${list.join(',')}]`) as [
      string,
      string,
      string,
      string,
    ];
    const route = await openRoute(client, upstream, { offer: { tools, resources, templates, prompts } });
    for (const [i, [method, field, , prefix]] of kinds.entries()) {
      const listed = (await route.request(method, '{}')).toString();
      const expected = made[i]!.map((text) => text.replace(`"${prefix}`, `"up_${prefix}`).replace('"big"', '"up_big"'));
      const whole = `"result":{"${field}":[${expected.join(',')}]}`;
      if (listed.includes(whole)) continue;
      // The whole text is too long to be shown.
      const changed = expected.find((one) => !listed.includes(one));
      expect.fail(`${method} lacks ${changed?.slice(0, 2000)} in ${listed.slice(0, 2000)}`);
    }
  });
});
