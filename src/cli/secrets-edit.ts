/** `toolgate secrets edit`: all secrets in an editor, in a private file that is gone afterwards. */
import { type ChildProcess, spawn } from 'node:child_process';
import { accessSync, constants, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  changesIn,
  GatewayError,
  type SecretChange,
  type SecretStatus,
  type SecretStore,
  secretsText,
} from '../internal.ts';
import { confirm } from './ask.ts';

/** The changes that were made. `isShown` says which secrets are to be seen. */
export async function edit(
  store: SecretStore,
  isShown: (status: SecretStatus) => boolean,
): Promise<readonly SecretChange[]> {
  const secrets = await store.read();
  const statuses = (await store.list()).filter(isShown);
  const text = secretsText(secrets, statuses);
  const changes = await withPrivateFile(text, async (file, run) => {
    for (;;) {
      await run(file);
      const edited = readFileSync(file, 'utf8');
      if (edited === text) return [];
      try {
        return await changesIn(edited, secrets, statuses);
      } catch (error) {
        if (!(error instanceof GatewayError)) throw error;
        if (!(await confirm(`${error.message} Edit again?`))) throw new GatewayError('usage', 'Nothing was changed.');
      }
    }
  });
  // Only what was changed here: others may have set theirs in the meantime.
  if (changes.length > 0) await store.change(changes);
  return changes;
}

type Run = (file: string) => Promise<void>;

/** In memory where there is such a place; nobody else can look into its folder, where editors put their own files too. */
async function withPrivateFile<T>(text: string, work: (file: string, run: Run) => Promise<T>): Promise<T> {
  const place = isWritable('/dev/shm') ? '/dev/shm' : tmpdir();
  removeLeft(place);
  const folder = mkdtempSync(join(place, `${MARK}${process.pid}-`));
  let editor: ChildProcess | null = null;
  const remove = () => rmSync(folder, { recursive: true, force: true });
  const end = (signal: NodeJS.Signals) => {
    editor?.kill(signal);
    remove();
    process.exit(signal === 'SIGHUP' ? 129 : 143);
  };
  // What is typed to the editor is meant for the editor; when it ends, so do we.
  const ignore = () => {};
  process.on('SIGINT', ignore).on('SIGTERM', end).on('SIGHUP', end).on('exit', remove);
  try {
    const file = join(folder, 'secrets.yaml');
    writeFileSync(file, text, { mode: 0o600, flag: 'wx' });
    return await work(file, (path) =>
      runEditor(path, (child) => {
        editor = child;
      }),
    );
  } finally {
    remove();
    process.off('SIGINT', ignore).off('SIGTERM', end).off('SIGHUP', end).off('exit', remove);
  }
}

const MARK = 'toolgate-secrets-';

/** What was left by one that was killed. */
function removeLeft(place: string): void {
  for (const name of readdirSync(place)) {
    const pid = name.startsWith(MARK) ? Number.parseInt(name.slice(MARK.length), 10) : Number.NaN;
    if (Number.isNaN(pid) || isRunning(pid)) continue;
    try {
      rmSync(join(place, name), { recursive: true, force: true });
    } catch {
      // Somebody else's.
    }
  }
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
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

/** Without a shell: the name of a file is no code. */
function runEditor(file: string, started: (child: ChildProcess) => void): Promise<void> {
  const line = process.env.VISUAL || process.env.EDITOR || 'vi';
  const [command = 'vi', ...args] = [...line.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map(
    ([, double, single, plain]) => double ?? single ?? plain ?? '',
  );
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith('SECRETS_KEY'));
  return new Promise((resolve, reject) => {
    const child = spawn(command, [...args, file], { stdio: 'inherit', env: Object.fromEntries(inherited) });
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
