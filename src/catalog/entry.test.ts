import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { askedFor, offerOf } from '../../test/support/catalog.ts';
import { anyText } from '../../test/support/random.ts';
import { BUILT_IN, builtInEntry, definitionOf, hashOf, type Owner, toEntry } from './entry.ts';
import { type Item, readItems } from './item.ts';
import { exposedName, JOINED } from './names.ts';

const owner = { id: 3, key: 'git', namespace: 'git' };
const item = (text: string): Item => readItems('tool', Buffer.from(`{"tools":[${text}]}`)).items[0]!;

const entryOf = (by: Owner, what: Item) => toEntry(by, what, exposedName(what.kind, by.namespace, what.name, JOINED));

describe('toEntry', () => {
  it('changes the name in the definition and no other byte', () => {
    const text = '{ "inputSchema":{"type":"object","name":"not me"},"name" : "st\\u0061tus", "n":1.0 }';
    const entry = entryOf(owner, item(text));
    expect(entry.name).toBe('git_status');
    expect(definitionOf(entry, 'modern').toString()).toBe(text.replace('"st\\u0061tus"', '"git_status"'));
    expect(entry.upstreamName).toBe('"st\\u0061tus"');
  });

  it('uses the server’s own bytes if the namespace is empty', () => {
    const status = item('{"inputSchema":{},"name":"st\\u0061tus"}');
    const entry = entryOf({ ...owner, namespace: '' }, status);
    expect(entry.name).toBe('status');
    expect(definitionOf(entry, 'modern')).toBe(status.bytes);
  });

  it('returns the same object for the same item and owner, and a different one for another owner', () => {
    const status = item('{"inputSchema":{},"name":"status"}');
    const entry = entryOf(owner, status);
    expect(entryOf({ ...owner }, status)).toBe(entry);
    expect(entryOf({ ...owner, namespace: 'hub' }, status)).toMatchObject({ name: 'hub_status', sourceId: 3 });
    expect(entryOf({ ...owner, id: 4 }, status)).toMatchObject({ name: 'git_status', sourceId: 4 });
    expect(entryOf({ ...owner, key: 'other' }, status)).toMatchObject({ sourceKey: 'other' });
    expect(toEntry(owner, status, 'git_status_1')).toMatchObject({ name: 'git_status_1', sourceId: 3 });
  });

  it('has equal hashes only for equal bytes', () => {
    const hash = (namespace: string, text: string) => hashOf(entryOf({ ...owner, namespace }, item(text)));
    const text = '{"inputSchema":{},"name":"a"}';
    expect(hash('x', text)).toBe(hash('x', text));
    expect(hash('x', text)).not.toBe(hash('y', text));
    expect(hash('x', text)).not.toBe(hash('x', '{"inputSchema":{},"name": "a"}'));
  });

  it('restores any name from its exposed form', () => {
    fc.assert(
      fc.property(anyText({ minLength: 1 }), fc.constantFrom('', 'a', 'a.b-c_'), (name, namespace) => {
        const entry = entryOf({ ...owner, namespace }, offerOf({ tool: [name] }).items[0]!);
        const exposed = namespace === '' ? name : `${namespace}_${name}`;
        expect(entry.name).toBe(exposed);
        expect((JSON.parse(definitionOf(entry, 'modern').toString()) as { name: string }).name).toBe(exposed);
        expect(askedFor(entry.upstreamName)).toBe(name);
      }),
    );
  });
});

describe('builtInEntry', () => {
  it('creates an entry that belongs to no server, has its own definition and is always loaded', () => {
    const definition = { name: 'own', description: 'A tool', inputSchema: {} };
    const entry = builtInEntry(definition);
    expect(entry).toMatchObject({ kind: 'tool', name: 'own', sourceId: BUILT_IN });
    for (const era of ['legacy', 'modern'] as const)
      expect(JSON.parse(definitionOf(entry, era).toString())).toEqual({
        ...definition,
        _meta: { 'anthropic/alwaysLoad': true },
      });
    expect(hashOf(builtInEntry({ ...definition, description: 'Another' }))).not.toBe(hashOf(entry));
  });
});
