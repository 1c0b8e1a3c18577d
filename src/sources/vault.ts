/**
 * The secrets that servers are given, as they are now. A server that has places for some gets them when it is started, and
 * not before; nothing keeps the filled launch. The first look at the store is awaited by those servers alone.
 */
import { createHmac, randomBytes } from 'node:crypto';
import { GatewayError, messageOf } from '../base/errors.ts';
import type { Launch } from '../config/launch.ts';
import { fillLaunch, secretsIn } from '../config/launch-secrets.ts';
import type { VaultConfig } from '../config/secrets-key.ts';
import type { ServerConfig } from '../config/servers.ts';
import { type Clean, createClean } from '../secrets/clean.ts';
import { NO_SECRETS, type Secrets, secretsFor, valuesOf } from '../secrets/payload.ts';
import { findKey } from '../store/secret-key.ts';
import { openSecretStore } from '../store/secrets.ts';

/** A server cannot be started before somebody sets a secret. */
export class SecretMissing extends GatewayError {
  constructor(names: readonly string[], problem: string | null) {
    const waits = names.length === 1 ? 'waits for the secret' : 'waits for the secrets';
    const help = problem?.replace(/\.$/, '') ?? names.map((name) => `toolgate secrets set ${name}`).join('; ');
    super('source_unavailable', `${waits} ${names.join(', ')}: ${help}`);
  }
}

export interface FilledLaunch {
  readonly launch: Launch;
  /** Takes what it was given out of what it says; null where there is nothing to take out. */
  readonly clean: Clean | null;
}

/** The secrets that servers are given, as a gateway holds them. */
export interface Vault {
  /**
   * Rejects with SecretMissing where there is not all that the server needs.
   * @internal
   */
  fill(config: ServerConfig): Promise<FilledLaunch>;
  /**
   * Changes with the values that the server is given and how they are kept back, and tells nothing of them; null while they are not known yet.
   * @internal
   */
  stampOf(config: ServerConfig): string | null;
  /** Reads the store again. Resolves to what is wrong with it, or null; if something is, the secrets stay as they are. */
  reload(): Promise<string | null>;
  /** What was wrong with the store the last time. */
  readonly problem: string | null;
}

export interface VaultOptions {
  readonly dataDir: string;
  readonly vault: () => VaultConfig;
  /** From here on these must not be told. */
  learn(values: readonly string[]): void;
}

/** The vault as the gateway has it: the gateway decides when servers are given other secrets. */
export interface OpenVault extends Omit<Vault, 'reload'> {
  /** Resolves when the store has been read for the first time. */
  readonly opened: Promise<unknown>;
  /** Reads the store again, by these settings or those in force. */
  reload(settings?: VaultConfig): Promise<string | null>;
}

/** What a server without secrets is filled with. */
const NOTHING: readonly string[] = [];

export function createVault({ dataDir, vault, learn }: VaultOptions): OpenVault {
  let secrets: Secrets = NO_SECRETS;
  let problem: string | null = null;
  let isKnown = false;
  // Of this process alone: what is stamped with it cannot be guessed from a stamp.
  const stamping = randomBytes(32);
  let store = openSecretStore(dataDir, vault());
  let openedWith = vault();

  async function look(settings: VaultConfig): Promise<string | null> {
    // One store as long as it can be: it remembers its key.
    if (!isSame(settings, openedWith)) store = openSecretStore(dataDir, settings);
    openedWith = settings;
    try {
      const key = await findKey(settings).catch(() => null);
      if (key !== null && !key.isInsecure) learn([key.passphrase]);
      const found = await store.read();
      learn(valuesOf(found));
      secrets = found;
      problem = null;
    } catch (error) {
      problem = messageOf(error);
    }
    isKnown = true;
    return problem;
  }

  // One after the other, so that the last look is the one that counts.
  const opened = look(vault());
  let last: Promise<string | null> = opened;

  function namesOf({ launch, namespace }: ServerConfig): readonly string[] {
    if (launch.kind === 'folder') return [...new Set([...secretsIn(launch), ...secretsFor(secrets, namespace).keys()])];
    const names = secretsIn(launch);
    return names.length === 0 ? NOTHING : names;
  }

  return {
    async fill(config) {
      const { launch, namespace } = config;
      // Folders are given all that there are for them, asked for or not.
      if (launch.kind !== 'folder' && secretsIn(launch).length === 0) return { launch, clean: null };
      if (!isKnown) await last;
      const given = secretsFor(secrets, namespace);
      const missing = secretsIn(launch).filter((name) => !given.has(name));
      if (missing.length > 0) throw new SecretMissing(missing, problem);
      const filled = fillLaunch(launch, (name) => given.get(name));
      const values = namesOf(config).flatMap((name) => given.get(name) ?? []);
      return {
        launch: filled.kind === 'folder' ? withSecrets(filled, given) : filled,
        clean: vault().redactResults ? createClean(values) : null,
      };
    },
    stampOf(config) {
      const names = namesOf(config);
      if (names.length === 0 && config.launch.kind !== 'folder') return '';
      if (!isKnown) return null;
      const given = secretsFor(secrets, config.namespace);
      const values = names.map((name) => [name, given.get(name) ?? null]);
      return createHmac('sha256', stamping)
        .update(JSON.stringify([vault().redactResults, values]))
        .digest('hex');
    },
    opened,
    reload(settings = vault()) {
      last = last.then(() => look(settings));
      return last;
    },
    get problem() {
      return problem;
    },
  };
}

/** What the configuration says goes before secrets, and those before what the folder says itself. */
function withSecrets(launch: Extract<Launch, { kind: 'folder' }>, given: ReadonlyMap<string, string>): Launch {
  return { ...launch, defaults: {}, env: { ...launch.defaults, ...Object.fromEntries(given), ...launch.env } };
}

function isSame(a: VaultConfig, b: VaultConfig): boolean {
  return a.key() === b.key() && a.keyFile === b.keyFile && a.allowInsecure === b.allowInsecure;
}
