/** How tests install Python packages. */
import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isWide } from './wide.ts';

/** The uv that `npm test` installs. */
export const uv: string = fileURLToPath(new URL('../tools/python/uv/bin/uv', import.meta.url));

/** The caches of the user, so that not every data folder of a test downloads everything again. */
export const caches: Record<string, string> = {
  UV_CACHE_DIR: join(homedir(), '.cache/uv'),
  PIP_CACHE_DIR: join(homedir(), '.cache/pip'),
};

const REGISTRY = /^(?:(?:PIP|UV)_.*|SSL_CERT_(?:FILE|DIR)|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE)$/;

/**
 * The variables of a gateway that may install Python packages: the user's registry, and uv, which is quicker than pip. A
 * wide run installs with pip.
 */
export const installer: Record<string, string> = {
  ...caches,
  ...Object.fromEntries(
    Object.entries(process.env).filter((entry): entry is [string, string] => REGISTRY.test(entry[0])),
  ),
  TOOLGATE_UV: isWide || !existsSync(uv) ? 'off' : uv,
};
