/** The key of the secrets for somebody who has none yet: made in the user's own folder, and named in the configuration. */
import type { Config } from '../config/config.ts';
import { editConfig } from '../config/edit-servers.ts';
import { findConfig } from '../config/find.ts';
import type { VaultConfig } from '../config/secrets-key.ts';
import { findKey, keyMissing, makeKeyFile, userKeyFile } from '../store/secret-key.ts';
import type { CommandIo } from './command-io.ts';
import { loadOptions, type Options } from './options.ts';
import { note } from './terminal.ts';

/** The settings with which secrets can be kept. A running gateway sees the key before anything is encrypted with it. */
export async function withKey({ vault }: Config, options: Options, io: CommandIo): Promise<VaultConfig> {
  if ((await findKey(vault)) !== null) return vault;
  const file = userKeyFile(io.env);
  const edits = [{ kind: 'set', path: ['secrets', 'key_file'], value: inHome(file, io) } as const];
  let isNew = false;
  const config = await editConfig(
    findConfig(loadOptions(options, io)),
    {
      cwd: io.cwd(),
      env: io.env,
      async beforeWrite(next) {
        // A file in the form of another program has no place for it.
        if (next.vault.keyFile !== file) throw keyMissing();
        isNew = await makeKeyFile(file);
      },
    },
    () => edits,
  );
  note(keyText(file, isNew), io);
  return config.vault;
}

export function keyText(file: string, isNew: boolean): string {
  return `The secrets are encrypted with ${isNew ? 'a new key' : 'your key'}: ${file}. Keep a copy elsewhere: without it they are lost.`;
}

/** The path as it is right for other people who use this configuration. */
export function inHome(file: string, { env }: CommandIo): string {
  return env.HOME && file.startsWith(`${env.HOME}/`) ? `\${HOME}${file.slice(env.HOME.length)}` : file;
}
