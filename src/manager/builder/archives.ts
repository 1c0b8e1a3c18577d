/**
 * Reads the archives of packages (`.tgz` of npm, `.tar.gz` and `.whl` of Python) without unpacking them: the contents of all files
 * go into one file, and their names into a list. So no name in an archive is ever a path on this machine. Links, folders
 * and devices are left out.
 */
import { createReadStream } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { createGunzip, inflateRawSync } from 'node:zlib';
import { GatewayError } from '../../base/errors.ts';

/** A file of an archive: where its bytes are in the file of contents. */
export interface ArchivedFile {
  readonly path: string;
  readonly size: number;
  readonly offset: number;
}

export interface ArchiveLimits {
  /** Bytes of all files together. */
  readonly size: number;
  readonly signal: AbortSignal;
}

const MAX_FILES = 50_000;
/** Bytes of names, in headers and in lists. */
const MAX_NAMES = 32 * 1024 * 1024;

/** Writes the contents of an archive to the file `contents`. Throws a GatewayError that ends with why it cannot. */
export async function readArchive(archive: string, contents: string, limits: ArchiveLimits): Promise<ArchivedFile[]> {
  const out = await open(contents, 'wx', 0o600);
  const files = new Map<string, ArchivedFile>();
  let offset = 0;
  try {
    const add = async (path: string, size: number, chunks: AsyncIterable<Buffer> | Iterable<Buffer>) => {
      if (offset + size > limits.size) throw tooLarge(limits);
      const start = offset;
      for await (const chunk of chunks) {
        await out.write(chunk, 0, chunk.length, offset);
        offset += chunk.length;
      }
      if (offset !== start + size) throw broken();
      if (!isPlain(path)) return;
      files.set(path, { path, size, offset: start });
      if (files.size > MAX_FILES) throw new GatewayError('usage', `it has more than ${MAX_FILES} files`);
    };
    await (archive.endsWith('.zip') ? readZip(archive, limits, add) : readTarball(archive, limits, add));
    return [...files.values()].sort((a, b) => (a.path < b.path ? -1 : 1));
  } finally {
    await out.close();
  }
}

type Add = (path: string, size: number, chunks: AsyncIterable<Buffer> | Iterable<Buffer>) => Promise<void>;

function tooLarge({ size }: ArchiveLimits): GatewayError {
  return new GatewayError('usage', `it is larger than ${Math.round(size / 1024 / 1024)} MiB. Raise repositories.size`);
}

function broken(): GatewayError {
  return new GatewayError('usage', 'its archive is broken');
}

/** A relative path that stays inside. */
function isPlain(path: string): boolean {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: those are what is refused.
  return path !== '' && !/^\/|\\|[\u0000-\u001f\u007f]|(?:^|\/)\.\.?(?:\/|$)|\/$|\/\//.test(path);
}

const BLOCK = 512;

async function readTarball(archive: string, limits: ArchiveLimits, add: Add): Promise<void> {
  const unzipped = createReadStream(archive).pipe(createGunzip());
  const bytes = readExactly(unzipped, limits);
  let longName: string | null = null;
  let names = 0;
  try {
    for (;;) {
      const header = await bytes.take(BLOCK);
      // Two empty blocks end an archive. Some writers leave them out.
      if (header === null || header.every((byte) => byte === 0)) return;
      if (!hasChecksum(header)) throw broken();
      const size = numberIn(header, 124, 12);
      const type = String.fromCharCode(header[156]!);
      const padding = (BLOCK - (size % BLOCK)) % BLOCK;
      if (type === 'x' || type === 'L') {
        names += size;
        if (names > MAX_NAMES) throw broken();
        const text = ((await bytes.take(size)) ?? Buffer.alloc(0)).toString('utf8');
        longName = type === 'L' ? text.replace(/\0.*$/s, '') : (pathIn(text) ?? longName);
      } else if (type === '0' || type === '\0') {
        // The first folder is that of the package: `package/`, or `name-1.0/`.
        const whole = (longName ?? nameIn(header)).replace(/^(?:\.\/)+/, '');
        const path = isPlain(whole) ? whole.slice(whole.indexOf('/') + 1) : '';
        longName = null;
        await add(path, size, bytes.stream(size));
      } else {
        longName = null;
        await bytes.skip(size);
      }
      await bytes.skip(padding);
    }
  } catch (error) {
    if (error instanceof GatewayError || limits.signal.aborted) throw error;
    throw broken();
  } finally {
    unzipped.destroy();
  }
}

/** The sum of all bytes, with spaces in place of the sum itself. */
function hasChecksum(header: Buffer): boolean {
  let sum = 8 * 32;
  for (const [index, byte] of header.entries()) if (index < 148 || index >= 156) sum += byte;
  return sum === numberIn(header, 148, 8);
}

/** Octal digits, or a number in bytes if the first bit is set. */
function numberIn(header: Buffer, at: number, length: number): number {
  if ((header[at]! & 0x80) !== 0) return Number(header.readBigUInt64BE(at + length - 8) & 0xff_ffff_ffff_ffffn);
  const text = header
    .toString('latin1', at, at + length)
    .replace(/\0.*$/s, '')
    .trim();
  if (!/^[0-7]*$/.test(text)) throw broken();
  return Number.parseInt(text || '0', 8);
}

