/** The folder `repos/`: clones of repositories and contents of packages to read, one per address, within a quota. */
import { randomBytes } from 'node:crypto';
import { lstat, mkdir, readdir, readFile, rename, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import { basename, dirname, isAbsolute, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { GatewayError } from '../../base/errors.ts';
import { sha256 } from '../../base/hash.ts';
import { type Lock, tryLock } from '../../base/lock.ts';
import { isPrivateAddress, publicAddresses } from '../../base/private-address.ts';
import type { RepositoriesConfig } from '../../config/repositories.ts';
import type { ArchivedFile } from './archives.ts';
import { requireGit, runGit } from './git.ts';
import { downloadPackage, isPackage, type PackageAddress, packageAddress, readPackage } from './packages.ts';

/** What the functions of the builder and the installer need from their caller. */
export interface Work {
  readonly dataDir: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly signal: AbortSignal | null;
  /** Says what is being done, for somebody who waits. */
  progress(message: string): void;
}

/** A repository that has been cloned, or a package that has been downloaded. */
export interface Repository {
  readonly url: string;
  /** Holds the bare repository, or the contents of the package. */
  readonly folder: string;
  /** The version, for a package. */
  readonly commit: string;
}

/** A file of a repository. */
export interface RepositoryFile {
  readonly path: string;
  readonly size: number;
  /** How git names its contents; where they begin, for a package. */
  readonly id: string;
}

const MAX_URL = 2_000;
const MAX_LISTING = 32 * 1024 * 1024;
/** Milliseconds between two looks at how large a clone has become. */
const SIZE_PAUSE = 200;
const READ_TIMEOUT = 60_000;

/** Clones the repository or downloads the package, in place of what was fetched from the same address before. */
export async function fetchRepository(url: string, config: RepositoriesConfig, work: Work): Promise<Repository> {
  const fetchInto = isPackage(url)
    ? packageFetch(packageAddress(url), url, config, work)
    : cloneFetch(await checkedAddress(url, config, work), url, config, work);
  const root = join(work.dataDir, 'repos');
  await mkdir(root, { recursive: true });
  const folder = folderOf(url, work.dataDir);
  const started = Date.now();
  const lock = await lockClone(folder, config, work);
  try {
    // Somebody else cloned it while this call waited for the lock.
    const finished = await stat(join(folder, 'origin.json')).catch(() => null);
    if (finished !== null && finished.mtimeMs > started) return await openRepository(url, work.dataDir);
    const draft = join(root, `.${sha256(url).slice(0, 16)}.${randomBytes(6).toString('hex')}.new`);
    try {
      await mkdir(draft);
      const commit = await fetchInto(draft);
      await writeFile(join(draft, 'origin.json'), JSON.stringify({ url, commit }));
      await removeWhole(folder);
      await rename(draft, folder);
      await keepQuota(root, folder, config);
      return { url, folder, commit };
    } finally {
      await rm(draft, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 }).catch(() => {});
    }
  } finally {
    await lock.release();
  }
}

/** Fills an empty folder. Resolves to the commit, or to the version of a package. */
type FetchInto = (draft: string) => Promise<string>;

function packageFetch(address: PackageAddress, url: string, config: RepositoriesConfig, work: Work): FetchInto {
  return (draft) => {
    work.progress(`downloading ${url}`);
    return downloadPackage(address, url, draft, { config, env: work.env, signal: work.signal });
  };
}

interface CheckedAddress {
  readonly address: string;
  readonly settings: readonly string[];
}

function cloneFetch(checked: CheckedAddress, url: string, config: RepositoriesConfig, work: Work): FetchInto {
  return async (draft) => {
    work.progress(`cloning ${url}`);
    await cloneInto(draft, checked, url, config, work);
    return headOf(draft, url, work);
  };
}

async function cloneInto(
  draft: string,
  { address, settings }: CheckedAddress,
  url: string,
  config: RepositoriesConfig,
  work: Work,
): Promise<void> {
  const tooLarge = new AbortController();
  const watch = setInterval(() => {
    void sizeOf(draft).then((size) => {
      if (size > config.size) tooLarge.abort();
    });
  }, SIZE_PAUSE);
  const signal = work.signal === null ? tooLarge.signal : AbortSignal.any([tooLarge.signal, work.signal]);
  const options = ['--bare', '--depth=1', '--single-branch', '--no-tags', '--no-local', '--template=', '--progress'];
  try {
    const result = await runGit({
      args: [...settings.flatMap((one) => ['-c', one]), 'clone', ...options, '--', address, join(draft, 'git')],
      cwd: draft,
      env: work.env,
      timeout: config.timeout,
      maxBytes: 1024 * 1024,
      signal,
      printed: (text) => {
        const percent = /Receiving objects:\s+(\d+)%/.exec(text)?.[1];
        if (percent !== undefined) work.progress(`cloning ${url}: ${percent} %`);
      },
    });
    if (tooLarge.signal.aborted || (await sizeOf(draft)) > config.size)
      throw new GatewayError(
        'usage',
        `${url} could not be cloned: it is larger than ${Math.round(config.size / 1024 / 1024)} MiB. Raise repositories.size.`,
      );
    requireGit(result, `${url} could not be cloned`, config);
  } finally {
    clearInterval(watch);
  }
}

/** An earlier clone. Throws if there is none: only what was analyzed can be read. */
export async function openRepository(url: string, dataDir: string): Promise<Repository> {
  const folder = folderOf(url, dataDir);
  const origin = await readFile(join(folder, 'origin.json'), 'utf8').catch(() => null);
  if (origin === null) throw new GatewayError('usage', `${shown(url)} has not been analyzed. Call analyze_repo first.`);
  const now = new Date();
  // The clone that was not used for the longest time is the first to be removed.
  await utimes(folder, now, now).catch(() => {});
  return { url, folder, commit: (JSON.parse(origin) as { commit: string }).commit };
}

/** Regular files only: no links, no submodules. */
export async function listFiles({ folder, url, commit }: Repository, work: Work): Promise<RepositoryFile[]> {
  if (isPackage(url)) {
    const files = JSON.parse(await readFile(join(folder, 'files.json'), 'utf8')) as ArchivedFile[];
    return files.map(({ path, size, offset }) => ({ path, size, id: String(offset) }));
  }
  const listing = await runGit({
    args: ['--git-dir', join(folder, 'git'), 'ls-tree', '-r', '-z', '-l', '--full-tree', commit],
    cwd: folder,
    env: work.env,
    timeout: READ_TIMEOUT,
    maxBytes: MAX_LISTING,
    signal: work.signal,
  });
  const lines = requireGit(listing, `The files of ${url} could not be listed`, { timeout: READ_TIMEOUT })
    .toString('utf8')
    .split('\0');
  return lines.flatMap((line) => {
    const [, id, size, path] = /^100\d{3} blob ([0-9a-f]+) +(\d+)\t(.+)$/s.exec(line) ?? [];
    return path === undefined ? [] : [{ path, size: Number(size), id: id! }];
  });
}

/** The contents of these files, in their order. */
export async function readFiles(
  { folder, url }: Repository,
  files: readonly RepositoryFile[],
  work: Work,
): Promise<Buffer[]> {
  if (isPackage(url)) {
    return readPackage(
      folder,
      files.map(({ path, size, id }) => ({ path, size, offset: Number(id) })),
    );
  }
  const total = files.reduce((sum, { size }) => sum + size, 0);
  const result = await runGit({
    args: ['--git-dir', join(folder, 'git'), 'cat-file', '--batch'],
    cwd: folder,
    env: work.env,
    input: files.map(({ id }) => `${id}\n`).join(''),
    timeout: READ_TIMEOUT,
    maxBytes: total + files.length * 200,
    signal: work.signal,
  });
  const bytes = requireGit(result, `The files of ${url} could not be read`, { timeout: READ_TIMEOUT });
  let at = 0;
  return files.map(({ size }) => {
    const start = bytes.indexOf(10, at) + 1;
    at = start + size + 1;
    return bytes.subarray(start, start + size);
  });
}

async function headOf(draft: string, url: string, work: Work): Promise<string> {
  const result = await runGit({
    args: ['--git-dir', join(draft, 'git'), 'rev-parse', '--verify', '--end-of-options', 'HEAD^{commit}'],
    cwd: draft,
    env: work.env,
    timeout: READ_TIMEOUT,
    maxBytes: 1024,
    signal: work.signal,
  });
  if (result.code === 128) throw new GatewayError('usage', `${url} could not be read: the repository is empty.`);
  return requireGit(result, `${url} could not be read`, { timeout: READ_TIMEOUT }).toString().trim();
}

/** What git is given for an address that may be cloned, and the settings for it. */
async function checkedAddress(url: string, { from }: RepositoriesConfig, { env }: Work): Promise<CheckedAddress> {
  const example = 'Give an address such as "https://github.com/owner/name" or "npm:@scope/name"';
  const refuse = (why: string): never => {
    throw new GatewayError('usage', `${JSON.stringify(shown(url))} cannot be cloned: ${why}.`);
  };
  // biome-ignore lint/suspicious/noControlCharactersInRegex: those are what is refused.
  if (url.length > MAX_URL || /[\u0000-\u0020\u007f]/.test(url))
    return refuse(`it is too long or contains spaces or control characters. ${example}`);
  if (isAbsolute(url) || url.startsWith('file:')) {
    if (from !== 'local') return refuse(`it is a folder of this machine, and repositories.from is "${from}"`);
    const path = url.startsWith('file:') ? fileURLToPath(url) : url;
    return { address: path, settings: ['protocol.file.allow=always'] };
  }
  const parsed = URL.canParse(url) ? new URL(url) : refuse(`it is not an address. ${example}`);
  if (parsed.protocol !== 'https:') return refuse(`only https is allowed. ${example}`);
  if (parsed.username !== '' || parsed.password !== '')
    return refuse('it contains a login. Only public repositories can be cloned');
  if (parsed.search !== '' || parsed.hash !== '') return refuse(`it has a "?" or "#". ${example}`);
  const settings = ['protocol.https.allow=always'];
  if (from !== 'public') return { address: parsed.href, settings };
  const remedy = 'Set repositories.from = "private" if repositories of your own network may be cloned.';
  const host = parsed.hostname.replace(/^\[(.*)\]$/, '$1');
  if (isProxied(env) && isIP(host) === 0) return { address: parsed.href, settings };
  const addresses = await publicAddresses(host, remedy);
  // git asks the name again. Pinned, it gets the same answer.
  const port = parsed.port || '443';
  if (isIP(host) === 0)
    settings.push(
      `http.curloptResolve=${host}:${port}:${addresses.map((one) => (isIP(one) === 6 ? `[${one}]` : one)).join(',')}`,
    );
  else if (isPrivateAddress(host)) return refuse('it leads to a private address');
  return { address: parsed.href, settings };
}

/** The proxy resolves names, and this machine may not be able to. */
function isProxied(env: Work['env']): boolean {
  return ['https_proxy', 'HTTPS_PROXY', 'all_proxy', 'ALL_PROXY'].some((name) => Boolean(env[name]));
}

/** Without a login, which may be in an address that is refused. */
function shown(url: string): string {
  return url.slice(0, 200).replace(/(:\/\/)[^/@\s]+@/, '$1***@');
}

function folderOf(url: string, dataDir: string): string {
  return join(dataDir, 'repos', sha256(url).slice(0, 32));
}

/** Waits while another call clones the same address. */
async function lockClone(folder: string, { timeout }: RepositoriesConfig, { signal }: Work): Promise<Lock> {
  const until = Date.now() + timeout;
  for (;;) {
    const lock = await tryLock(`${folder}.lock`);
    if (lock !== null) return lock;
    if (Date.now() > until)
      throw new GatewayError('source_busy', 'The same repository is being cloned. Try again later.');
    await sleep(50, undefined, signal === null ? {} : { signal });
  }
}

/** Removes clones that were not used for long, then the oldest ones until the rest fits. */
async function keepQuota(root: string, kept: string, { quota, keep }: RepositoriesConfig): Promise<void> {
  const found = [];
  for (const name of await readdir(root)) {
    const path = join(root, name);
    const stats = await lstat(path).catch(() => null);
    if (stats === null || path === kept || !stats.isDirectory()) continue;
    found.push({ path, used: stats.mtimeMs, isDraft: name.startsWith('.') });
  }
  let room = quota - (await sizeOf(kept));
  for (const { path, used, isDraft } of found.toSorted((a, b) => b.used - a.used)) {
    // A draft belongs to a clone that is under way, unless it is old.
    const isOld = Date.now() - used > (isDraft ? 3_600_000 : keep);
    room -= await sizeOf(path);
    if (isOld || (room < 0 && !isDraft)) await removeWhole(path).catch(() => {});
  }
}

/** Renamed first: a process that is killed here leaves no half of a clone in its place, only a draft that is removed later. */
async function removeWhole(path: string): Promise<void> {
  const aside = join(dirname(path), `.${basename(path).replace(/^\./, '')}.${randomBytes(6).toString('hex')}.old`);
  const isThere = await rename(path, aside).then(
    () => true,
    () => false,
  );
  await rm(isThere ? aside : path, { recursive: true, force: true });
}

async function sizeOf(folder: string): Promise<number> {
  let size = 0;
  for (const entry of await readdir(folder, { withFileTypes: true, recursive: true }).catch(() => [])) {
    if (!entry.isFile()) continue;
    size += await stat(join(entry.parentPath, entry.name)).then(
      (stats) => stats.size,
      () => 0,
    );
  }
  return size;
}
