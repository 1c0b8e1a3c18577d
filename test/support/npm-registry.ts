/** A registry for npm in the process of the test, with small packages whose programs are fixture servers. */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { childEnv } from './child.ts';
import { atEnd } from './cleanup.ts';
import { fixture } from './fixtures.ts';
import { tempFolder, writeFiles } from './temp.ts';

export interface TestPackage {
  readonly name: string;
  readonly version: string;
  /** Names of its programs. Each is the fixture `basic` under that name. */
  readonly bins: readonly string[];
  readonly scripts?: Record<string, string>;
}

export interface Registry {
  readonly origin: string;
  /** The paths that npm asked for. */
  readonly requests: string[];
  /** Publishes further packages or versions. The last version of a package is its latest. */
  publish(...packages: readonly TestPackage[]): void;
  /** Removes all versions of a package. */
  withdraw(name: string): void;
  /** Packages are sent only after the returned function is called. */
  hold(): () => void;
  /** For npm with this registry, and with a home and a cache of its own. */
  env(): Record<string, string>;
}

export async function startRegistry(...packages: readonly TestPackage[]): Promise<Registry> {
  const published = new Map<string, (TestPackage & { readonly tarball: Buffer })[]>();
  const requests: string[] = [];
  let released = Promise.resolve();
  const server = createServer((request, response) => {
    const path = decodeURIComponent(request.url ?? '').slice(1);
    requests.push(path);
    const [name = '', version] = path.split('/-/');
    const versions = published.get(name);
    if (versions === undefined) response.writeHead(404).end('{}');
    else if (version === undefined) response.end(JSON.stringify(document(origin, versions)));
    else
      void released.then(() => response.end(versions.find((one) => version === `${one.version}.tgz`)?.tarball ?? ''));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  atEnd(() => {
    server.closeAllConnections();
    server.close();
  });
  const origin = `http://127.0.0.1:${(server.address() as { port: number }).port}`;
  const registry: Registry = {
    origin,
    requests,
    publish(...all) {
      for (const one of all)
        published.set(one.name, [...(published.get(one.name) ?? []), { ...one, tarball: pack(one) }]);
    },
    withdraw(name) {
      published.delete(name);
    },
    hold() {
      let release = () => {};
      released = new Promise((resolve) => {
        release = resolve;
      });
      return release;
    },
    env() {
      const home = tempFolder();
      return childEnv({
        HOME: home,
        npm_config_registry: origin,
        npm_config_cache: join(home, 'npm'),
        npm_config_audit: 'false',
        npm_config_fund: 'false',
        npm_config_update_notifier: 'false',
      });
    },
  };
  registry.publish(...packages);
  return registry;
}

function document(origin: string, versions: readonly (TestPackage & { readonly tarball: Buffer })[]): object {
  const { name } = versions[0]!;
  const entry = (one: TestPackage & { readonly tarball: Buffer }) => ({
    ...manifest(one),
    dist: {
      tarball: `${origin}/${name}/-/${one.version}.tgz`,
      integrity: `sha512-${createHash('sha512').update(one.tarball).digest('base64')}`,
    },
  });
  return {
    name,
    'dist-tags': { latest: versions.at(-1)!.version },
    versions: Object.fromEntries(versions.map((one) => [one.version, entry(one)])),
  };
}

function manifest({ name, version, bins, scripts }: TestPackage): object {
  const bin = Object.fromEntries(bins.map((one) => [one, `${one}.mjs`]));
  return { name, version, bin, ...(scripts && { scripts, hasInstallScript: true }) };
}

/** Each program offers the tools of `basic`, under a name with the version in it. */
function pack(one: TestPackage): Buffer {
  const folder = tempFolder();
  const program = (bin: string) =>
    `#!/usr/bin/env node
process.argv.push('--name', ${JSON.stringify(`${bin} ${one.version}`)});
await import(${JSON.stringify(fixture('basic'))});
`;
  writeFiles(join(folder, 'package'), {
    'package.json': JSON.stringify(manifest(one)),
    ...Object.fromEntries(one.bins.map((bin) => [`${bin}.mjs`, program(bin)])),
  });
  execFileSync('tar', ['czf', 'package.tgz', 'package'], { cwd: folder });
  return readFileSync(join(folder, 'package.tgz'));
}
