/**
 * Packages of npm and PyPI as something to read: `npm:@scope/name@1.2.3` and `pypi:name@1.2.3`. The archive is downloaded from
 * the registry, compared with its checksum, and read. Nothing of it is installed or run: a source distribution of Python
 * would run its own code if pip fetched it, so the index is asked directly.
 */
import { createHash } from 'node:crypto';
import { open, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { GatewayError, messageOf } from '../../base/errors.ts';
import { toObject } from '../../base/objects.ts';
import { publicAddresses } from '../../base/private-address.ts';
import { percentDecoded } from '../../base/text.ts';
import type { RepositoriesConfig } from '../../config/repositories.ts';
import { runProgram } from '../../workers/run-program.ts';
import { type ArchivedFile, readArchive } from './archives.ts';

export interface PackageAddress {
  readonly registry: 'npm' | 'pypi';
  readonly name: string;
  /** Null for the latest. */
  readonly version: string | null;
}

interface PackageArchive {
  readonly url: string;
  readonly version: string;
  /** The algorithm and the digest in hex; null if the registry names none. */
  readonly checksum: readonly [string, string] | null;
}

export interface PackageWork {
  readonly config: RepositoriesConfig;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly signal: AbortSignal | null;
}

export const NPM_NAME = /^(?:@[a-z0-9-][a-z0-9._-]*\/)?[a-z0-9-][a-z0-9._-]*$/i;
export const PYPI_NAME = /^[a-z0-9](?:[a-z0-9._-]*[a-z0-9])?$/i;
export const VERSION = /^[0-9][A-Za-z0-9.+!_-]{0,100}$/;
const MAX_NAME = 214;
/** The list of all versions of a package. */
const MAX_LIST = 64 * 1024 * 1024;
const MAX_REDIRECTS = 5;

export function isPackage(url: string): boolean {
  return /^(?:npm|pypi):/.test(url);
}

/** Throws if it is none. */
export function packageAddress(text: string): PackageAddress {
  const [, registry, name = '', version = null] = /^(npm|pypi):(@?[^@=]*)(?:(?:@|==)(.*))?$/s.exec(text) ?? [];
  const isName = registry === 'npm' ? NPM_NAME : PYPI_NAME;
  if (
    registry === undefined ||
    name.length > MAX_NAME ||
    !isName.test(name) ||
    (version !== null && !VERSION.test(version))
  )
    throw new GatewayError(
      'usage',
      `${JSON.stringify(text.slice(0, 200))} is not a package. Write it as "npm:@scope/name@1.2.3" or "pypi:name@1.2.3"; without a version it is the latest.`,
    );
  return { registry: registry as 'npm' | 'pypi', name, version };
}

/** Downloads the package into an empty folder as `contents` and `files.json`. Resolves to its version. */
export async function downloadPackage(
  address: PackageAddress,
  shown: string,
  folder: string,
  work: PackageWork,
): Promise<string> {
  const { config } = work;
  const timeout = AbortSignal.timeout(config.timeout);
  const signal = work.signal === null ? timeout : AbortSignal.any([timeout, work.signal]);
  try {
    const source = await registryOf(address.registry, folder, { ...work, signal });
    const fetchFrom = fetcher(source, config, signal);
    const archive = await (address.registry === 'npm' ? findNpm : findPypi)(address, source, fetchFrom);
    const file = join(folder, /\.(?:whl|zip)$/.test(new URL(archive.url).pathname) ? 'archive.zip' : 'archive.tgz');
    await save(await fetchFrom(archive.url), file, archive, config);
    const files = await readArchive(file, join(folder, 'contents'), { size: config.size, signal });
    await rm(file);
    await writeFile(join(folder, 'files.json'), JSON.stringify(files));
    return archive.version;
  } catch (error) {
    throw new GatewayError('usage', `${shown} could not be read: ${reasonOf(error, timeout, work)}.`);
  }
}

function reasonOf(error: unknown, timeout: AbortSignal, { config, signal }: PackageWork): string {
  if (signal?.aborted) return 'it was cancelled';
  if (timeout.aborted) return `it took longer than ${Math.round(config.timeout / 1_000)} s. Raise repositories.timeout`;
  if (error instanceof GatewayError) return error.message.replace(/\.$/, '');
  return messageOf((error as Error).cause ?? error).replace(/\.$/, '');
}

/** The contents of these files of a package that was downloaded, in their order. */
export async function readPackage(folder: string, files: readonly ArchivedFile[]): Promise<Buffer[]> {
  const contents = await open(join(folder, 'contents'), 'r');
  try {
    const all: Buffer[] = [];
    for (const { size, offset } of files) {
      const bytes = Buffer.alloc(size);
      await contents.read(bytes, 0, size, offset);
      all.push(bytes);
    }
    return all;
  } finally {
    await contents.close();
  }
}

interface Registry {
  /** Ends with a slash. */
  readonly url: URL;
  readonly authorization: string | null;
}

/** That of this machine's npm and pip: as their variables say, or as they answer, which includes their own files. */
async function registryOf(kind: 'npm' | 'pypi', folder: string, work: PackageWork): Promise<Registry> {
  const { env } = work;
  const given =
    kind === 'npm'
      ? env.npm_config_registry || env.NPM_CONFIG_REGISTRY || (await asked('npm', ASK_NPM, folder, work))
      : env.PIP_INDEX_URL ||
        env.UV_DEFAULT_INDEX ||
        env.UV_INDEX_URL ||
        (await asked('python3', ASK_PIP, folder, work)) ||
        (await asked('python3', ASK_PIP_DEFAULT, folder, work));
  if (given === '')
    throw new GatewayError(
      'usage',
      kind === 'npm'
        ? 'npm does not say which registry it uses. Install npm, or set npm_config_registry'
        : 'pip does not say which index it uses. Install pip for python3, or set PIP_INDEX_URL',
    );
  const url = URL.canParse(given) ? new URL(given) : null;
  if (url === null || !/^https?:$/.test(url.protocol))
    throw new GatewayError('usage', `the address of the ${kind === 'npm' ? 'npm' : 'PyPI'} registry is not valid`);
  const login =
    url.username === '' ? null : [url.username, url.password].map((part) => percentDecoded(part) ?? part).join(':');
  url.username = '';
  url.password = '';
  if (!url.pathname.endsWith('/')) url.pathname += '/';
  return { url, authorization: login === null ? null : `Basic ${Buffer.from(login).toString('base64')}` };
}

const ASK_NPM = ['config', 'get', 'registry'];
const ASK_PIP = ['-m', 'pip', '--disable-pip-version-check', 'config', 'get', 'global.index-url'];
/** What pip uses if nobody chose anything. It has no command for that. */
const ASK_PIP_DEFAULT = ['-c', 'from pip._internal.models.index import PyPI; print(PyPI.simple_url)'];
const LONGEST_ANSWER = 30_000;

/** What a package manager says about itself; empty if it says nothing, or is not there. */
async function asked(
  command: string,
  args: readonly string[],
  cwd: string,
  { env, signal }: PackageWork,
): Promise<string> {
  const given = Object.fromEntries(Object.entries(env).flatMap(([name, value]) => (value ? [[name, value]] : [])));
  const { code, stdout } = await runProgram({ command, args, cwd, env: given, timeout: LONGEST_ANSWER, signal });
  return code === 0 ? stdout.trim() : '';
}

type Fetch = (url: string, accept?: string) => Promise<Response>;

/** Fetches from the registry, which the operator chose, and from addresses on the internet that it names. */
function fetcher(registry: Registry, { from }: RepositoriesConfig, signal: AbortSignal): Fetch {
  return async (first, accept = '*/*') => {
    let url = new URL(first);
    for (let hops = 0; hops <= MAX_REDIRECTS; hops++) {
      const isOwn = url.origin === registry.url.origin;
      if (!isOwn) await requireOutside(url, from);
      const response = await fetch(url, {
        headers: { accept, ...(isOwn && registry.authorization !== null && { authorization: registry.authorization }) },
        redirect: 'manual',
        signal,
      });
      const location = response.headers.get('location');
      if (response.status < 300 || response.status >= 400 || location === null) {
        if (response.ok) return response;
        await response.body?.cancel();
        if (response.status === 404) throw new GatewayError('usage', `${url.host} does not have it`);
        throw new GatewayError('usage', `${url.host} answered with status ${response.status}`);
      }
      await response.body?.cancel();
      url = new URL(location, url);
    }
    throw new GatewayError('usage', 'its address leads from one to the next without end');
  };
}

async function requireOutside(url: URL, from: RepositoriesConfig['from']): Promise<void> {
  if (from !== 'public' && /^https?:$/.test(url.protocol)) return;
  if (url.protocol !== 'https:') throw new GatewayError('usage', `${url.origin} is not an https address`);
  await publicAddresses(url.hostname, 'Set repositories.from = "private" if it may be fetched from your own network.');
}

async function textOf(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body ?? []) {
    size += chunk.length;
    if (size > MAX_LIST) throw new GatewayError('usage', 'the list of its versions is too large');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

async function findNpm(
  { name, version }: PackageAddress,
  { url }: Registry,
  fetchFrom: Fetch,
): Promise<PackageArchive> {
  const accept = 'application/vnd.npm.install-v1+json, application/json;q=0.9';
  const document = toObject(
    JSON.parse(await textOf(await fetchFrom(new URL(name.replace('/', '%2f'), url).href, accept))),
  );
  const versions = toObject(document.versions);
  const wanted = version ?? String(toObject(document['dist-tags']).latest ?? '');
  const { tarball, integrity, shasum } = toObject(toObject(ownOf(versions, wanted)).dist);
  if (typeof tarball !== 'string' || !URL.canParse(tarball)) throw noVersion(wanted);
  const sha512 = /(?:^|\s)sha512-([A-Za-z0-9+/=]+)/.exec(String(integrity ?? ''))?.[1];
  const checksum =
    sha512 !== undefined
      ? (['sha512', Buffer.from(sha512, 'base64').toString('hex')] as const)
      : typeof shasum === 'string'
        ? (['sha1', shasum] as const)
        : null;
  return { url: tarball, version: wanted, checksum };
}

function ownOf(object: Readonly<Record<string, unknown>>, key: string): unknown {
  return Object.hasOwn(object, key) ? object[key] : undefined;
}

function noVersion(version: string): GatewayError {
  return new GatewayError('usage', version === '' ? 'it has no version' : `it has no version ${version}`);
}

/** A file that the index lists. */
interface Distribution {
  readonly url: string;
  readonly file: string;
  readonly version: string;
}

async function findPypi(
  { name, version }: PackageAddress,
  { url }: Registry,
  fetchFrom: Fetch,
): Promise<PackageArchive> {
  const plain = name.toLowerCase().replace(/[-_.]+/g, '-');
  const accept = 'application/vnd.pypi.simple.v1+html, text/html;q=0.9';
  const page = new URL(`${plain}/`, url);
  const listed = distributions(await textOf(await fetchFrom(page.href, accept)), page, plain);
  const isPreview = (one: Distribution) => /[a-z]/i.test(one.version.replace(/\.post\d+$/, ''));
  const finished = listed.some((one) => !isPreview(one)) ? listed.filter((one) => !isPreview(one)) : listed;
  const order = new Intl.Collator('en', { numeric: true });
  const wanted = version ?? finished.map((one) => one.version).toSorted((a, b) => order.compare(b, a))[0] ?? '';
  const own = listed.filter((one) => one.version === wanted);
  // A wheel for every platform is the code as it runs. A source distribution has the same before it is built.
  const chosen =
    own.find(({ file }) => file.endsWith('-none-any.whl')) ??
    own.find(({ file }) => file.endsWith('.tar.gz')) ??
    own.find(({ file }) => file.endsWith('.whl')) ??
    own[0];
  if (chosen === undefined) throw noVersion(wanted);
  const sha256 = /#sha256=([0-9a-f]{64})/.exec(chosen.url)?.[1];
  return { url: chosen.url, version: wanted, checksum: sha256 === undefined ? null : ['sha256', sha256] };
}

/** The archives of a page of the index, without those that were withdrawn. */
function distributions(html: string, page: URL, name: string): Distribution[] {
  return [...html.matchAll(/<a\s([^>]*)>\s*([^<]+?)\s*<\/a>/gi)].flatMap(([, attributes, file]) => {
    const href = /\bhref\s*=\s*(?:"([^"]*)"|'([^']*)')/i.exec(attributes!);
    const address = (href?.[1] ?? href?.[2] ?? '').replaceAll('&amp;', '&');
    if (/\bdata-yanked\b/i.test(attributes!) || !URL.canParse(address, page.href)) return [];
    const [, ofWheel, ofSource] = /^[^-]+-([^-]+)-.*\.whl$/.exec(file!) ?? [
      null,
      undefined,
      sourceVersion(file!, name),
    ];
    const version = ofWheel ?? ofSource;
    return version == null ? [] : [{ url: new URL(address, page).href, file: file!, version }];
  });
}

/** The version in `name-1.2.tar.gz`. The name may be written with other separators. */
function sourceVersion(file: string, name: string): string | undefined {
  const stem = /^(.*)\.(?:tar\.gz|tgz|zip)$/.exec(file)?.[1];
  const at = name.length;
  if (stem === undefined || stem.slice(0, at).toLowerCase().replace(/[-_.]/g, '-') !== name || stem[at] !== '-')
    return undefined;
  return stem.slice(at + 1);
}

async function save(
  response: Response,
  file: string,
  { checksum }: PackageArchive,
  { size }: RepositoriesConfig,
): Promise<void> {
  const out = await open(file, 'wx', 0o600);
  const hash = checksum === null ? null : createHash(checksum[0]);
  let total = 0;
  try {
    for await (const chunk of response.body ?? []) {
      total += chunk.length;
      if (total > size)
        throw new GatewayError(
          'usage',
          `it is larger than ${Math.round(size / 1024 / 1024)} MiB. Raise repositories.size`,
        );
      hash?.update(chunk);
      await out.write(chunk);
    }
  } finally {
    await out.close();
  }
  if (hash !== null && hash.digest('hex') !== checksum![1])
    throw new GatewayError('usage', 'its archive differs from the checksum of the registry');
}
