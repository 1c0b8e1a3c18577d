import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { catalogOf } from '../../test/support/catalog.ts';
import { listedUri, readSchemeUri, schemeTemplate, schemeUri } from './uris.ts';

describe('a URI with the namespace in its scheme', () => {
  it.each([
    ['git', 'file:///a/b.md', 'git+file:///a/b.md'],
    ['git', 'git+ssh://host/a', 'git+git+ssh://host/a'],
    ['sequential-thinking', 'demo:x', 'sequential-thinking+demo:x'],
    ['my_server', 'demo://x', 'my..server+demo://x'],
    ['my.hub', 'demo://x', 'my.-hub+demo://x'],
    ['GitHub', 'demo://x', 'x.git.hub+demo://x'],
    ['1mcp', 'demo://x', 'x1mcp+demo://x'],
    ['xcode', 'demo://x', 'xxcode+demo://x'],
    ['日', 'demo://x', 'x.26085.+demo://x'],
    ['web', 'http://EXAMPLE.com', 'web+http://EXAMPLE.com'],
    // What is no legal URL, or would be changed by a parser, is escaped.
    ['a', 'my_app://x', 'a+-:my_app://x'],
    ['a', 'MyApp://x', 'a+-:MyApp://x'],
    ['a', 'demo://a b/ü', 'a+-:demo://a%20b/%C3%BC'],
    ['a', 'file:///x/../y', 'a+-:file:///x/../y'],
    ['a', '/x/../y', 'a+-:%2Fx/../y'],
    ['a', 'greeting', 'a+-:greeting'],
    ['a', '50%', 'a+-:50%25'],
  ])('%s and %s become %s', (namespace, uri, expected) => {
    expect(schemeUri(namespace, uri)).toBe(expected);
  });

  const names = fc.oneof(
    fc.string({ unit: fc.constantFrom(...'abxyzAX019_.-'), minLength: 1, maxLength: 6 }),
    fc.string({ unit: 'grapheme', minLength: 1, maxLength: 4 }),
  );
  const uris = fc.oneof(
    fc.webUrl({ withFragments: true, withQueryParameters: true }),
    fc.string({ unit: fc.constantFrom(...'ab:/+-_.%? #é{}\\"'), minLength: 1, maxLength: 12 }),
    fc.string({ unit: 'grapheme', minLength: 1 }),
  );

  it('is a legal URL that parsers do not change, and can be read back', () => {
    fc.assert(
      fc.property(names, uris, (namespace, uri) => {
        const written = schemeUri(namespace, uri);
        expect(new URL(written).href).toBe(written);
        expect(readSchemeUri(written)).toMatchObject({ namespace, uri });
        expect(readSchemeUri(schemeTemplate(namespace, uri))).toMatchObject({ namespace, written: uri });
      }),
    );
  });

  it.each([
    'git_demo://x',
    'demo://x',
    'git+',
    '+x',
    'Git+demo://x',
    'xgit+demo://x',
    'x+demo://x',
    'a.99999999.+demo://x',
    'a.1114112.+demo://x',
    'a.97.+demo://x',
    'a.+demo://x',
  ])('%s is none', (uri) => {
    expect(readSchemeUri(uri)).toBeNull();
  });
});

describe('the listed URI', () => {
  it('never equals the exposed URI of another item', () => {
    const catalog = catalogOf(
      { namespace: '', resource: ['a+n://1', 'a+n://2', 'a+-:n://2'], template: ['a+n://{id}'] },
      { namespace: 'a', resource: ['n://1', 'n://2', 'n://3'], template: ['n://{id}', 'm://{id}'] },
    );
    const listed = (kind: 'resource' | 'template') =>
      [...catalog.entries[kind]].map(([name, entry]) => listedUri({ catalog, uriStyle: 'scheme' }, name, entry));
    expect(listed('resource').slice(3)).toEqual(['a+-:n://1', null, 'a+n://3']);
    expect(listed('template')).toEqual(['a+n://{id}', null, 'a+m://{id}']);
  });
});
