import { describe, expect, it } from 'vitest';
import { offerOf } from '../../test/support/catalog.ts';
import { KINDS, type Kind, kindWords, readItems, reuseItems } from './item.ts';

const read = (kind: Kind, text: string) => readItems(kind, Buffer.from(text));
const tools = (...definitions: string[]) => read('tool', `{"tools":[${definitions.join(',')}]}`);
const schema = '"inputSchema":{"type":"object"}';

describe('readItems', () => {
  it('keeps each definition byte for byte as the server sent it, including spaces, numbers and escapes', () => {
    const definition = `{ "x" : [1.0,1e400,9007199254740993],"name":"caf\\u00e9" ,${schema},"é":"\\/"}`;
    const { items, problems } = tools(definition);
    expect(items[0]!.bytes.toString()).toBe(definition);
    expect(items[0]!.name).toBe('café');
    const { start, end } = items[0]!.nameSpan;
    expect(items[0]!.bytes.toString('utf8', start, end)).toBe('"caf\\u00e9"');
    expect(problems).toEqual([]);
  });

  it('does not keep the whole page in memory for one item', () => {
    const [item] = tools(`{"name":"a",${schema}}`, `{"name":"b","filler":"${'x'.repeat(100_000)}",${schema}}`).items;
    expect(item!.bytes.buffer.byteLength).toBeLessThan(50_000);
  });

  it.each([
    ['tool', 'name'],
    ['resource', 'uri'],
    ['template', 'uriTemplate'],
    ['prompt', 'name'],
  ] as const)('finds a %s by its "%s"', (kind, key) => {
    expect(kindWords[kind].identity).toBe(key);
    const { items } = offerOf({ [kind]: [{ [key]: 'x:{y}', description: 'said' }] });
    expect(items).toMatchObject([{ kind, name: 'x:{y}', description: 'said' }]);
  });

  it.each(KINDS)('reports an answer without a list of %ss', (kind) => {
    const { method, list } = kindWords[kind];
    for (const text of ['{}', `{"${list}":{}}`, `{"${list}":null}`, '[]']) {
      expect(read(kind, text)).toEqual({ items: [], problems: [`${method} answered without a list "${list}"`] });
    }
  });

  it('leaves out an item without a name, reports which one, and keeps the rest', () => {
    const { items, problems } = tools(
      `{"name":"good",${schema}}`,
      ...[`{${schema}}`, `{"name":7,${schema}}`, `{"name":"",${schema}}`, '"text"', 'null', '[]'],
      `{"name":"last",${schema}}`,
    );
    expect(items.map(({ name }) => name)).toEqual(['good', 'last']);
    const entries = [2, 3, 4, 5, 6, 7];
    expect(problems).toEqual(
      entries.map((n) => `tools/list: entry ${n} was left out: it needs exactly one "name", a string`),
    );
  });

  it('leaves out a definition with two name members, because clients would read the other one', () => {
    const { items, problems } = tools(`{"name":"mine",${schema},"name":"toolman_activate"}`);
    expect(items).toEqual([]);
    expect(problems).toHaveLength(1);
    expect(tools(`{"name":"mine",${schema},"n\\u0061me":"toolman_activate"}`).items).toEqual([]);
  });

  it('leaves out a definition that would make clients refuse the whole list', () => {
    expect(tools('{"name":"a"}', '{"name":"b","inputSchema":null}', `{"name":"c",${schema}}`)).toMatchObject({
      items: [{ name: 'c' }],
      problems: [
        'tools/list: entry 1 was left out: "a" has no "inputSchema" that is an object',
        'tools/list: entry 2 was left out: "b" has no "inputSchema" that is an object',
      ],
    });
    expect(read('resource', '{"resources":[{"uri":"a:b"}]}').problems).toEqual([
      'resources/list: entry 1 was left out: "a:b" has no "name" that is a string',
    ]);
    expect(read('prompt', '{"prompts":[{"name":"p"}]}').items).toHaveLength(1);
  });

  it('leaves out a definition that clients cannot parse, because they would lose the whole list', () => {
    const long = `"description":"${'x'.repeat(600)}\u0001\t"`;
    const { items, problems } = tools(`{"name":"a",${schema},${long}}`, `{\n"name":\t"b",${schema}}`);
    expect(items.map(({ name }) => name)).toEqual(['b']);
    expect(problems).toEqual(['tools/list: entry 1 was left out: it has a control character in a string']);
  });

  it('leaves out a name with half of a character, and a template with too many expressions', () => {
    const { items, problems } = tools(`{"name":"a",${schema}}`, `{"name":"b\\ud800",${schema}}`);
    expect(items.map(({ name }) => name)).toEqual(['a']);
    expect(problems).toEqual([
      'tools/list: entry 2 was left out: its name contains half of a character (a lone surrogate)',
    ]);
    const template = (count: number) =>
      read(
        'template',
        JSON.stringify({ resourceTemplates: [{ name: 't', uriTemplate: `x://${'{a}'.repeat(count)}` }] }),
      );
    expect(template(16).items).toHaveLength(1);
    expect(template(17).problems[0]).toContain('more than 16 expressions');
  });

  it('reads the description that clients will read, and none if it is not a string', () => {
    const described = (text: string) => tools(`{"name":"a",${schema}${text}}`).items[0]!.description;
    expect(described('')).toBe('');
    expect(described(',"description":["no"]')).toBe('');
    expect(described(',"description":"first","description":"second"')).toBe('second');
  });
});

describe('reuseItems', () => {
  it('reuses the object of an unchanged item and creates a new one for a changed item', () => {
    const before = offerOf({ tool: ['a', 'b'], prompt: ['a'] });
    const after = reuseItems(before, offerOf({ tool: [{ name: 'b', description: 'new' }, 'a'], prompt: ['a'] }));
    expect(after.items.map(({ name }) => name)).toEqual(['a', 'b', 'a']);
    expect(after.items[0]).toBe(before.items[0]);
    expect(after.items[2]).toBe(before.items[2]);
    expect(before.items).not.toContain(after.items[1]);
    expect(reuseItems(null, before)).toBe(before);
  });

  it('keeps the order of the items that were there, and puts new ones at the end', () => {
    const before = offerOf({ tool: ['a', 'b', 'c'] });
    const after = reuseItems(before, offerOf({ tool: ['new', 'c', 'newer', 'a'] }));
    expect(after.items.map(({ name }) => name)).toEqual(['a', 'c', 'new', 'newer']);
  });
});
