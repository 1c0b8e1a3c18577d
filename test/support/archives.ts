/** Archives of packages, made byte by byte, so that they can be hostile; and registries that serve them. */
import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { deflateRawSync, gzipSync } from 'node:zlib';
import { atEnd } from './cleanup.ts';

export interface TarEntry {
  readonly path: string;
  readonly text?: string;
  /** As tar writes it: `0` for a file, `2` for a link, `5` for a folder, `x` for a long name. */
  readonly type?: string;
  readonly link?: string;
  /** The size that the header claims. */
  readonly size?: number;
}

export function tarball(...entries: readonly TarEntry[]): Buffer {
  const blocks = entries.flatMap(({ path, text = '', type = '0', link = '', size = Buffer.byteLength(text) }) => {
    const header = Buffer.alloc(512);
    header.write(path, 0, 100);
    header.write('0000644\0', 100);
    header.write(`${size.toString(8).padStart(11, '0')}\0`, 124);
    header.write('        ', 148);
    header.write(type, 156);
    header.write(link, 157, 100);
    header.write('ustar\x0000', 257);
    const sum = header.reduce((all, byte) => all + byte, 0);
    header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
    const body = Buffer.from(text);
    return [header, body, Buffer.alloc((512 - (body.length % 512)) % 512)];
  });
  return gzipSync(Buffer.concat([...blocks, Buffer.alloc(1024)]));
}

export interface ZipFile {
  readonly path: string;
  readonly text: string;
  /** The size that the list claims. */
  readonly size?: number;
  readonly isLink?: boolean;
}

export function zip(...files: readonly ZipFile[]): Buffer {
  const parts: Buffer[] = [];
  const list: Buffer[] = [];
  let at = 0;
  for (const { path, text, size = Buffer.byteLength(text), isLink = false } of files) {
    const name = Buffer.from(path);
    const data = deflateRawSync(text);
    const local = Buffer.alloc(30);
    local.writeUInt32LE(0x04034b50, 0);
    local.writeUInt16LE(8, 8);
    local.writeUInt16LE(name.length, 26);
    const entry = Buffer.alloc(46);
    entry.writeUInt32LE(0x02014b50, 0);
    entry.writeUInt16LE(8, 10);
    entry.writeUInt32LE(data.length, 20);
    entry.writeUInt32LE(size, 24);
    entry.writeUInt16LE(name.length, 28);
    entry.writeUInt32LE(((isLink ? 0o120777 : 0o100644) << 16) >>> 0, 38);
    entry.writeUInt32LE(at, 42);
    parts.push(local, name, data);
    list.push(entry, name);
    at += local.length + name.length + data.length;
  }
  const names = Buffer.concat(list);
  const end = Buffer.alloc(22);
  end.writeUInt32LE(0x06054b50, 0);
  end.writeUInt32LE(names.length, 12);
  end.writeUInt32LE(at, 16);
  return Buffer.concat([...parts, names, end]);
}

export interface PackageServer {
  readonly origin: string;
  readonly requests: string[];
  /** Variables with which npm and pip would use it. */
  readonly env: Record<string, string>;
}

export type Answer = (request: IncomingMessage, response: ServerResponse) => void;

/**
 * Serves archives as a registry of npm and an index of PyPI: `name@version` is a package of npm, `name-1.0.tar.gz` and
 * `name-1.0-py3-none-any.whl` are files of the index. A function answers a path itself.
 */
export async function servePackages(all: Readonly<Record<string, Buffer | Answer>>): Promise<PackageServer> {
  const requests: string[] = [];
  const server = createServer((request, response) => {
    const path = decodeURIComponent(request.url ?? '');
    requests.push(path);
    const own = all[path];
    if (typeof own === 'function') return own(request, response);
    const [, kind, rest = ''] = /^\/(npm|simple|files)\/(.*?)\/?$/.exec(path) ?? [];
    const file = all[rest];
    if (kind === 'files' && Buffer.isBuffer(file)) return void response.end(file);
    const text = kind === 'npm' ? npmDocument(rest) : kind === 'simple' ? indexPage(rest) : null;
    return void (text === null ? response.writeHead(404).end() : response.end(text));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  atEnd(() => {
    server.closeAllConnections();
    server.close();
  });
  const origin = `http://127.0.0.1:${(server.address() as { port: number }).port}`;
  const archives = Object.entries(all).filter((one): one is [string, Buffer] => Buffer.isBuffer(one[1]));

  function npmDocument(name: string): string | null {
    const own = archives.filter(([file]) => file.slice(0, file.lastIndexOf('@')) === name);
    if (own.length === 0) return null;
    const versions = own.map(([file, bytes]) => {
      const integrity = `sha512-${createHash('sha512').update(bytes).digest('base64')}`;
      return [file.slice(name.length + 1), { dist: { tarball: `${origin}/files/${file}`, integrity } }] as const;
    });
    return JSON.stringify({
      'dist-tags': { latest: versions.at(-1)![0] },
      versions: Object.fromEntries(versions),
    });
  }

  function indexPage(name: string): string | null {
    const own = archives.filter(([file]) => file.toLowerCase().replace(/[_.]/g, '-').startsWith(`${name}-`));
    const links = own.map(([file, bytes]) => {
      const hash = createHash('sha256').update(bytes).digest('hex');
      return `<a href="../../files/${file}#sha256=${hash}" data-requires-python="&gt;=3.10">${file}</a><br/>`;
    });
    return links.length === 0 ? null : `<!DOCTYPE html><html><body>${links.join('\n')}</body></html>`;
  }

  const env = { npm_config_registry: `${origin}/npm`, PIP_INDEX_URL: `${origin}/simple` };
  return { origin, requests, env };
}
