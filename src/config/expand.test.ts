import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { expand } from './expand.ts';

const env = { NAME: 'value', EMPTY: '', NESTED: '${NAME} $NAME', UNDEFINED: undefined, SECRET: 's3cret' };

describe('a variable', () => {
  it.each([
    ['${NAME}', 'value'],
    ['a${NAME}b${NAME}', 'avalueb' + 'value'],
    ['${NAME:-other}', 'value'],
    ['${MISSING:-other words: $x}', 'other words: $x'],
    ['${MISSING:-}', ''],
    ['${EMPTY}', ''],
    ['${EMPTY:-other}', 'other'],
    ['${UNDEFINED:-other}', 'other'],
    ['${MISSING:-a\nb}', 'a\nb'],
  ])('is replaced: %j', (written, text) => {
    expect(expand(written, env)).toEqual({ text });
  });

  it('is not expanded in the value of another', () => {
    expect(expand('${NESTED}', env)).toEqual({ text: '${NAME} $NAME' });
  });

  it.each(['', 'plain', '$NAME', '$$', '$${', '{NAME}', '$ {NAME}', 'a$'].filter((text) => !text.includes('${')))(
    'needs braces: %j stays unchanged',
    (text) => {
      expect(expand(text, env)).toEqual({ text });
    },
  );

  it('can be written literally with the help of a default', () => {
    expect(expand('${DOLLAR:-$}{NAME}', env)).toEqual({ text: '${NAME}' });
  });
});

describe('a variable that cannot be replaced', () => {
  const malformed =
    'is not a variable such as ${NAME}, ${NAME:-default} or ${secret:NAME}. A default cannot contain another variable. Correct it';
  it.each([
    ['${MISSING}', 'the environment variable MISSING is not set. Set it, or give a default: ${MISSING:-default}'],
    ['${UNDEFINED}', 'the environment variable UNDEFINED is not set. Set it, or give a default: ${UNDEFINED:-default}'],
    [
      '${constructor}',
      'the environment variable constructor is not set. Set it, or give a default: ${constructor:-default}',
    ],
    [
      '${SECRET}${MISSING}',
      'the environment variable MISSING is not set. Set it, or give a default: ${MISSING:-default}',
    ],
    ['${NAME', `"\${NAME…" ${malformed}`],
    ['${}', `"\${…" ${malformed}`],
    ['${1x}', `"\${1x…" ${malformed}`],
    ['${KEY:s3cret}', `"\${KEY…" ${malformed}`],
    [
      '${secret:NAME}',
      '${secret:NAME} is allowed in the command, args, env, url and headers of servers, and nowhere else. Remove it here',
    ],
    ['${SECRETS_KEY}', 'SECRETS_KEY decrypts all secrets and is never passed on. Remove it here'],
    ['${A:-${NAME}}', `"\${A…" ${malformed}`],
  ])('is reported without any value: %j', (written, problem) => {
    expect(expand(written, env)).toEqual({ problem });
  });
});

describe('a secret', () => {
  const place = (name: string) => `<${name}>`;

  it('becomes a reference if secrets are allowed, and is never read from the environment', () => {
    expect(expand('a ${secret:TOKEN} b ${NAME}', { NAME: '${secret:X}' }, place)).toEqual({
      text: 'a <TOKEN> b ${secret:X}',
    });
    expect(expand('${secret:a-b=hunter2}', {}, place)).toEqual({
      problem: 'A secret is named like an environment variable: letters, digits and "_"',
    });
    expect(expand('${secret:TOKEN:-x}', {}, place)).toHaveProperty('problem');
  });
});

it('leaves texts without variables alone, and never expands values', () => {
  fc.assert(
    fc.property(fc.string(), fc.string(), fc.string(), (before, value, after) => {
      fc.pre(!`${before}x`.includes('${') && !`x${after}`.includes('${'));
      expect(expand(`${before}\${V}${after}`, { V: value })).toEqual({ text: before + value + after });
    }),
  );
});
