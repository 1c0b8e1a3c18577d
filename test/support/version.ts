/** The version in package.json, which a release changes. */
import { readFileSync } from 'node:fs';

const manifest = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');

export const { version: packageVersion } = JSON.parse(manifest) as { version: string };
