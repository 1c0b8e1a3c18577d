/**
 * deploy/docker: the compose file is valid and lays out what it should, the images are built from what is there, and the
 * core of an image, laid out in an empty folder, runs as its user. No Docker is needed.
 */
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { parseCommandLine } from '../../src/cli/commands.ts';
import { secretCommand } from '../../src/manager/tools/secrets.ts';
import { childEnv, startChild } from '../support/child.ts';
import { root } from '../support/docs-page.ts';
import { isWithoutIsolation } from '../support/needs.ts';
import { freePort } from '../support/ports.ts';
import { waitFor } from '../support/processes.ts';
import { tempFolder } from '../support/temp.ts';
import { isWide } from '../support/wide.ts';

const folder = join(root, 'deploy', 'docker');
const read = (name: string) => readFileSync(join(folder, name), 'utf8');

interface Service {
  readonly container_name: string;
  readonly build: { readonly context: string; readonly dockerfile: string; readonly args: Record<string, string> };
  readonly user: string;
  readonly ports: readonly string[];
  readonly volumes: readonly string[];
  readonly tmpfs: readonly string[];
  readonly environment: Record<string, string>;
  readonly healthcheck: { readonly test: readonly string[] };
  readonly networks: { readonly internal: { readonly ipv4_address: string } };
  readonly depends_on?: Record<string, { readonly condition: string }>;
  readonly restart: string;
}
const text = read('docker-compose.yml');
const compose = parse(text, { merge: true }) as {
  services: Record<'core' | 'manager', Service>;
  networks: object;
  volumes: object;
};

describe('docker-compose.yml', () => {
  it('is a valid compose file', () => {
    const ajv = new Ajv2020({ strict: false, validateFormats: false });
    const validate = ajv.compile(JSON.parse(readFileSync(join(import.meta.dirname, 'compose-spec.jsonl'), 'utf8')));
    validate(compose);
    expect(validate.errors).toBe(null);
  });

  it('has two services on an internal network with fixed addresses, one volume, and users that are not root', () => {
    const { core, manager } = compose.services;
    expect(compose.networks).toEqual({
      public: { driver: 'bridge' },
      internal: { driver: 'bridge', internal: true, ipam: { config: [{ subnet: '172.30.0.0/24' }] } },
    });
    expect([core.networks.internal.ipv4_address, manager.networks.internal.ipv4_address]).toEqual([
      '172.30.0.11',
      '172.30.0.10',
    ]);
    expect(compose.volumes).toEqual({ 'toolgate-data': { driver: 'local' } });
    for (const service of [core, manager])
      expect(service).toMatchObject({
        user: '${TOOLDOCK_UID:-1000}:${TOOLDOCK_GID:-1000}',
        volumes: ['toolgate-data:/data'],
        restart: 'unless-stopped',
        read_only: true,
        cap_drop: ['ALL'],
        env_file: '.env',
        build: { context: '../..' },
      });
    expect(manager.tmpfs).toContain('/dev/shm');
    // The command that prepare_secret tells people to run in containers.
    expect(secretCommand('A_KEY', 'global', null, true)).toBe(
      `docker exec -it ${manager.container_name} toolgate secrets set --key A_KEY --scope global`,
    );
    expect(manager.depends_on).toEqual({ core: { condition: 'service_healthy' } });
    expect(manager.environment.CORE_URL).toBe(`\${CORE_URL:-http://${core.networks.internal.ipv4_address}:8808}`);
    expect(core.environment.INTERNAL_ALLOWED_CIDRS).toContain(`${manager.networks.internal.ipv4_address}/32`);
  });

  it('uses variables that .env.example has, and gives each of them a default or asks for it', () => {
    const example = new Map(
      [...read('.env.example').matchAll(/^([A-Z_]+)=(.*)$/gm)].map(([, name, value]) => [name!, value!]),
    );
    const used = [...text.matchAll(/\$\{([A-Z_]+)(:[-?][^}]*)?\}/g)];
    expect(used.filter(([, name]) => !example.has(name!))).toEqual([]);
    expect(used.filter(([, , rest]) => rest === undefined)).toEqual([]);
    for (const [, name, rest] of used)
      if (rest?.startsWith(':-')) expect([name, rest.slice(2)]).toEqual([name, example.get(name!)]);
    // The ports inside of the containers do not follow those outside.
    expect(compose.services.core.ports).toEqual(['${CORE_PORT:-8808}:8808']);
    expect(compose.services.core.environment.CORE_PORT).toBe('8808');
    expect(compose.services.manager.ports).toEqual(['${MANAGER_PORT:-8809}:8809']);
    expect(compose.services.manager.environment.MANAGER_PORT).toBe('8809');
  });
});

