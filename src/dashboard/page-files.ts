/** The files of the page, as the build made them. Their names have a hash in them, so browsers keep them for a year. */
import { readdirSync, readFileSync } from 'node:fs';
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { extname, join } from 'node:path';
import { GatewayError } from '../base/errors.ts';
import { ownFile } from '../base/own-files.ts';

interface PageFile {
  readonly type: string;
  readonly plain: Buffer;
  readonly br: Buffer | null;
  readonly gzip: Buffer | null;
}

interface PageBuild {
  readonly index: PageFile;
  readonly files: ReadonlyMap<string, PageFile>;
}

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.ico': 'image/x-icon',
  '.woff2': 'font/woff2',
  '.json': 'application/json',
  '.webmanifest': 'application/manifest+json',
};

/** Nothing that a server sends can become code, even if the page had a mistake: there is no way to make any from text. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "font-src 'self'",
  "connect-src 'self'",
  "manifest-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ');

export const PAGE_HEADERS: readonly string[] = [
  ...['content-security-policy', POLICY, 'x-content-type-options', 'nosniff', 'referrer-policy', 'no-referrer'],
  ...['x-frame-options', 'DENY', 'cross-origin-opener-policy', 'same-origin'],
  ...['cross-origin-resource-policy', 'same-origin'],
  ...['permissions-policy', 'camera=(), geolocation=(), microphone=(), payment=(), usb=()'],
];

/** Undefined: not looked for yet. Null: this build has no page. */
let known: PageBuild | null | undefined;

function readBuild(): PageBuild | null {
  const folder = ownFile('dist/dashboard');
  try {
    const assets = join(folder, 'admin', 'page');
    const names = readdirSync(assets).filter((name) => !/\.(br|gz)$/.test(name));
    return {
      index: readPageFile(folder, 'index.html'),
      files: new Map(names.map((name) => [name, readPageFile(assets, name)])),
    };
  } catch {
    return null;
  }
}

function readPageFile(folder: string, name: string): PageFile {
  const optional = (end: string) => {
    try {
      return readFileSync(join(folder, name + end));
    } catch {
      return null;
    }
  };
  return {
    type: TYPES[extname(name)] ?? 'application/octet-stream',
    plain: readFileSync(join(folder, name)),
    br: optional('.br'),
    gzip: optional('.gz'),
  };
}

function build(): PageBuild | null {
  if (known === undefined) known = readBuild();
  return known;
}

/** False if the page is not part of this build. */
export function sendIndex(request: IncomingMessage, response: ServerResponse, headers: readonly string[]): boolean {
  const index = build()?.index;
  if (index === undefined) return false;
  const fresh = ['cache-control', 'no-store', 'vary', 'accept-encoding, cookie'];
  send(index, request, response, [...headers, ...PAGE_HEADERS, ...fresh]);
  return true;
}

export function sendPageFile(
  name: string,
  request: IncomingMessage,
  response: ServerResponse,
  headers: readonly string[],
): void {
  const file = build()?.files.get(name);
  if (file === undefined) throw new GatewayError('path_unknown', 'The dashboard has no such file. Load it again.');
  const kept = ['cache-control', 'public, max-age=31536000, immutable', 'vary', 'accept-encoding'];
  send(file, request, response, [...headers, ...PAGE_HEADERS, ...kept]);
}

function send(
  { type, plain, br, gzip }: PageFile,
  { headers: asked, method }: IncomingMessage,
  response: ServerResponse,
  headers: readonly string[],
): void {
  const [bytes, encoding] =
    br !== null && acceptsEncoding(asked, 'br')
      ? [br, ['content-encoding', 'br']]
      : gzip !== null && acceptsEncoding(asked, 'gzip')
        ? [gzip, ['content-encoding', 'gzip']]
        : [plain, []];
  const all = [...headers, ...encoding, 'content-type', type, 'content-length', String(bytes.length)];
  response.writeHead(200, all).end(method === 'HEAD' ? undefined : bytes);
}

function acceptsEncoding({ 'accept-encoding': accepted }: IncomingHttpHeaders, encoding: 'br' | 'gzip'): boolean {
  const text = Array.isArray(accepted) ? accepted.join(',') : (accepted ?? '');
  return text
    .toLowerCase()
    .split(',')
    .map((one) => one.trim().split(/; */))
    .some(([name, quality]) => name === encoding && quality !== 'q=0');
}
