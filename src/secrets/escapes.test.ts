/** Secrets in JSON as the programs of other languages write it. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { patient } from '../../test/support/patience.ts';
import { runs } from '../../test/support/wide.ts';
import { createClean } from './clean.ts';
import { createRedactor } from './redact.ts';

/** As in keys that are base64, with quotes and letters beyond ASCII. */
const S = `wJalr/XUtn+FEMI=K7M"<ENG>&bPx'RfiCYä😀Z`;

const code = (char: string) => char.charCodeAt(0).toString(16).padStart(4, '0');
const lower = (text: string, characters: RegExp) => text.replace(characters, (char) => `\\u${code(char)}`);
const upper = (text: string, characters: RegExp) =>
  text.replace(characters, (char) => `\\u${code(char).toUpperCase()}`);
const json = JSON.stringify(S).slice(1, -1);
const BEYOND = /[\u0080-\uffff]/g;

const spellings: Record<string, string> = {
  JavaScript: json,
  'PHP, json_encode': lower(json.replaceAll('/', '\\/'), BEYOND),
  'PHP, with JSON_HEX_TAG and others': upper(lower(S, /[\u0080-\uffff]/g), /[<>&'"]/g).replaceAll('/', '\\/'),
  '.NET, System.Text.Json': upper(S, /[+"&<>'`\u0080-\uffff]/g),
  'Go, encoding/json': lower(json, /[<>&]/g),
  'Python, json.dumps': lower(json, BEYOND),
  'Java, Gson': lower(json, /[<>&='\u2028]/g),
  'Ruby on Rails': lower(json, /[<>&]/g),
};

describe.each(Object.entries(spellings))('a secret in the JSON of %s', (_, spelling) => {
  const message = `{"a":"before ${spelling} after","b":1}`;

  it('is what the server means', () => expect(JSON.parse(message).a).toBe(`before ${S} after`));

  it('is removed from texts', () => {
    expect(createRedactor([S]).redact(message)).toBe('{"a":"before [redacted] after","b":1}');
  });

  it('is removed from messages, also as JSON in JSON in JSON', () => {
    const clean = createClean([S])!;
    let text = message;
    for (let depth = 0; depth < 3; depth++) {
      const cleaned = clean(Buffer.from(text)).toString();
      expect(cleaned).toContain('before [redacted] after');
      expect(() => JSON.parse(cleaned)).not.toThrow();
      text = JSON.stringify({ text });
    }
  });
});

it('is removed however each of its characters is spelled, and the message stays JSON', () => {
  const spelled = (value: string) =>
    fc
      .array(fc.constantFrom('plain', 'lower', 'upper'), { minLength: value.length, maxLength: value.length })
      .map((ways) =>
        value
          .split('')
          .map((char, i) => {
            if (ways[i] === 'lower') return `\\u${code(char)}`;
            if (ways[i] === 'upper') return `\\u${code(char).toUpperCase()}`;
            return char === '"' ? '\\"' : char;
          })
          .join(''),
      );
  const value = fc.string({ minLength: 8, maxLength: 30, unit: fc.constantFrom(...'abcXYZ019/+="&äß') });
  fc.assert(
    fc.property(
      value.chain((secret) => fc.tuple(fc.constant(secret), spelled(secret))),
      fc.nat(2),
      ([secret, spelling], depth) => {
        let text = `{"a":"${spelling}"}`;
        for (let i = 0; i < depth; i++) text = JSON.stringify([text]);
        const cleaned = createClean([secret])!(Buffer.from(text)).toString();
        let inner: unknown = JSON.parse(cleaned);
        for (let i = 0; i < depth; i++) inner = JSON.parse((inner as [string])[0]);
        expect((inner as { a: string }).a).not.toContain(secret);
      },
    ),
    { numRuns: runs(1000) },
  );
});

it('leaves text without a secret as it is, and takes linear time', () => {
  const { redact } = createRedactor([S]);
  const text = '{"a":"\\u00e4\\/\\\\u0041 \\" x"}';
  expect(redact(text)).toBe(text);
  for (const hard of ['\\'.repeat(1_000_000), '\\u0041'.repeat(150_000), '\\/'.repeat(500_000)]) {
    const started = performance.now();
    expect(redact(`\\u0041${hard}`)).toBe(`\\u0041${hard}`);
    // A quadratic search would take minutes.
    expect(performance.now() - started).toBeLessThan(patient(10_000));
  }
});