interface Instruction {
  readonly name: string;
  readonly words: string;
}

function instructions(file: string): Instruction[] {
  const lines = read(file)
    .replace(/^\s*#.*\n/gm, '')
    .replace(/\\\n\s*/g, '')
    .split('\n')
    .filter((line) => line.trim() !== '');
  return lines.map((line) => ({ name: line.slice(0, line.indexOf(' ')), words: line.slice(line.indexOf(' ') + 1) }));
}

/** What the first stage copies from the checkout: source and target. */
function copied(file: string): [string, string][] {
  const copies = instructions(file).filter(({ name, words }) => name === 'COPY' && !words.startsWith('--from'));
  return copies.flatMap(({ words }) => {
    const parts = words.split(' ');
    return parts.slice(0, -1).map((source): [string, string] => {
      const target = parts.at(-1)!;
      return [source, target.endsWith('/') ? join(target, source.split('/').at(-1)!) : target];
    });
  });
}

describe.each(['core.Dockerfile', 'manager.Dockerfile'])('%s', (file) => {
  const all = instructions(file);
  const words = (name: string) => all.filter((one) => one.name === name).map((one) => one.words);

  it('keeps to the rules for images', () => {
    for (const from of words('FROM')) expect(from).toMatch(/^node:\d+-bookworm-slim( AS \w+)?$/);
    expect(words('ADD')).toEqual([]);
    for (const run of words('RUN').filter((one) => one.includes('apt-get'))) {
      expect(run).toMatch(/^apt-get update && apt-get install --yes --no-install-recommends /);
      expect(run).toMatch(/rm -rf \/var\/lib\/apt\/lists\/\*$/);
    }
    for (const run of words('RUN')) expect(run).not.toMatch(/\bsudo\b|curl[^|]*\||chmod 777/);
    expect(words('USER').at(-1)).toBe('$TOOLDOCK_UID:$TOOLDOCK_GID');
    expect(words('ARG').sort()).toEqual(['TOOLDOCK_GID=1000', 'TOOLDOCK_UID=1000']);
    for (const name of ['CMD', 'ENTRYPOINT']) expect(Array.isArray(JSON.parse(words(name).at(-1)!))).toBe(true);
    expect([...words('ENV'), ...words('ARG')].join(' ')).not.toMatch(/TOKEN|PASSWORD|SECRETS_KEY/);
    // Only the manager reads repositories.
    expect(words('RUN').some((run) => /\bgit\b/.test(run))).toBe(file === 'manager.Dockerfile');
  });

  it('has the port and the health check of the compose file', () => {
    const name = file === 'core.Dockerfile' ? 'core' : 'manager';
    const { healthcheck, build } = compose.services[name];
    expect(build.dockerfile).toBe(`deploy/docker/${file}`);
    const check = JSON.parse(words('HEALTHCHECK')[0]!.replace(/^.*CMD /, '')) as string[];
    expect(healthcheck.test).toEqual(['CMD', ...check]);
    expect(check).toEqual(['toolgate', 'wait', ...(name === 'manager' ? ['--manager'] : []), '--timeout', '4s']);
    expect(words('ENV').at(-1)).toContain(`${name.toUpperCase()}_PORT=${words('EXPOSE')[0]}`);
  });

  it('starts a command that exists, with options that it has', () => {
    const { command } = parseCommandLine(JSON.parse(words('CMD').at(-1)!) as string[]);
    expect(command).toBe(file === 'core.Dockerfile' ? 'serve' : 'manager');
  });

  it('copies what is there, and what .dockerignore lets through', () => {
    const ignore = readFileSync(join(root, '.dockerignore'), 'utf8').split('\n');
    for (const [source] of copied(file)) {
      expect(existsSync(join(root, source)), source).toBe(true);
      expect(ignore, source).toContain(`!${source}`);
    }
  });
});

// Building and packing take as long as a hundred other tests.
it.runIf(isWide)(
  'the core of an image, laid out from what its Dockerfile copies, runs as its user and is healthy',
  async () => {
    const image = tempFolder();
    chmodSync(image, 0o755);
    const src = join(image, 'src');
    mkdirSync(src);
    for (const [source, target] of copied('core.Dockerfile'))
      cpSync(join(root, source), join(src, target), { recursive: true, filter: (path) => !path.endsWith('.test.ts') });
    // In place of npm ci, which downloads the same packages.
    symlinkSync(join(root, 'node_modules'), join(src, 'node_modules'));
    const npm = (args: string[], cwd: string) =>
      execFileSync('npm', args, { cwd, stdio: 'pipe', env: childEnv({ HOME: image }) });
    npm(['run', 'build'], src);
    const tarball = npm(['pack', '--pack-destination', image], src).toString().trim().split('\n').at(-1)!;
    // In place of npm install --global, for the same reason: the package, and next to it what it depends on.
    const installed = join(image, 'opt', 'lib', 'node_modules', 'toolgate');
    mkdirSync(installed, { recursive: true });
    execFileSync('tar', ['xzf', join(image, tarball), '--strip-components=1', '-C', installed]);
    const { dependencies } = JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8')) as {
      dependencies: object;
    };
    for (const name of [
      ...Object.keys(dependencies),
      '@rolldown',
      '@oxc-project',
      '@napi-rs',
      '@emnapi',
      'tslib',
      '@tybys',
    ]) {
      const own = join(root, 'node_modules', name);
      if (!existsSync(own)) continue;
      mkdirSync(dirname(join(installed, 'node_modules', name)), { recursive: true });
      cpSync(own, join(installed, 'node_modules', name), { recursive: true });
    }
    expect(readdirSync(installed)).not.toContain('src');

    // As in the image, which has no bubblewrap, and with it.
    for (const isolation of ['off', (await isWithoutIsolation()) ? 'auto' : 'required'])
      await serveAs1000(join(installed, 'bin', 'toolgate.mjs'), isolation);
  },
  240_000,
);

