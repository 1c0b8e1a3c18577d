import { describe, expect, it } from 'vitest';
import { createClean } from './clean.ts';

const secret = 'p"a\\ss/wörd<1>&é';
const clean = createClean([secret, '12345678'])!;
const through = (value: unknown) => JSON.parse(clean(Buffer.from(JSON.stringify(value))).toString()) as unknown;

describe('a message of a server', () => {
  it('loses the secrets that it was given, in every form', () => {
    const forms = [
      secret,
      JSON.stringify(secret),
      encodeURIComponent(secret),
      Buffer.from(secret).toString('base64'),
      Buffer.from(`user:${secret}`).toString('base64url'),
    ];
    for (const form of forms) {
      const { a } = through({ a: `x ${form} y` }) as { a: string };
      expect(a).toMatch(/^x .*\[redacted\].* y$/);
      expect(a).not.toContain('ss/w');
    }
    expect(through({ [secret]: [secret] })).toEqual({ '[redacted]': ['[redacted]'] });
  });

  it('loses secrets that are escaped as Python and Go print them', () => {
    const python = JSON.stringify({ a: secret }).replace(
      /[\u0080-\uffff]/g,
      (c) => `\\u00${c.charCodeAt(0).toString(16)}`,
    );
    const go = JSON.stringify({ a: secret }).replace(/[<>&]/g, (c) => `\\u00${c.charCodeAt(0).toString(16)}`);
    for (const text of [python, go])
      expect(JSON.parse(clean(Buffer.from(text)).toString())).toEqual({ a: '[redacted]' });
  });

  it('is the same buffer without a secret in it, and stays JSON if a secret looks like a number', () => {
    const bytes = Buffer.from('{"a":9007199254740993,"b":1.0,"c":"nothing"}');
    expect(clean(bytes)).toBe(bytes);
    const numbers = '{"a":12345678,"b":"12345678","c":9007199254740993}';
    expect(clean(Buffer.from(numbers)).toString()).toBe('{"a":12345678,"b":"[redacted]","c":9007199254740993}');
  });

  it('is not searched if there is nothing to search for', () => {
    expect(createClean([])).toBeNull();
    expect(createClean(['short'])).toBeNull();
  });
});
