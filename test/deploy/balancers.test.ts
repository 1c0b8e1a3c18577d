/** deploy/balancers and deploy/scale: the balancers accept their files, share requests between two Toolgates, and go on with one. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type Child, childEnv, startChild } from '../support/child.ts';
import { root } from '../support/docs-page.ts';
import { readExposition } from '../support/exposition.ts';
import { type HttpGateway, startHttp } from '../support/gateway.ts';
import { post } from '../support/modern-request.ts';
import { isMissing, isMissingPython, pythonProgram } from '../support/needs.ts';
import { freePort } from '../support/ports.ts';
import { waitFor } from '../support/processes.ts';
import { server, serversToml } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';
import { runTool } from '../support/tools.ts';

const deploy = join(root, 'deploy');
const TOKEN = 'a-token-of-this-test-0123456789';

interface Balancer {
  readonly file: string;
  readonly isMissing: () => boolean;
  /** Checks a file without starting; run in a folder of its own. */
  check(file: string, folder: string): [command: string, args: string[]];
  start(file: string, folder: string): [command: string, args: string[]];
}

const nginx = (folder: string) => ['-p', folder, '-g', `pid ${folder}/nginx.pid; error_log stderr; daemon off;`];
const BALANCERS: Record<string, Balancer> = {
  nginx: {
    file: 'balancers/nginx.conf',
    isMissing: () => isMissing('nginx'),
    check: (file, folder) => ['nginx', ['-t', '-c', file, ...nginx(folder)]],
    start: (file, folder) => ['nginx', ['-c', file, ...nginx(folder)]],
  },
  haproxy: {
    file: 'balancers/haproxy.cfg',
    isMissing: () => isMissing('haproxy'),
    check: (file) => ['haproxy', ['-c', '-f', file]],
    start: (file) => ['haproxy', ['-db', '-f', file]],
  },
  'haproxy of docker-compose.yml': {
    file: 'scale/haproxy.cfg',
    isMissing: () => isMissing('haproxy'),
    check: (file) => ['haproxy', ['-c', '-f', file]],
    start: (file) => ['haproxy', ['-db', '-f', file]],
  },
  Envoy: {
    file: 'balancers/envoy.yaml',
    isMissing: () => isMissingPython('deploy'),
    check: (file) => [pythonProgram('deploy', 'envoy'), ['--mode', 'validate', '-c', file]],
    start: (file) => [pythonProgram('deploy', 'envoy'), ['-c', file, '--concurrency', '1', '--use-dynamic-base-id']],
  },
};

/** The file with other addresses and ports. The rest stays as it is shipped. */
function adapted(text: string, port: number, admin: number, gateways: readonly HttpGateway[], folder: string): string {
  const ports = gateways.map(({ origin }) => new URL(origin).port);
  const dns = text.includes('server-template');
  const servers = text
    .split('\n')
    // Three addresses become two.
    .filter((line) => !line.includes('10.0.0.13'))
    .join('\n')
    .replace('10.0.0.11:8808', `127.0.0.1:${ports[0]}`)
    .replace('10.0.0.12:8808', `127.0.0.1:${ports[1]}`)
    .replace('10.0.0.11, port_value: 8808', `127.0.0.1, port_value: ${ports[0]}`)
    .replace('10.0.0.12, port_value: 8808', `127.0.0.1, port_value: ${ports[1]}`)
    .replace(/ {4}server-template .*/, ports.map((one, i) => `    server toolgate-${i} 127.0.0.1:${one}`).join('\n'))
    .replace(/\b9901\b/, String(admin))
    .replace('address: 0.0.0.0, port_value: 8080', `address: 127.0.0.1, port_value: ${port}`)
    .replace('bind :8080', `bind 127.0.0.1:${port}`)
    .replace('listen 8080', `listen 127.0.0.1:${port}`);
  expect(servers).not.toMatch(/8080|10\.0\.0\.|8808/);
  expect(dns).toBe(text !== servers && dns);
  return withTemp(servers, folder);
}

/** Debian's nginx keeps temporary files in folders of its package, which only the program was taken from. */
function withTemp(text: string, folder: string): string {
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];
  return text.replace(
    'http {',
    `http {\n${paths.map((one) => `${one}_temp_path ${folder}/${one};`).join('\n')}\naccess_log off;`,
  );
}

