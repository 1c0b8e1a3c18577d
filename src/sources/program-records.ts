/**
 * What `npx` said that it would start, on disk for later starts. A record is valid while every file that the answer
 * depends on is as it was: the program, the folder it was installed in, npm itself, its settings, and the places where
 * `npx` would look first. It is true only if the registry still has the same packages for it, as far as `npx` would ask.
 *
 * The folder is in the home of the user, not in that of a project: a record decides which program is started, and a
 * project may come from somebody else. A record that others may write is not used.
 */
import { readFileSync, realpathSync, statSync, utimesSync } from 'node:fs';
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
type Witnesses = Readonly<Record<string, string>>;

export interface ProgramRecord {
  readonly program: PackageProgram;
  /** The version and checksum of each package, as one text. Some may be missing. */
  readonly contents: Readonly<Record<string, string>>;
  /** Whether the registry was asked within the last day. */
  readonly isRecent: boolean;
}

export interface ProgramRecords {
  /** Null if there is none that is valid. */
  read(key: string): ProgramRecord | null;
  /** Fails silently: then the runner is asked again. */
  write(key: string, subject: RecordSubject, program: PackageProgram): Promise<void>;
  /** The registry still has the same packages. */
  renew(key: string): void;
  /** The file that marks a running install. */
  markOf(key: string): string;
}

/** What was asked, and the environment that `npx` gave to the program. */
export interface RecordSubject {
  readonly command: PackageCommand;
  /** The path of `npx`. */
  readonly runner: string;
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
}

const MOST = 200;
const RECENT = 24 * 60 * 60_000;

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
        if (!isOurs(folder) || !isOurs(file)) return null;
        const { program, contents, witnesses } = toObject(JSON.parse(readFileSync(file, 'utf8')));
        const { file: path, env: given } = toObject(program);
        if (typeof path !== 'string' || !isObject(given) || !isObject(contents) || !isObject(witnesses)) return null;
        if (Object.entries(witnesses).some(([one, seen]) => stampOf(one) !== seen)) return null;
        return {
          program: { file: path, env: given as Record<string, string>, lock: null },
          contents: contents as Record<string, string>,
          isRecent: Date.now() - statSync(file).mtimeMs < RECENT,
        };
      } catch {
        return null;
      }
    },
    async write(key, subject, program) {
      // Nothing secret is written, and a part of the environment is not enough.
      const isSecret = ([name, value]: [string, string]) => looksSecret(name) || urlSecrets(value).length > 0;
      if (Object.entries(program.env).some(isSecret)) return;
      try {
        const witnesses = witnessed(subject, program);
        const contents = contentsIn(dirname(dirname(program.file)), subject.command.packages);
        await mkdir(folder, { recursive: true, mode: 0o700 });
        await replaceFile(fileOf(key), JSON.stringify({ program, contents, witnesses }));
        await removeOldest(folder);
      } catch {
        // A full or read-only disk.
      }
    },
    renew(key) {
      try {
        utimesSync(fileOf(key), new Date(), new Date());
      } catch {
        // It was removed, or the disk is read-only.
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

/**
 * The packages in a folder of modules, as far as npm wrote down there what they are. Not by the address that they came
 * from: a setting of npm leaves it out, and mirrors change it.
 */
function contentsIn(modules: string, packages: readonly string[]): Record<string, string> {
  const installed = toObject(toObject(readJson(join(modules, '.package-lock.json'))).packages);
  const found = packages.map((spec) => {
    const { version, integrity } = toObject(installed[`node_modules/${nameOf(spec)}`]);
    return [spec, typeof integrity === 'string' ? `${version} ${integrity}` : null];
  });
  return Object.fromEntries(found.filter(([, content]) => content !== null));
}

/** Null if it does not exist or is only half written. */
function readJson(path: string): unknown {
  try {
    return JSON.parse(readFileSync(path, 'utf8'));
  } catch {
    return null;
  }
}

function nameOf(spec: string): string {
  return spec.replace(/(?!^)@.*$/, '');
}

/** The files that decide what `npx` starts, as they are now. */
function witnessed({ command, runner, cwd, env }: RecordSubject, { file }: PackageProgram): Witnesses {
  const modules = (folder: string) => command.packages.map((spec) => join(folder, nameOf(spec), 'package.json'));
  const npm = join(dirname(realpathSync(runner)), '..');
  const prefix = env.npm_config_global_prefix ?? '/usr';
  const paths = [
    // npm, the Node that runs it, its settings, and packages that are installed for all projects.
    join(npm, 'package.json'),
    join(npm, 'npmrc'),
    ...[env.npm_node_execpath, env.npm_config_userconfig, env.npm_config_globalconfig].filter(
      (one) => one !== undefined,
    ),
    ...modules(join(prefix, 'lib', 'node_modules')),
    join(prefix, 'bin', command.target),
    // The project around the working directory.
    ...upwards(cwd).flatMap((folder) => [
      join(folder, 'package.json'),
      join(folder, '.npmrc'),
      join(folder, 'node_modules'),
      join(folder, 'node_modules', '.package-lock.json'),
      join(folder, 'node_modules', '.bin', command.target),
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