function nameIn(header: Buffer): string {
  const text = (at: number, length: number) => header.toString('utf8', at, at + length).replace(/\0.*$/s, '');
  const prefix = text(257, 5) === 'ustar' ? text(345, 155) : '';
  return prefix === '' ? text(0, 100) : `${prefix}/${text(0, 100)}`;
}

/** From records such as `27 path=package/index.js`. */
function pathIn(records: string): string | null {
  return /(?:^|\n)\d+ path=([^\n]*)\n/.exec(records)?.[1] ?? null;
}

/** Takes so many bytes at a time from a stream. Also what is skipped is bounded. */
function readExactly(source: AsyncIterable<Buffer>, limits: ArchiveLimits) {
  const iterator = source[Symbol.asyncIterator]();
  let rest: Buffer = Buffer.alloc(0);
  let total = 0;
  /** At most so many bytes; null at the end. */
  const some = async (most: number): Promise<Buffer | null> => {
    while (rest.length === 0) {
      limits.signal.throwIfAborted();
      const next = await iterator.next();
      if (next.done) return null;
      rest = next.value;
      total += rest.length;
      if (total > 2 * limits.size + 2 * MAX_NAMES) throw tooLarge(limits);
    }
    const part = rest.subarray(0, most);
    rest = rest.subarray(part.length);
    return part;
  };
  async function* stream(size: number): AsyncGenerator<Buffer> {
    for (let left = size; left > 0; ) {
      const part = await some(left);
      if (part === null) throw broken();
      left -= part.length;
      yield part;
    }
  }
  return {
    stream,
    async skip(size: number): Promise<void> {
      const left = stream(size);
      while (!(await left.next()).done);
    },
    /** Null if the stream has ended. */
    async take(size: number): Promise<Buffer | null> {
      const parts: Buffer[] = [];
      for (let left = size; left > 0; ) {
        const part = await some(left);
        if (part === null && parts.length === 0) return null;
        if (part === null) throw broken();
        left -= part.length;
        parts.push(part);
      }
      return Buffer.concat(parts);
    },
  };
}

const END = { signature: 0x06054b50, size: 22, comment: 65_535 };
const ENTRY = { signature: 0x02014b50, size: 46 };
const LOCAL = { signature: 0x04034b50, size: 30 };
const STORED = 0;
const DEFLATED = 8;

async function readZip(archive: string, limits: ArchiveLimits, add: Add): Promise<void> {
  const file = await open(archive, 'r');
  try {
    const { size } = await file.stat();
    const list = await zipList(file, size);
    let at = 0;
    while (at + ENTRY.size <= list.length && list.readUInt32LE(at) === ENTRY.signature) {
      limits.signal.throwIfAborted();
      const [method, packed, unpacked] = [
        list.readUInt16LE(at + 10),
        list.readUInt32LE(at + 20),
        list.readUInt32LE(at + 24),
      ];
      const [name, extra, comment] = [28, 30, 32].map((place) => list.readUInt16LE(at + place)) as [
        number,
        number,
        number,
      ];
      const path = list.toString('utf8', at + ENTRY.size, at + ENTRY.size + name);
      const start = list.readUInt32LE(at + 42);
      // The upper half is the mode of Unix; links have the type 0o12.
      const isLink = list.readUInt32LE(at + 38) >>> 28 === 0o12;
      at += ENTRY.size + name + extra + comment;
      if (path.endsWith('/') || isLink) continue;
      if (unpacked > limits.size) throw tooLarge(limits);
      await add(path, unpacked, [await zipContent(file, { start, method, packed, unpacked }, size)]);
    }
  } catch (error) {
    if (error instanceof GatewayError || limits.signal.aborted) throw error;
    throw broken();
  } finally {
    await file.close();
  }
}

/** The list of files at the end of a zip archive. */
async function zipList(file: FileHandle, size: number): Promise<Buffer> {
  const tail = await readAt(file, Math.max(0, size - END.size - END.comment), size);
  for (let at = tail.length - END.size; at >= 0; at--) {
    if (tail.readUInt32LE(at) !== END.signature) continue;
    const [length, start] = [tail.readUInt32LE(at + 12), tail.readUInt32LE(at + 16)];
    if (length > MAX_NAMES || start + length > size) throw broken();
    return readAt(file, start, start + length);
  }
  throw broken();
}

interface ZipEntry {
  readonly start: number;
  readonly method: number;
  readonly packed: number;
  readonly unpacked: number;
}

async function zipContent(file: FileHandle, entry: ZipEntry, size: number): Promise<Buffer> {
  const { start, method, packed, unpacked } = entry;
  const header = await readAt(file, start, start + LOCAL.size);
  if (header.readUInt32LE(0) !== LOCAL.signature || (method !== STORED && method !== DEFLATED)) throw broken();
  const data = start + LOCAL.size + header.readUInt16LE(26) + header.readUInt16LE(28);
  if (data + packed > size) throw broken();
  const bytes = await readAt(file, data, data + packed);
  return method === STORED ? bytes : inflateRawSync(bytes, { maxOutputLength: Math.max(1, unpacked) });
}

async function readAt(file: FileHandle, start: number, end: number): Promise<Buffer> {
  const buffer = Buffer.alloc(end - start);
  const { bytesRead } = await file.read(buffer, 0, buffer.length, start);
  if (bytesRead !== buffer.length) throw broken();
  return buffer;
}
