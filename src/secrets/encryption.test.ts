import { describe, expect, it } from 'vitest';
import { createKeyring, decryptSecrets, encryptSecrets, newRecipe, readEncrypted } from './encryption.ts';

const ROUNDS = 1_000;
const ring = createKeyring('a passphrase for tests');
const recipe = newRecipe(ROUNDS);

async function open(text: string, keys = ring): Promise<string> {
  const envelope = readEncrypted(text);
  return decryptSecrets(envelope, await keys.keyFor(envelope));
}

describe('an encrypted file', async () => {
  const message = '{"global":{"NAME":"välue"}}';
  const text = encryptSecrets(message, recipe, await ring.keyFor(recipe));

  it('is decrypted to the same text', async () => {
    expect(await open(text)).toBe(message);
    expect(Object.keys(JSON.parse(text) as object)).toEqual([
      'version',
      'kdf',
      'cipher',
      'salt',
      'nonce',
      'ciphertext',
      'created_at',
    ]);
    expect(text).not.toContain('NAME');
  });

  it('is different each time', async () => {
    expect(encryptSecrets(message, recipe, await ring.keyFor(recipe))).not.toBe(text);
  });

  it('is refused with another key', async () => {
    await expect(open(text, createKeyring('another passphrase here'))).rejects.toThrow('written with another key');
  });

  it('is refused if any byte was changed', async () => {
    const accepted: string[] = [];
    const bytes = Buffer.from(text);
    // Each single bit, all bits, and another character of the same kind.
    const masks = [1, 2, 4, 8, 16, 32, 64, 128, 255, 3];
    for (let at = 0; at < bytes.length; at++)
      for (const mask of masks) {
        const changed = Buffer.from(bytes);
        changed[at]! ^= mask;
        await open(changed.toString()).then(
          () => accepted.push(`${at} ${mask} ${text.slice(at - 10, at + 10)}`),
          () => {},
        );
      }
    expect(accepted).toEqual([]);
  });

  it('is refused if it was cut anywhere, or something was appended', async () => {
    for (let length = 0; length < text.length; length++)
      await expect(open(text.slice(0, length)), String(length)).rejects.toThrow();
    for (const more of ['x', '{}', ',', '\u0000']) await expect(open(text + more)).rejects.toThrow();
  });

  it('may be printed by other programs, with spaces and another form of the time', async () => {
    const { created_at: created, ...rest } = JSON.parse(text) as Record<string, string>;
    const theirs = { created_at: new Date(Date.parse(created!) + 400).toISOString(), ...rest };
    expect(await open(`${JSON.stringify(theirs, null, 4)}\n`)).toBe(message);
    const later = { ...theirs, created_at: new Date(Date.parse(created!) + 3_600_000).toISOString() };
    await expect(open(JSON.stringify(later))).rejects.toThrow('changed since');
  });

  it.each([
    [{ version: 2 }, 'version is 2'],
    [{ version: '1' }, 'version is "1"'],
    [{ kdf: { name: 'scrypt', n: 1 } }, 'derived with "scrypt"'],
    [{ kdf: null }, 'derived with undefined'],
    [{ kdf: { name: 'pbkdf2-hmac-sha256', iterations: 1 } }, 'number of iterations'],
    [{ kdf: { name: 'pbkdf2-hmac-sha256', iterations: 1e12 } }, 'number of iterations'],
    [{ cipher: 'aes-256-gcm' }, 'encrypted with "aes-256-gcm"'],
    [{ salt: 'AA==' }, 'salt or nonce'],
    [{ more: 1 }, 'unexpected or missing keys'],
    [{ created_at: 'yesterday' }, 'time is damaged'],
  ])('is refused with the reason if it has %j', async (change, words) => {
    const changed = { ...(JSON.parse(text) as object), ...change };
    await expect(open(JSON.stringify(changed))).rejects.toThrow(words);
  });
});

describe('a keyring', () => {
  it('derives each key once', async () => {
    const keys = createKeyring('something of sixteen');
    expect(keys.keyFor(recipe)).toBe(keys.keyFor({ ...recipe }));
    expect(await keys.keyFor(recipe)).toHaveLength(32);
    expect((await keys.keyFor(newRecipe(ROUNDS))).equals(await keys.keyFor(recipe))).toBe(false);
  });
});
