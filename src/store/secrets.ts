/**
 * The secret store in the data folder: `secrets.enc` with the encrypted values, and `secrets.meta.yaml` with the names.
 * Several processes may change it at the same time, and a running gateway watches it. A file that cannot be opened is
 * reported and never overwritten.
 */
import { readdir, readFile, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { GatewayError, messageOf } from '../base/errors.ts';
import { replaceFileDurably } from '../base/files.ts';
import { withLock } from '../base/lock.ts';
import type { VaultConfig } from '../config/secrets-key.ts';
import {
  createKeyring,
  decryptSecrets,
  type EncryptedSecrets,
  encryptSecrets,
  type Keyring,
  newRecipe,
  type Recipe,
  ROUNDS,
  readEncrypted,
} from '../secrets/encryption.ts';
import {
  NO_SECRETS,
  printSecrets,
  readSecrets,
  type SecretScope,
  type SecretStatus,
  type Secrets,
  secretsOf,
  valueProblem,
  withLogin,
  withSecret,
} from '../secrets/payload.ts';
import { isNamespace, nameProblem } from '../secrets/secret-names.ts';
import { checked, findKey, keyMissing } from './secret-key.ts';
import { inOrder, readMeta, statusesOf, writeMeta } from './secrets-meta.ts';

/** The secrets that servers are given, encrypted in the data folder. */
export interface SecretStore {
  readonly file: string;
  readonly metaFile: string;
  /** All secrets that are set. Needs no key if there is no file. Throws if the file cannot be opened. */
  read(): Promise<Secrets>;
  /** All secrets without their values. Works without a key, but may then list secrets that are no longer set. */
  list(): Promise<SecretStatus[]>;
  set(name: string, scope: SecretScope, value: string): Promise<void>;
  /** Adds a placeholder, unless the secret is set. */
  prepare(name: string, scope: SecretScope): Promise<void>;
  /** False if there is no such secret. */
  remove(name: string, scope: SecretScope): Promise<boolean>;
  /** Applies several changes at once. */
  change(changes: readonly SecretChange[]): Promise<void>;
  /**
   * Keeps what was obtained by logging in to a server, as JSON; null forgets it.
   * @internal
   */
  setLogin(name: string, login: string | null): Promise<void>;
  /** Encrypts all secrets with another passphrase. False if there are none. */
  rotate(passphrase: string): Promise<boolean>;
}

/** A change of one secret. */
export interface SecretChange {
  readonly name: string;
  readonly scope: SecretScope;
  /** The new value; null for a placeholder, undefined to remove the secret. */
  readonly value: string | null | undefined;
}

/** A larger file cannot be ours. */
const MOST_BYTES = 16 * 1024 * 1024;

/**
 * The store of secrets of a configuration, as `toolgate secrets` uses it. Tests may pass fewer `rounds` of key
 * derivation.
 *
 * @example
 * const store = openSecretStore(config.dataDir, config.vault);
 * for (const { name, status } of await store.list()) console.log(name, status);
 */
export function openSecretStore(dataDir: string, vault: VaultConfig, rounds: number = ROUNDS): SecretStore {
  const file = join(dataDir, 'secrets.enc');
  const metaFile = join(dataDir, 'secrets.meta.yaml');
  /** Its lock is `secrets.lock`. */
  const locked = join(dataDir, 'secrets');
  let rings: { readonly passphrase: string; readonly ring: Keyring } | null = null;

  async function keyring(): Promise<Keyring> {
    const key = await findKey(vault);
    if (key === null) throw keyMissing();
    if (rings?.passphrase !== key.passphrase)
      rings = { passphrase: key.passphrase, ring: createKeyring(key.passphrase) };
    return rings.ring;
  }

  async function envelope(): Promise<EncryptedSecrets | null> {
    const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return null;
      throw damaged(error.code ?? error.message);
    });
    if (text === null) return null;
    if (text.length > MOST_BYTES) throw damaged('it is far too large');
    return attempt(() => readEncrypted(text));
  }

  function open(found: EncryptedSecrets | null, key: Buffer): Secrets {
    return found === null ? NO_SECRETS : attempt(() => readSecrets(decryptSecrets(found, key)));
  }

  function attempt<T>(work: () => T): T {
    try {
      return work();
    } catch (error) {
      throw damaged(messageOf(error));
    }
  }

  function damaged(why: string): GatewayError {
    return new GatewayError(
      'config_invalid',
      `${file} cannot be opened: ${why}. Give the key that it was written with, or restore the file from a backup.`,
    );
  }

  /**
   * Derives keys before it takes the lock, because that takes long. If the file has another salt by then, it starts
   * over. `next` is the keyring to write with, if it differs. Returns the secrets as they were before.
   */
  async function update(
    changes: readonly SecretChange[],
    next?: Keyring,
    more: (secrets: Secrets) => Secrets = (secrets) => secrets,
  ): Promise<Secrets> {
    const ring = await keyring();
    const fresh = newRecipe(rounds);
    for (;;) {
      const before = await envelope();
      if (before !== null) await ring.keyFor(before);
      const isOld = before === null || before.rounds < rounds || next !== undefined;
      const recipe: Recipe = isOld ? fresh : before;
      const key = await (next ?? ring).keyFor(recipe);
      const done = await withLock(locked, async () => {
        const found = await envelope();
        if (found?.salt !== before?.salt || found?.rounds !== before?.rounds) return null;
        const secrets = open(found, found === null ? key : await ring.keyFor(found));
        const changed = more(
          changes.reduce((all, { name, scope, value }) => withSecret(all, scope, name, value ?? null), secrets),
        );
        // Read before anything is written: if it cannot be understood, nothing changes.
        const meta = await readMeta(metaFile);
        const text = printSecrets(changed);
        if (text !== printSecrets(secrets) || (found !== null && isOld))
          await replaceFileDurably(file, encryptSecrets(text, recipe, key));
        await writeMeta(metaFile, statusesAfter(changes, changed, meta));
        await removeTemporary();
        return secrets;
      });
      if (done !== null) return done;
    }
  }

  /**
   * Removes the temporary files of processes that were killed while writing. We hold the lock, so no one is writing.
   */
  async function removeTemporary(): Promise<void> {
    for (const name of await readdir(dataDir).catch(() => []))
      if (/^secrets\.(?:enc|meta\.yaml)\.\d+\.\d+\.tmp$/.test(name)) await unlink(join(dataDir, name)).catch(() => {});
  }

  async function change(changes: readonly SecretChange[]): Promise<void> {
    for (const one of changes) check(one);
    await update(changes);
  }

  return {
    file,
    metaFile,
    async read() {
      const found = await envelope();
      if (found === null) return NO_SECRETS;
      return open(found, await (await keyring()).keyFor(found));
    },
    async list() {
      const known = await readMeta(metaFile);
      const found = await envelope();
      if (found === null) return inOrder(known.filter(({ status }) => status === 'placeholder'));
      if ((await findKey(vault)) === null) return inOrder(known);
      return statusesOf(open(found, await (await keyring()).keyFor(found)), known);
    },
    change,
    set: (name, scope, value) => change([{ name, scope, value }]),
    async prepare(name, scope) {
      check({ name, scope, value: null });
      // Needs no key, because no value is touched.
      await withLock(locked, async () => {
        const known = await readMeta(metaFile);
        if (known.some((one) => one.name === name && one.scope === scope)) return;
        await writeMeta(metaFile, inOrder([...known, waitingFor(name, scope)]));
      });
    },
    async remove(name, scope) {
      const removal = { name, scope, value: undefined };
      check(removal);
      const isSame = (one: SecretStatus) => one.name === name && one.scope === scope;
      const isPlaceholder = (await readMeta(metaFile)).some((one) => isSame(one) && one.status === 'placeholder');
      if ((await envelope()) !== null) return secretsOf(await update([removal]), scope).has(name) || isPlaceholder;
      if (isPlaceholder)
        await withLock(locked, async () =>
          writeMeta(
            metaFile,
            (await readMeta(metaFile)).filter((one) => !isSame(one)),
          ),
        );
      return isPlaceholder;
    },
    async setLogin(name, login) {
      if (login === null && (await envelope()) === null) return;
      await update([], undefined, (secrets) => withLogin(secrets, name, login));
    },
    async rotate(passphrase) {
      const next = createKeyring(checked(passphrase, 'the new one'));
      if ((await envelope()) === null) return false;
      await update([], next);
      return true;
    },
  };
}

function check({ name, scope, value }: SecretChange): void {
  const problem =
    nameProblem(name) ??
    (scope === null || isNamespace(scope) ? null : 'A namespace may contain only letters, digits, "_", "." and "-"') ??
    (typeof value === 'string' ? valueProblem(value)?.replace(/^/, 'The value ') : null) ??
    null;
  if (problem !== null) throw new GatewayError('usage', `${problem}.`);
}

function waitingFor(name: string, scope: SecretScope): SecretStatus {
  return { name, scope, status: 'placeholder', updated: new Date().toISOString() };
}

function statusesAfter(
  changes: readonly SecretChange[],
  secrets: Secrets,
  known: readonly SecretStatus[],
): readonly SecretStatus[] {
  const changeOf = (scope: SecretScope, name: string) =>
    changes.find((one) => one.name === name && one.scope === scope);
  const kept = known.filter(({ name, scope }) => changeOf(scope, name) === undefined);
  const waiting = changes
    .filter(({ value, name, scope }) => value === null && !secretsOf(secrets, scope).has(name))
    .map(({ name, scope }) => waitingFor(name, scope));
  return statusesOf(secrets, [...kept, ...waiting], (scope, name) => changeOf(scope, name) !== undefined);
}
