import { describe, expect, it } from 'vitest';
import { NO_SECRETS, type SecretStatus, withSecret } from '../secrets/payload.ts';
import { statusesOf } from './secrets-meta.ts';
import { changesIn, secretsText } from './secrets-text.ts';

const value = 'a: "b"\n# *c é \u2028';
const secrets = withSecret(withSecret(NO_SECRETS, null, 'A', value), 'ns', 'NO', 'yes');
const waiting: SecretStatus = { name: 'W', scope: null, status: 'placeholder', updated: null };
const statuses = statusesOf(secrets, [waiting]);
const text = secretsText(secrets, statuses);
const changes = (edited: string) => changesIn(edited, secrets, statuses);

describe('the text for an editor', () => {
  it('yields no changes if it is not edited', async () => {
    expect(await changes(text)).toEqual([]);
  });

  it('yields what was set, emptied and removed', async () => {
    const edited = text
      .replace('"W":', '"W": now')
      .replace('"NO": "yes"', '"NO":\n    NEW: "x"')
      .replace(/ {2}"A"[^\n]*\n/, '');
    expect(await changes(edited)).toEqual([
      { name: 'W', scope: null, value: 'now' },
      { name: 'NO', scope: 'ns', value: null },
      { name: 'NEW', scope: 'ns', value: 'x' },
      { name: 'A', scope: null, value: undefined },
    ]);
    expect(await changes('')).toHaveLength(3);
  });

  it.each([
    ['global:\n  A: *hunter2\n', /^The text is not valid YAML/],
    ['global:\n  A: "hunter2\n', /^Line \d is not valid YAML/],
    ['global:\n  A: 0123\n', /The value of A in global is not a string/],
    ['global:\n  A: [hunter2]\n', /is not a string/],
    ['hunter2: 1\n', /other than "global"/],
    ['global: hunter2\n', /needs lines such as/],
  ])('leads to an error for %j that does not quote what may be a value', async (edited, words) => {
    const error = await changes(edited).catch((caught: Error) => caught);
    expect((error as Error).message).toMatch(words);
    expect((error as Error).message).not.toContain('hunter2');
  });
});
