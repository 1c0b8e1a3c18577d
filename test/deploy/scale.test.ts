/** deploy/scale: several replicas with Redis and a balancer, as a compose file. The balancer itself is in balancers.test.ts. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { parseCommandLine } from '../../src/cli/commands.ts';
import { loadConfig } from '../../src/index.ts';
import { root } from '../support/docs-page.ts';
import { tempFolder } from '../support/temp.ts';

const folder = join(root, 'deploy', 'scale');
const read = (name: string) => readFileSync(join(folder, name), 'utf8');
const text = read('docker-compose.yml');
const { services } = parse(text) as {
  services: Record<
    'toolgate' | 'redis' | 'balancer',
    { command: string[]; environment: Record<string, string>; networks: string[]; ports?: string[]; volumes: string[] }
  >;
};

describe('deploy/scale/docker-compose.yml', () => {
  it('is a valid compose file', () => {
    const ajv = new Ajv2020({ strict: false, validateFormats: false });
    const validate = ajv.compile(JSON.parse(readFileSync(join(import.meta.dirname, 'compose-spec.jsonl'), 'utf8')));
    validate(parse(text));
    expect(validate.errors).toBe(null);
  });

  it('asks for the variables that .env.example has, and for no others', () => {
    const asked = new Set([...text.matchAll(/\$\{(\w+)/g)].map(([, name]) => name));
    const offered = [...read('.env.example').matchAll(/^(\w+)=/gm)].map(([, name]) => name);
    expect([...asked].sort()).toEqual([...offered].sort());
  });

  it('starts a replica with a configuration that has the store, and drains it before it is killed', async () => {
    const { command, environment, volumes } = services.toolgate;
    expect(() => parseCommandLine(command)).not.toThrow();
    expect(volumes).toEqual([`./toolgate.toml:${command[command.indexOf('--config') + 1]}:ro`]);
    const env = { REDIS_URL: 'redis://:secret@redis:6379', HOME: tempFolder() };
    expect(environment.REDIS_URL).toMatch(/^redis:.*@redis:6379$/);
    const { store, http } = await loadConfig({ path: join(folder, 'toolgate.toml'), cwd: tempFolder(), env });
    expect(store?.url()).toBe(env.REDIS_URL);
    const grace = Number(/stop_grace_period: (\d+)s/.exec(text)![1]) * 1000;
    expect(grace).toBeGreaterThan(http.drain + store!.drainPause);
  });

  it('lets clients reach the balancer alone, and keeps Redis inside', () => {
    expect(services.balancer.ports).toEqual(['${PORT:-8080}:8080']);
    expect(read('haproxy.cfg')).toContain('bind :8080');
    expect(read('haproxy.cfg')).toContain(`toolgate:${services.toolgate.command.at(-2)}`);
    expect([services.toolgate, services.redis].map(({ ports }) => ports)).toEqual([undefined, undefined]);
    expect(services.redis.networks).toEqual(['internal']);
    expect(services.redis.command).toEqual(expect.arrayContaining(['--appendonly', 'yes', 'noeviction']));
  });
});
