import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { patient } from '../../test/support/patience.ts';
import { runs } from '../../test/support/wide.ts';
import { createRedactor } from './redact.ts';
import { environmentSecrets, headerSecrets, looksSecret, urlSecrets } from './secret-values.ts';

const S = 'canary-71f"3/ä+x';

describe('a known value', () => {
  const { redact } = createRedactor([S, 'short', 'second-secret']);

  it.each([
    ['alone', S, '[redacted]'],
    ['in a sentence', `it said ${S}.`, 'it said [redacted].'],
    ['twice', `${S} and ${S}`, '[redacted] and [redacted]'],
    ['beside another', `${S}second-secret`, '[redacted]'],
    ['as JSON', JSON.stringify({ a: S }), '{"a":"[redacted]"}'],
    ['as JSON in JSON', JSON.stringify(JSON.stringify({ a: S })), '"{\\"a\\":\\"[redacted]\\"}"'],
    ['URL-encoded', `?t=${encodeURIComponent(S)}&x=1`, '?t=[redacted]&x=1'],
    ['URL-encoded in lower case', `?t=${encodeURIComponent(S).toLowerCase()}`, '?t=[redacted]'],
    ['text without it', 'a short story of a second', 'a short story of a second'],
  ])('%s', (_, text, clean) => {
    expect(redact(text)).toBe(clean);
  });

  it.each(['', 'a', 'ab', 'user:', 'user::'])('in base64 after "%s"', (before) => {
    for (const encoding of ['base64', 'base64url'] as const) {
      const encoded = Buffer.from(`${before}${S}tail`).toString(encoding);
      const clean = redact(`x ${encoded} y`);
      expect(clean).toContain('[redacted]');
      // At most a few characters of it are left, which it shares with its neighbours.
      expect(clean.length).toBeLessThan(Buffer.from(`${before}tail`).toString('base64').length + 20);
    }
  });
});

it('finds values that overlap, are long, or have many lines', () => {
  const long = Array.from({ length: 300 }, (_, i) => `chunk${i}`).join('-');
  const pem = `-----BEGIN X-----\n${'QUJD'.repeat(16)}\n${'REVG'.repeat(16)}\n-----END X-----`;
  const { redact } = createRedactor(['abcdefgh', 'efghijklmn', long, pem]);
  expect(redact('>abcdefghijklmn<')).toBe('>[redacted]<');
  expect(redact(`>${long}<`)).toBe('>[redacted]<');
  expect(redact(`key: ${'REVG'.repeat(16)}`)).toBe('key: [redacted]');
});

it('removes every value at any position', () => {
  const value = fc.string({ minLength: 6, maxLength: 40 }).filter((text) => text.trim().length >= 6);
  fc.assert(
    fc.property(fc.array(value, { minLength: 1, maxLength: 8 }), fc.string(), fc.string(), (values, before, after) => {
      const { redact } = createRedactor(values);
      for (const one of values) {
        const clean = redact(before + one + after);
        for (const secret of values) expect(clean.replaceAll('[redacted]', '\0')).not.toContain(secret.trim());
      }
    }),
    { numRuns: runs(300) },
  );
});

it('learns further values', () => {
  const redactor = createRedactor();
  expect(redactor.redact('hunter2-hunter2')).toBe('hunter2-hunter2');
  redactor.learn(['hunter2-hunter2']);
  expect(redactor.redact('hunter2-hunter2')).toBe('[redacted]');
});

it('takes linear time for any values', () => {
  const { redact } = createRedactor([
    `${'a'.repeat(800)}b`,
    ...Array.from({ length: 500 }, (_, i) => `secret-value-${i}`),
  ]);
  const started = performance.now();
  redact('a'.repeat(64 * 1024));
  redact('secret-value-'.repeat(5_000));
  redact('-eyJAAAAAAAA'.repeat(5_000));
  redact(`Bearer ${' '.repeat(100_000)}eyJ${'A'.repeat(100_000)} tg_${'!'.repeat(100_000)}`);
  expect(performance.now() - started).toBeLessThan(patient(5_000));
});

describe('text that looks like a credential', () => {
  const { redact } = createRedactor();

  it.each([
    ['Authorization: Bearer abc.def-123456', 'Authorization: Bearer [redacted]'],
    ['authorization: basic dXNlcjpwYXNz', 'authorization: basic [redacted]'],
    [`tg_${'a1B2'.repeat(11)} x`, '[redacted] x'],
    ['t=eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl.', 't=[redacted].'],
    ['send "Authorization: Bearer TOKEN" with it', 'send "Authorization: Bearer TOKEN" with it'],
    ['tg_status_of_all_the_other_things of a basic tool', 'tg_status_of_all_the_other_things of a basic tool'],
  ])('%s', (text, clean) => {
    expect(redact(text)).toBe(clean);
  });
});

it('knows secrets by their names', () => {
  const secret = [
    'API_KEY',
    'GITHUB_TOKEN',
    'apiKey',
    'access_token',
    'DB_PASS',
    'PGPASSWORD',
    'MYSQL_PWD',
    'X-Auth',
    'AWS_SECRET_ACCESS_KEY',
  ];
  const plain = [
    'PATH',
    'PWD',
    'OLDPWD',
    'HOME',
    'GIT_AUTHOR_NAME',
    'SSH_AUTH_SOCK',
    'KEYBOARD',
    'COMPASS',
    'TOKEN_URL',
    'monkey',
  ];
  expect(secret.filter((name) => !looksSecret(name))).toEqual([]);
  expect(plain.filter(looksSecret)).toEqual([]);
});

it('finds secrets in variables, headers and URLs', () => {
  expect(environmentSecrets({ API_KEY: 'k1', HOME: '/h', DB: 'postgres://u:p%40ss@h/d' })).toEqual([
    'k1',
    'p%40ss',
    'p@ss',
  ]);
  expect(headerSecrets({ Accept: 'x', Authorization: 'Bearer t1', 'X-K': 'k2', B: `Basic ${btoa('u:pw')}` })).toEqual([
    'Bearer t1',
    't1',
    'k2',
    `Basic ${btoa('u:pw')}`,
    btoa('u:pw'),
    'u:pw',
    'pw',
  ]);
  expect(urlSecrets('https://tok@h/?api_key=k3&page=2')).toEqual(['tok', 'tok', 'k3']);
  expect(urlSecrets('not an address')).toEqual([]);
});

it('keeps the values that it learned last, even if there are too many', () => {
  const { learn, redact } = createRedactor(['the very first secret']);
  for (let i = 0; i < 30; i++) learn(Array.from({ length: 100 }, (_, n) => `secret number ${i} ${n}`));
  expect(redact('secret number 29 99 and secret number 29 0')).toBe('[redacted] and [redacted]');
  learn(['the very first secret', 'one more secret']);
  expect(redact('the very first secret')).toBe('[redacted]');
});
