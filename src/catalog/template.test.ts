import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { runs } from '../../test/support/wide.ts';
import { literalLength, matchesTemplate } from './template.ts';

describe('matchesTemplate', () => {
  it.each([
    ['note://{id}', 'note://7', true],
    ['note://{id}', 'note://', false],
    ['note://{id}', 'note://7/text', false],
    ['note://{id}/text', 'note://7/text', true],
    ['note://{id}/text', 'note://a/b/text', false],
    ['note://{a}-{b}', 'note://1-2-3', true],
    ['note://{a}{b}', 'note://1', false],
    ['file:///{+path}', 'file:///a/b/c.txt', true],
    ['file:///{path*}', 'file:///a/b/c.txt', true],
    ['file://{/path*}', 'file:///a/b', true],
    ['db://items{?page,size}', 'db://items', true],
    ['db://items{?page,size}', 'db://items?page=1&size=2', true],
    ['page://x{#part}', 'page://x#a/b', true],
    ['doc://x{.format}', 'doc://x.md', true],
    ['note://plain', 'note://plain', true],
    ['note://plain', 'note://plainer', false],
    ['note://{id', 'note://{id', true],
    ['note://{id', 'note://7', false],
    ['note://id}', 'note://id}', true],
    ['日://{x}', '日://😀', true],
    ['n.te://{x}', 'note://1', false],
    ['note://{}', 'note://', false],
    ['note://{}', 'note://a/b', false],
    ['', '', true],
    ['', 'a', false],
  ])('template %s with URI %s: %j', (template, uri, expected) => {
    expect(matchesTemplate(template, uri)).toBe(expected);
  });

  it('agrees with an equivalent regular expression', () => {
    const expressions = { '{x}': '[^/]+', '{+x}': '.*', '{?x}': '[^/]*', '{x*}': '.+', '{/x}': '.*' };
    const part = fc.constantFrom('a', 'b', '/', ...Object.keys(expressions));
    const uri = fc.string({ unit: fc.constantFrom('a', 'b', '/'), maxLength: 10 });
    fc.assert(
      fc.property(fc.array(part, { maxLength: 7 }), uri, (parts, text) => {
        const pattern = parts.map((one) => expressions[one as keyof typeof expressions] ?? one).join('');
        expect(matchesTemplate(parts.join(''), text)).toBe(new RegExp(`^${pattern}$`).test(text));
      }),
      { numRuns: runs(3000) },
    );
  });

  it('stays fast on a template designed to be slow', () => {
    const start = process.cpuUsage();
    expect(matchesTemplate(`x://${'{a}'.repeat(30)}!`, `x://${'a'.repeat(10_000)}`)).toBe(false);
    expect(matchesTemplate(`x://${'{+a}b'.repeat(30)}!`, `x://${'ab'.repeat(5_000)}`)).toBe(false);
    expect(process.cpuUsage(start).user / 1000).toBeLessThan(500);
  });
});

describe('literalLength', () => {
  it('counts the characters outside of the braces', () => {
    expect(literalLength('note://{id}/text')).toBe('note:///text'.length);
    expect(literalLength('{+everything}')).toBe(0);
    expect(literalLength('note://{id')).toBe('note://{id'.length);
  });
});
