/**
 * What `npx` said that it would start, on disk for later starts. A record is valid while every file that the answer
 * depends on is as it was: the program, the folder it was installed in, npm itself, its settings, and the places where
 * `npx` would look first.
 *
 * The folder is in the home of the user, not in that of a project: a record decides which program is started, and a
 * project may come from somebody else. A record that others may write is not used.
 */
import { readFileSync, realpathSync, statSync } from 'node:fs';
import { mkdir, readdir, stat, unlink } from 'node:fs/promises';
import { dirname, isAbsolute, join } from 'node:path';
import { replaceFile } from '../base/files.ts';
import { isObject, toObject } from '../base/objects.ts';
import { looksSecret, urlSecrets } from '../secrets/secret-values.ts';
import type { PackageCommand } from './package-command.ts';

export interface PackageProgram {
  /** Its path. */
  readonly file: string;
  /** The variables that it gets from the runner. */
  readonly env: Readonly<Record<string, string>>;
  /** A file that has to be locked while it runs, and the program that does it. */
  readonly lock: { readonly program: string; readonly file: string } | null;
}

/** Files by path, each as it was when the answer was given. */
export type Witnesses = Readonly<Record<string, string>>;

export interface ProgramRecords {
  /** Null if there is none that is valid. */
  read(key: string): PackageProgram | null;
  /** Fails silently: then the runner is asked again. */
  write(key: string, program: PackageProgram, witnesses: Witnesses): Promise<void>;
  /** The file that marks a running install. */
  markOf(key: string): string;
}

const MOST = 200;
const LIFETIME = 24 * 60 * 60_000;

/** Null if the user has no home. */
export function programRecords(env: Readonly<Record<string, string | undefined>>): ProgramRecords | null {
  const base = env.XDG_CACHE_HOME || (env.HOME ? join(env.HOME, '.cache') : '');
  if (!isAbsolute(base)) return null;
  const folder = join(base, 'toolgate', 'packages');
  const fileOf = (key: string) => join(folder, `${key}.json`);
  return {
    read(key) {
      try {
        const file = fileOf(key);
        if (!isOurs(folder) || !isOurs(file) || Date.now() - statSync(file).mtimeMs > LIFETIME) return null;
        const { program, witnesses } = toObject(JSON.parse(readFileSync(file, 'utf8')));
        const { file: path, env: given } = toObject(program);
        if (typeof path !== 'string' || !isObject(given) || !isObject(witnesses)) return null;
        const isValid = Object.entries(witnesses).every(([one, seen]) => stampOf(one) === seen);
        return isValid ? { file: path, env: given as Record<string, string>, lock: null } : null;
      } catch {
        return null;
      }
    },
    async write(key, program, witnesses) {
      // Nothing secret is written, and a part of the environment is not enough.
      const isSecret = ([name, value]: [string, string]) => looksSecret(name) || urlSecrets(value).length > 0;
      if (Object.entries(program.env).some(isSecret)) return;
      try {
        await mkdir(folder, { recursive: true, mode: 0o700 });
        await replaceFile(fileOf(key), JSON.stringify({ program, witnesses }));
        await removeOldest(folder);
      } catch {
        // A full or read-only disk.
      }
    },
    markOf: (key) => join(folder, `${key}.installing`),
  };
}

/** Whether nobody else can write it. */
function isOurs(path: string): boolean {
  const { uid, mode } = statSync(path);
  return uid === process.getuid?.() && (mode & 0o022) === 0;
}

async function removeOldest(folder: string): Promise<void> {
  const names = (await readdir(folder)).filter((name) => name.endsWith('.json'));
  if (names.length <= MOST) return;
  const aged = await Promise.all(
    names.map(async (name) => ({ path: join(folder, name), age: (await stat(join(folder, name))).mtimeMs })),
  );
  const oldest = aged.sort((a, b) => a.age - b.age).slice(0, names.length - MOST);
  await Promise.all(oldest.map(({ path }) => unlink(path)));
}

/** The files that decide what `npx` starts, as they are now. */
export function witnessed(
  { runner, cwd }: { readonly runner: string; readonly cwd: string },
  { packages }: PackageCommand,
  { file }: PackageProgram,
  env: Readonly<Record<string, string>>,
): Witnesses {
  const names = packages.map((spec) => spec.replace(/(?!^)@.*$/, ''));
  const modules = (folder: string) => names.map((name) => join(folder, name, 'package.json'));
  const paths = [
    // npm, its settings, and packages that are installed for all projects.
    join(dirname(realpathSync(runner)), '..', 'package.json'),
    ...[env.npm_config_userconfig, env.npm_config_globalconfig].filter((one) => one !== undefined),
    ...modules(join(env.npm_config_global_prefix ?? '/usr', 'lib', 'node_modules')),
    // The project around the working directory.
    ...upwards(cwd).flatMap((folder) => [
      join(folder, 'package.json'),
      join(folder, '.npmrc'),
      join(folder, 'node_modules', '.package-lock.json'),
      ...modules(join(folder, 'node_modules')),
    ]),
    // The program, and the folder that it was installed in. npm writes that file whenever it installs something there.
    file,
    realpathSync(file),
    join(dirname(file), '..', '.package-lock.json'),
    ...modules(join(dirname(file), '..')),
  ];
  return Object.fromEntries(paths.map((path) => [path, stampOf(path)]));
}

function upwards(folder: string): string[] {
  const above = dirname(folder);
  return above === folder ? [folder] : [folder, ...upwards(above)];
}

/** Changes with the file. */
function stampOf(path: string): string {
  try {
    const { ino, size, mtimeMs } = statSync(path);
    return `${ino} ${size} ${mtimeMs}`;
  } catch {
    return 'absent';
  }
}
