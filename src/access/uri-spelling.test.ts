import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isNormalUri, meaningsOf, normalUri } from './uri-spelling.ts';

describe('the usual spelling of a URI', () => {
  it.each([
    ['notes://%73ecret', 'notes://secret'],
    ['notes://secret?', 'notes://secret'],
    ['notes://secret#', 'notes://secret'],
    ['notes://secret?#', 'notes://secret'],
    ['NOTES://secret', 'notes://secret'],
    ['FILE://Host/A', 'file://host/A'],
    ['file:///a/./secret.txt', 'file:///a/secret.txt'],
    ['file:///a//secret.txt', 'file:///a/secret.txt'],
    ['file:///a/x/../secret.txt', 'file:///a/secret.txt'],
    ['file:///a/%2e%2E/secret.txt', 'file:///secret.txt'],
    ['file:///../../a/..', 'file:///'],
    ['file:///a\\b', 'file:///a/b'],
    ['notes://sec\tret\n', 'notes://secret'],
    ['a/./b', 'a/b'],
    ['notes://./secret', 'notes://secret'],
    ['notes://x/../secret', 'notes://secret'],
  ])('of %j is %j', (uri, normal) => {
    expect(normalUri(uri)).toBe(normal);
    expect(isNormalUri(uri)).toBe(false);
  });

  it.each([
    'notes://Alice',
    'notes://a%20b%2Fc',
    'notes://search?q=a%2Fb&r=../x#part',
    'file:///a/b/',
    'urn:isbn:1',
    'mailto:a@b',
    '',
    'a/b',
    'git://h/a..b/.env/...',
  ])('of %j is that', (uri) => {
    expect(isNormalUri(uri)).toBe(true);
  });

  it('is its own usual spelling, whatever the text', () => {
    const part = fc.constantFrom(
      'a',
      'é',
      '/',
      '//',
      '.',
      '..',
      '%2e',
      '%2F',
      '%73',
      '%zz',
      '?',
      '#',
      '\\',
      ':',
      'f:',
      ' ',
    );
    fc.assert(
      fc.property(fc.array(part), (parts) => {
        const normal = normalUri(parts.join(''));
        expect(normalUri(normal)).toBe(normal);
        expect(meaningsOf(parts.join(''))).toContain(normal);
      }),
    );
  });
});

describe('what a URI could mean', () => {
  it.each([
    'notes://%73ecret',
    'notes://%2573ecret',
    'notes://SECRET',
    'notes://secret?',
    'notes://secret?x=1',
    'notes://secret#x',
    'notes://secret/',
    'notes://secret/.',
    'notes://secret%3F',
    'notes://secret%20',
  ])('includes notes://secret for %s', (uri) => {
    expect(meaningsOf(uri)).toContain('notes://secret');
  });

  it.each(['file:///a%2Fb', 'file:///a/x/..%2fb', 'file:///%61//b/', 'file:///c/..\\a/b'])(
    'includes file:///a/b for %s',
    (uri) => {
      expect(meaningsOf(uri)).toContain('file:///a/b');
    },
  );

  it('knows default ports', () => {
    expect(meaningsOf('http://H:80/a')).toContain('http://h/a');
  });

  it('does not include another resource', () => {
    expect([...meaningsOf('notes://a/secret')]).not.toContain('notes://secret');
    expect([...meaningsOf('notes://secrets')]).not.toContain('notes://secret');
  });
});