const gateway = () =>
  startHttp({
    config: `controls = []\n${serversToml({ up: server('basic') })}`,
    env: { BEARER_TOKEN: TOKEN },
  });

const call = (url: string) =>
  post(
    { url },
    'tools/call',
    { name: 'up_echo', arguments: { text: 'hello' } },
    { headers: { authorization: `Bearer ${TOKEN}` } },
  );

/** How many calls a gateway has answered. */
async function calls({ origin }: HttpGateway): Promise<number> {
  const text = await (await fetch(`${origin}/metrics`, { headers: { authorization: `Bearer ${TOKEN}` } })).text();
  const samples = readExposition(text).get('toolgate_calls_total')?.samples ?? [];
  return samples.filter(({ labels }) => labels.outcome === 'ok').reduce((sum, { value }) => sum + value, 0);
}

for (const [name, balancer] of Object.entries(BALANCERS))
  describe.skipIf(balancer.isMissing())(name, () => {
    const text = readFileSync(join(deploy, balancer.file), 'utf8');

    it('accepts the file as it is shipped', async () => {
      const folder = tempFolder();
      const name = balancer.file.split('/').at(-1)!;
      const files = tempFolder({ [name]: withTemp(text, folder) });
      const { code, stdout, stderr } = await runTool(...balancer.check(join(files, name), folder));
      expect(code, stdout + stderr).toBe(0);
    });

    it('shares calls between two Toolgates, and goes on when one stops', async () => {
      const gateways = await Promise.all([gateway(), gateway()]);
      const [port, admin] = [await freePort(), await freePort()];
      const folder = tempFolder();
      const config = adapted(text, port, admin, gateways, folder);
      const name = balancer.file.split('/').at(-1)!;
      const file = join(tempFolder({ [name]: config }), name);
      const child: Child = startChild(...balancer.start(file, folder), { cwd: folder, env: childEnv() });
      const url = `http://127.0.0.1:${port}/mcp`;
      const isUp = () =>
        fetch(`http://127.0.0.1:${port}/ready`).then(
          ({ status }) => status === 200,
          () => false,
        );
      await waitFor(isUp, 30_000);

      const before = await Promise.all(gateways.map(calls));
      for (let i = 0; i < 20; i++) {
        const response = await call(url);
        expect(response.status, child.stderr()).toBe(200);
        expect(await response.text()).toContain('hello');
      }
      const after = await Promise.all(gateways.map(calls));
      // In turn; /ready and health checks may come between.
      for (const i of [0, 1]) expect(after[i]! - before[i]!).toBeGreaterThanOrEqual(5);
      expect((await fetch(`http://127.0.0.1:${port}/metrics`)).status).toBe(404);
      // Without a token a request from elsewhere is not taken for one of this machine.
      const foreign = await post({ url }, 'tools/list');
      expect(foreign.status).toBe(401);

      await gateways[0].stop();
      for (let i = 0; i < 10; i++) {
        const response = await call(url);
        expect(response.status, `call ${i} after the stop`).toBe(200);
        await response.text();
      }
      await child.stop();
    });
  });

describe('an event stream', () => {
  it.skipIf(isMissing('nginx'))('passes nginx as it comes', async () => {
    const gateways = await Promise.all([gateway(), gateway()]);
    const port = await freePort();
    const folder = tempFolder();
    const text = adapted(readFileSync(join(deploy, 'balancers/nginx.conf'), 'utf8'), port, 1, gateways, folder);
    const file = join(tempFolder({ 'nginx.conf': text }), 'nginx.conf');
    const child = startChild(...BALANCERS.nginx!.start(file, folder), { cwd: folder, env: childEnv() });
    const url = `http://127.0.0.1:${port}/mcp`;
    await waitFor(
      () =>
        fetch(`http://127.0.0.1:${port}/ready`).then(
          ({ ok }) => ok,
          () => false,
        ),
      30_000,
    );
    // The stream has no end. Its first event has to come nevertheless.
    const aborting = new AbortController();
    const response = await post(
      { url },
      'subscriptions/listen',
      { notifications: { toolsListChanged: true } },
      { headers: { authorization: `Bearer ${TOKEN}` }, signal: aborting.signal },
    );
    expect(response.headers.get('content-type')).toContain('text/event-stream');
    const { value } = await response.body!.getReader().read();
    expect(new TextDecoder().decode(value)).toContain('data:');
    aborting.abort();
    await child.stop();
  });
});
