/** The secret store with concurrent processes, kills, damaged files and other programs. */
import { execFile } from 'node:child_process';
import { chmodSync, existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { readEncrypted } from '../../src/secrets/encryption.ts';
import { findKey } from '../../src/store/secret-key.ts';
import { openSecretStore } from '../../src/store/secrets.ts';
import { KEY, killAtRandom, openStore, startWriter, vaultWith } from '../support/killing.ts';
import { isMissingPython, pythonProgram } from '../support/needs.ts';
import { tempFolder } from '../support/temp.ts';
import { runs, some } from '../support/wide.ts';

describe('several processes on one secret store', () => {
  it('lose no secret when they write concurrently', async () => {
    const folder = tempFolder();
    const writers = some(['A', 'B', 'C', 'D'], ['A', 'B']).map((name) => startWriter(folder, name, 1, 12, 'each'));
    for (const child of writers) expect((await child.exited).code, child.stderr()).toBe(0);
    const { global } = await openStore(folder).read();
    expect(global.size).toBe(writers.length * 12);
    expect(global.get('B_7')).toBe('number 7');
    expect((await openStore(folder).list()).every(({ status }) => status === 'set')).toBe(true);
    expect(readdirSync(folder).sort()).toEqual(['secrets.enc', 'secrets.meta.yaml']);
  });

  it('lose no acknowledged secret when they are killed', () => killAtRandom(runs(30)), 240_000);
});

describe('a damaged secrets file', () => {
  it('is refused and never overwritten', async () => {
    const folder = tempFolder();
    const store = openStore(folder);
    await store.set('NAME', null, 'a value');
    const whole = readFileSync(store.file);
    const damaged = [
      Buffer.alloc(0),
      whole.subarray(0, -1),
      whole.subarray(0, 100),
      Buffer.from('{}'),
      Buffer.concat([whole, whole]),
      ...[10, 60, 120, 200, whole.length - 20].map((at) => {
        const bytes = Buffer.from(whole);
        bytes[at]! ^= 1;
        return bytes;
      }),
    ];
    for (const bytes of damaged) {
      writeFileSync(store.file, bytes);
      const fresh = openStore(folder);
      for (const work of [
        () => fresh.read(),
        () => fresh.list(),
        () => fresh.set('NAME', null, 'another'),
        () => fresh.remove('NAME', null),
        () => fresh.rotate('another key of some length'),
      ])
        await expect(work()).rejects.toThrow(/secrets\.enc cannot be opened: .+ Give the key/);
      expect(readFileSync(store.file).equals(bytes)).toBe(true);
    }
    writeFileSync(store.file, whole);
    await expect(openStore(folder, 'another key of some length').read()).rejects.toThrow('with another key');
    expect((await openStore(folder).read()).global.get('NAME')).toBe('a value');
  });

  it('is refused if only the metadata is damaged, and an empty metadata file is rebuilt', async () => {
    const folder = tempFolder();
    const store = openStore(folder);
    await store.set('NAME', null, 'a value');
    for (const text of ['[]', 'global: 1', 'global:\n  NAME: {status: odd}', 'global: {"__proto__": {}}', '\u0000']) {
      writeFileSync(store.metaFile, text);
      const before = readFileSync(store.file, 'utf8');
      await expect(store.set('NAME', null, 'another'), text).rejects.toThrow('cannot be understood');
      expect(readFileSync(store.file, 'utf8')).toBe(before);
    }
    writeFileSync(store.metaFile, '');
    expect(await store.list()).toMatchObject([{ name: 'NAME', scope: null, status: 'set' }]);
    await store.set('MORE', null, 'more');
    expect(readFileSync(store.metaFile, 'utf8')).toMatch(/NAME:\n {4}status: set/);
  });
});

describe('the list of secrets', () => {
  it('shows status, time and scope without a key and without values', async () => {
    const folder = tempFolder();
    const store = openStore(folder);
    await store.prepare('LATER', null);
    await store.set('NOW', null, 'hunter2hunter2');
    await store.set('NOW', 'slack', 'hunter3hunter3');
    await store.prepare('NOW', null);
    const known = [
      { name: 'LATER', scope: null, status: 'placeholder' },
      { name: 'NOW', scope: null, status: 'set' },
      { name: 'NOW', scope: 'slack', status: 'set' },
    ];
    expect(await store.list()).toMatchObject(known);
    const listed = await openStore(folder, null).list();
    expect(listed).toMatchObject(known);
    for (const { updated } of listed) expect(Date.now() - Date.parse(updated!)).toBeLessThan(60_000);
    expect(readFileSync(store.metaFile, 'utf8')).not.toContain('hunter');
    for (const file of [store.file, store.metaFile]) expect(statSync(file).mode & 0o777).toBe(0o600);

    await store.set('LATER', null, 'is here now');
    expect(await store.remove('NOW', 'slack')).toBe(true);
    expect(await store.remove('NOW', 'slack')).toBe(false);
    expect(await store.list()).toMatchObject(
      [known[1], known[1]].map((one, i) => ({ ...one, name: ['LATER', 'NOW'][i] })),
    );
  });

  it('allows adding and removing placeholders before there is a key', async () => {
    const folder = tempFolder();
    const store = openStore(folder, null);
    await store.prepare('LATER', 'ns');
    expect(await store.remove('LATER', 'ns')).toBe(true);
    expect(await store.list()).toEqual([]);
    expect(await store.read()).toMatchObject({ global: new Map() });
    await expect(store.set('LATER', null, 'x')).rejects.toThrow('There is no key for the secrets');
    expect(existsSync(store.file)).toBe(false);
  });

  it.each([
    ['A B', null, 'x', 'letters, digits'],
    ['A', '../x', 'x', 'A namespace may contain only'],
    ['A', null, '', 'The value is empty'],
    ['A', null, 'a\0b', 'NUL'],
    ['A', null, 'x'.repeat(70_000), 'more than 65536'],
  ])('rejects the name %j with the scope %j', async (name, scope, value, words) => {
    await expect(openStore(tempFolder()).set(name, scope, value)).rejects.toThrow(words);
  });
});

describe('the encryption key of the secrets', () => {
  it('can be rotated, which also changes the salt', async () => {
    const folder = tempFolder();
    const store = openStore(folder);
    await store.set('NAME', null, 'a value');
    const before = readEncrypted(readFileSync(store.file, 'utf8'));
    await expect(store.rotate('too short')).rejects.toThrow('fewer than 16 characters');
    expect(await store.rotate('the next key, as long')).toBe(true);
    expect(readEncrypted(readFileSync(store.file, 'utf8')).salt).not.toBe(before.salt);
    await expect(openStore(folder).read()).rejects.toThrow('another key');
    expect((await openStore(folder, 'the next key, as long').read()).global.get('NAME')).toBe('a value');
    expect(await openStore(tempFolder()).rotate('the next key, as long')).toBe(false);
  });

  it('is not used to write a file again that would say the same', async () => {
    const folder = tempFolder();
    const store = openStore(folder);
    await store.set('NAME', null, 'a value');
    const before = readFileSync(store.file);
    await store.set('NAME', null, 'a value');
    expect(readFileSync(store.file).equals(before)).toBe(true);
    await store.set('NAME', null, 'another');
    expect(readFileSync(store.file).equals(before)).toBe(false);
  });

  it('is derived with more rounds at the next write, if the file has too few', async () => {
    const folder = tempFolder();
    await openStore(folder).set('NAME', null, 'a value');
    const later = openSecretStore(folder, vaultWith(KEY), 2_000);
    expect((await later.read()).global.get('NAME')).toBe('a value');
    await later.set('NAME', null, 'a value');
    expect(readEncrypted(readFileSync(later.file, 'utf8')).rounds).toBe(2_000);
  });

  it('is read from a file only if no one else can read it', async () => {
    const folder = tempFolder({ key: `${KEY}\n`, short: 'short\n' });
    const find = (file: string) => findKey(vaultWith(null, { keyFile: join(folder, file) }));
    for (const mode of [0o644, 0o640, 0o604, 0o660]) {
      chmodSync(join(folder, 'key'), mode);
      await expect(find('key')).rejects.toThrow(/can be read by others \(mode 0\d+\)\. Run: chmod 600/);
    }
    chmodSync(join(folder, 'key'), 0o600);
    expect(await find('key')).toMatchObject({ passphrase: KEY, isInsecure: false });
    chmodSync(join(folder, 'short'), 0o400);
    await expect(find('short')).rejects.toThrow('fewer than 16 characters');
    await expect(find('nowhere')).rejects.toThrow('does not exist');
    await expect(find('.')).rejects.toThrow('is not a key file');
    expect(await findKey(vaultWith(null))).toBeNull();
    expect(await findKey(vaultWith(null, { allowInsecure: true }))).toMatchObject({ isInsecure: true });
    expect(await findKey(vaultWith(KEY, { allowInsecure: true }))).toMatchObject({ isInsecure: false });
  });
});

const SCRIPT = `
import base64, json, os, sys, datetime
from cryptography.fernet import Fernet
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.pbkdf2 import PBKDF2HMAC

def fernet(salt, iterations):
    kdf = PBKDF2HMAC(algorithm=hashes.SHA256(), length=32, salt=salt, iterations=iterations)
    return Fernet(base64.urlsafe_b64encode(kdf.derive(os.environ["SECRETS_KEY"].encode())))

file = sys.argv[1]
with open(file) as f:
    envelope = json.load(f)
assert envelope["version"] == 1 and envelope["cipher"] == "fernet", envelope
assert envelope["kdf"] == {"name": "pbkdf2-hmac-sha256", "iterations": 600000}, envelope
box = fernet(base64.b64decode(envelope["salt"], validate=True), 600000)
secrets = json.loads(box.decrypt(envelope["ciphertext"].encode()))
print(json.dumps(secrets))

secrets["global"]["FROM_PYTHON"] = "grüße"
salt = os.urandom(16)
token = fernet(salt, 600000).encrypt(json.dumps(secrets).encode())
with open(file, "w") as f:
    json.dump({
        "version": 1, "kdf": envelope["kdf"], "cipher": "fernet",
        "salt": base64.b64encode(salt).decode(),
        "nonce": base64.b64encode(base64.urlsafe_b64decode(token)[9:25]).decode(),
        "ciphertext": token.decode(),
        "created_at": datetime.datetime.now(datetime.timezone.utc).isoformat(),
    }, f, indent=2)
`;

describe.skipIf(isMissingPython('v1'))("Python's cryptography", () => {
  it('reads what the store writes, and the store reads what it writes', async () => {
    const store = openSecretStore(tempFolder(), vaultWith(KEY));
    await store.change([
      { name: 'NAME', scope: null, value: 'välue "quoted"\nand another line' },
      { name: 'NAME', scope: 'ns', value: 'own' },
    ]);
    const { stdout } = await promisify(execFile)(pythonProgram('v1'), ['-c', SCRIPT, store.file], {
      env: { SECRETS_KEY: KEY },
    });
    expect(JSON.parse(stdout)).toEqual({
      global: { NAME: 'välue "quoted"\nand another line' },
      namespaces: { ns: { NAME: 'own' } },
    });
    expect(Object.fromEntries((await store.read()).global)).toEqual({
      FROM_PYTHON: 'grüße',
      NAME: 'välue "quoted"\nand another line',
    });
    await store.set('NAME', 'ns', 'changed');
    expect((await store.read()).namespaces.get('ns')?.get('NAME')).toBe('changed');
  });
});
