/** `toolgate secrets edit`: opens all secrets in an editor, in a private file that is removed afterwards. */
import { type ChildProcess, spawn } from 'node:child_process';
import { accessSync, constants, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { GatewayError } from '../base/errors.ts';
import { isAlive } from '../base/lock.ts';
import type { SecretStatus } from '../secrets/payload.ts';
import type { SecretChange, SecretStore } from '../store/secrets.ts';
import { changesIn, secretsText } from '../store/secrets-text.ts';
import type { CommandIo } from './command-io.ts';
import { confirm } from './prompts.ts';

/** Returns the changes that were made. `isShown` selects the secrets to edit. */
export async function editSecrets(
  store: SecretStore,
  isShown: (status: SecretStatus) => boolean,
  io: CommandIo,
): Promise<readonly SecretChange[]> {
  const secrets = await store.read();
  const statuses = (await store.list()).filter(isShown);
  const text = secretsText(secrets, statuses);
  const changes = await withPrivateFile(text, io, async (file, openEditor) => {
    for (;;) {
      await openEditor();
      const edited = readFileSync(file, 'utf8');
      if (edited === text) return [];
      try {
        return await changesIn(edited, secrets, statuses);
      } catch (error) {
        if (!(error instanceof GatewayError)) throw error;
        if (!(await confirm(`${error.message} Edit again?`, io)))
          throw new GatewayError('usage', 'Nothing was changed.');
      }
    }
  });
  // Writes only what was changed here, because other secrets may have been set in the meantime.
  if (changes.length > 0) await store.change(changes);
  return changes;
}

/**
 * The file is in memory if the system allows it. Its folder is private, because editors put their own files next to the
 * one they edit.
 */
async function withPrivateFile<T>(
  text: string,
  io: CommandIo,
  work: (file: string, openEditor: () => Promise<void>) => Promise<T>,
): Promise<T> {
  removeEdits();
  const parent = editFolder();
  const folder = mkdtempSync(join(parent, `${PREFIX}${process.pid}-`));
  let editor: ChildProcess | null = null;
  const remove = () => rmSync(folder, { recursive: true, force: true });
  const end = (signal: NodeJS.Signals) => {
    editor?.kill(signal);
    remove();
    io.exit(signal === 'SIGHUP' ? 129 : 143);
  };
  // Ctrl-C in the editor is meant for the editor.
  const ignore = () => {};
  io.on('SIGINT', ignore);
  io.on('SIGTERM', end);
  io.on('SIGHUP', end);
  io.on('exit', remove);
  try {
    const file = join(folder, 'secrets.yaml');
    writeFileSync(file, text, { mode: 0o600, flag: 'wx' });
    return await work(file, () =>
      runEditor(file, io, (child) => {
        editor = child;
      }),
    );
  } finally {
    remove();
    io.off('SIGINT', ignore);
    io.off('SIGTERM', end);
    io.off('SIGHUP', end);
    io.off('exit', remove);
  }
}

const PREFIX = 'toolgate-secrets-';

function editFolder(): string {
  return isWritable('/dev/shm') ? '/dev/shm' : tmpdir();
}

/** Removes what commands that were killed have left behind: secrets as text. */
export function removeEdits(parent = editFolder()): void {
  for (const name of readdirSync(parent)) {
    const pid = name.startsWith(PREFIX) ? Number.parseInt(name.slice(PREFIX.length), 10) : Number.NaN;
    if (Number.isNaN(pid) || isAlive(pid)) continue;
    try {
      rmSync(join(parent, name), { recursive: true, force: true });
    } catch {
      // It belongs to another user.
    }
  }
}

function isWritable(folder: string): boolean {
  try {
    accessSync(folder, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

/** Runs without a shell, so that nothing in a file name is executed. */
function runEditor(file: string, io: CommandIo, started: (child: ChildProcess) => void): Promise<void> {
  const { env } = io;
  const line = env.VISUAL || env.EDITOR || 'vi';
  const [command = 'vi', ...args] = [...line.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map(
    ([, double, single, plain]) => double ?? single ?? plain ?? '',
  );
  const environment = Object.entries(env).filter(([name]) => !name.startsWith('SECRETS_KEY'));
  return new Promise((resolve, reject) => {
    const child = spawn(command, [...args, file], {
      stdio: 'inherit',
      cwd: io.cwd(),
      env: Object.fromEntries(environment),
    });
    started(child);
    child.once('error', (error) =>
      reject(
        new GatewayError(
          'usage',
          `The editor ${command} could not be started: ${error.message}. Set EDITOR to another.`,
        ),
      ),
    );
    child.once('exit', (code, signal) => {
      if (code === 0) resolve();
      else reject(new GatewayError('usage', `The editor ended with ${signal ?? `code ${code}`}. Nothing was changed.`));
    });
  });
}
