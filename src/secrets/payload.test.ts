import { describe, expect, it } from 'vitest';
import { NO_SECRETS, printSecrets, readSecrets, secretsFor, withSecret } from './payload.ts';
import { fillIn, referencesIn, referTo, referToSecrets } from './reference.ts';
import { nameProblem } from './secret-names.ts';

const some = withSecret(withSecret(withSecret(NO_SECRETS, null, 'A', 'global a'), null, 'B', 'b'), 'ns', 'A', 'own a');

describe('secrets', () => {
  it('of a namespace take precedence over those for all', () => {
    expect(Object.fromEntries(secretsFor(some, 'ns'))).toEqual({ A: 'own a', B: 'b' });
    expect(Object.fromEntries(secretsFor(some, 'other'))).toEqual({ A: 'global a', B: 'b' });
  });

  it('are printed and read again', () => {
    expect(readSecrets(printSecrets(some))).toEqual(some);
    expect(readSecrets('{}')).toEqual(NO_SECRETS);
  });

  it('are changed in a copy', () => {
    const less = withSecret(some, 'ns', 'A', null);
    expect(less.namespaces.size).toBe(0);
    expect(some.namespaces.size).toBe(1);
  });

  it.each([
    '[]',
    'nonsense',
    '{"global":[]}',
    '{"global":{"A":1}}',
    '{"global":{"A":""}}',
    '{"global":{"A":"a\\u0000b"}}',
    '{"global":{"no name":"x"}}',
    '{"global":{"PATH":"x"}}',
    '{"global":{"__proto__":"x"}}',
    '{"namespaces":{"__proto__":{}}}',
    '{"namespaces":{"../x":{}}}',
  ])('that are not valid are refused: %s', (text) => {
    expect(() => readSecrets(text)).toThrow();
    expect(Object.keys(Object.prototype)).toEqual([]);
  });
});

describe('names', () => {
  it.each(['GITHUB_TOKEN', 'a', '_x9'])('%s', (name) => expect(nameProblem(name)).toBeNull());
  it.each(['', '9A', 'A-B', 'A=secret', 'LD_PRELOAD', 'NODE_OPTIONS', 'PYTHONPATH', 'SECRETS_KEY', 'A'.repeat(129)])(
    'not %s',
    (name) => expect(nameProblem(name)).not.toBeNull(),
  );
  it('are not shown if they may be a value', () => expect(nameProblem('A=hunter2')).not.toContain('hunter2'));
});

describe('references', () => {
  it('are found, and filled in once', () => {
    const text = `Bearer ${referTo('A')}/${referTo('B')}`;
    expect(referencesIn(text)).toEqual(['A', 'B']);
    const tricky: Record<string, string> = { A: '$& ${secret:B}', B: 'b' };
    expect(fillIn(text, (name) => tricky[name])).toBe('Bearer $& ${secret:B}/b');
  });
  it('are made only from valid names', () => {
    expect(referencesIn(referToSecrets('x${secret:A}${HOME}${secret:not a name}'))).toEqual(['A']);
  });
});