/** Starts the core as its user, until its health check passes and its tool answers. */
async function serveAs1000(bin: string, isolation: string): Promise<void> {
  const data = tempFolder({
    'config.yaml': `folders: { isolation: "${isolation}" }\n`,
    'tools/greetings/hello.ts':
      "export const hello = { description: 'Says hello', inputSchema: { type: 'object' }, execute: () => 'user ' + process.getuid() };\n",
  });
  const isRoot = process.getuid?.() === 0;
  if (isRoot)
    for (const path of ['', ...readdirSync(data, { recursive: true, encoding: 'utf8' })])
      chownSync(join(data, path), 1000, 1000);
  const port = await freePort();
  const words = (name: string) => instructions('core.Dockerfile').findLast((one) => one.name === name)!.words;
  const command = JSON.parse(words('CMD')) as string[];
  const check = JSON.parse(words('HEALTHCHECK').replace(/^.*CMD /, '')) as string[];
  const env = childEnv({
    DATA_DIR: data,
    HOME: data,
    CORE_PORT: String(port),
    BEARER_TOKEN: 'a-token-of-this-test-0123456789',
  });
  const user = isRoot ? { uid: 1000, gid: 1000 } : {};
  const core = startChild(process.execPath, [bin, ...command], { cwd: data, env, ...user });
  const isHealthy = () => {
    try {
      execFileSync(process.execPath, [bin, ...check.slice(1)], { cwd: data, env, stdio: 'pipe', ...user });
      return true;
    } catch {
      if (core.process.exitCode !== null) throw new Error(core.stderr());
      return false;
    }
  };
  await waitFor(isHealthy, 60_000);
  if (isRoot) expect(statSync(`/proc/${core.process.pid}`).uid).toBe(1000);
  // By the name of the service, as other containers call it.
  const reply = await fetch(`http://127.0.0.1:${port}/ns/greetings/tools/hello`, {
    method: 'POST',
    headers: { authorization: 'Bearer a-token-of-this-test-0123456789', 'content-type': 'application/json' },
    body: '{}',
  });
  const expected = `user ${isolation === 'required' ? 65_534 : process.getuid?.() || 1000}`;
  expect([reply.status, await reply.json()], core.stderr()).toEqual([200, expected]);
  await core.stop();
}
