/** Health checks of servers over HTTP: one that hangs or is unreachable is detected without a call. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { startStdio } from '../support/gateway.ts';
import { waitFor } from '../support/processes.ts';
import { logged, pidOf, toml, toolNames, toolsToBe } from '../support/running-gateway.ts';
import { startHttpServer } from '../support/server.ts';
import { startSdk, startWeb } from '../support/sse-server.ts';
import { useProcesses } from '../support/switch.ts';
import { DOWN, downs, halt, often, other, otherTools } from './health.ts';

// A server is suspended, which only a process can be.
useProcesses('servers');

describe('health checks of a server over HTTP', () => {
  it('remove a hanging server, and restore it when it answers', async () => {
    const upstream = await startHttpServer('--tools', 'echo,whoami');
    const config = toml([{ namespace: 'up', url: upstream.url, timeout: '1s' }, other], often);
    const gateway = await startStdio({ config });
    expect(await pidOf(gateway.client, 'up')).toBe(upstream.pid);
    halt(upstream.pid);
    await logged(gateway, DOWN, 10_000);
    await toolsToBe(gateway.client, otherTools);
    process.kill(upstream.pid, 'SIGCONT');
    await toolsToBe(gateway.client, ['up_echo', 'up_whoami', ...otherTools], 20_000);
    expect(await pidOf(gateway.client, 'up')).toBe(upstream.pid);
  });

  /**
   * A server without a stream, so that only a health check can notice. It can be made to answer everything with a
   * status.
   */
  async function startPlain() {
    const web = await startWeb(async (request, response) => {
      const body = Buffer.concat(await request.toArray()).toString();
      if (request.method !== 'POST') return response.writeHead(405).end();
      if (plain.status !== 200) return response.writeHead(plain.status).end('Nobody is there');
      const { id, method } = JSON.parse(body);
      if (method === 'ping') plain.pings.push({ path: request.url ?? '', time: performance.now() });
      if (id === undefined) return response.writeHead(202).end();
      const results: Record<string, unknown> = {
        initialize: {
          protocolVersion: '2025-06-18',
          capabilities: { tools: {} },
          serverInfo: { name: 'plain', version: '1' },
        },
        ping: {},
        'tools/list': { tools: [{ name: 'only', inputSchema: { type: 'object' } }] },
      };
      const result = results[method];
      const error = { code: -32_601, message: 'Method not found' };
      response.writeHead(200, { 'content-type': 'application/json' });
      return response.end(JSON.stringify({ jsonrpc: '2.0', id, ...(result ? { result } : { error }) }));
    });
    const plain = { ...web, status: 200, pings: [] as { path: string; time: number }[] };
    return plain;
  }

  it('notice an unreachable server before a call fails, and restore it when it answers', async () => {
    const plain = await startPlain();
    const gateway = await startStdio({ config: toml([{ namespace: 'up', url: plain.origin }, other], often) });
    expect(await toolNames(gateway.client)).toEqual(['up_only', ...otherTools]);
    await plain.stop();
    await logged(gateway, 'down: refused the connection; is it running?');
    await toolsToBe(gateway.client, otherTools);
    await plain.start();
    await toolsToBe(gateway.client, ['up_only', ...otherTools], 20_000);
  });

  it('notice a server that is down behind a proxy', async () => {
    const plain = await startPlain();
    const gateway = await startStdio({ config: toml([{ namespace: 'up', url: plain.origin }, other], often) });
    expect(await toolNames(gateway.client)).toEqual(['up_only', ...otherTools]);
    plain.status = 503;
    await toolsToBe(gateway.client, otherTools);
    await logged(gateway, 'HTTP status 503');
    plain.status = 200;
    await toolsToBe(gateway.client, ['up_only', ...otherTools], 20_000);
  });

  it('use the HTTP+SSE transport for a server of the first revision', async () => {
    const sdk = await startSdk();
    const gateway = await startStdio({ config: toml([{ namespace: 's', url: sdk.url, transport: 'sse' }], often) });
    await toolNames(gateway.client);
    const posts = () => sdk.seen.filter(({ verb }) => verb === 'POST').length;
    const before = posts();
    await waitFor(() => posts() > before + 3);
    expect(downs(gateway)).toEqual([]);
  });

  it('are spread out over twenty servers and cost little CPU', async () => {
    const plain = await startPlain();
    const servers = Array.from({ length: 20 }, (_, n) => ({ namespace: `s${n}`, url: `${plain.origin}/${n}` }));
    const gateway = await startStdio({ config: toml(servers, { health_interval: '1s' }), process: true });
    expect(await toolNames(gateway.client)).toHaveLength(20);
    const start = cpuOf(gateway.pid);
    const began = performance.now();
    const timesOf = (n: number) => plain.pings.filter(({ path }) => path === `/${n}`).map(({ time }) => time);
    await waitFor(() => servers.every((_, n) => timesOf(n).length > 3));
    const share = (cpuOf(gateway.pid) - start) / (performance.now() - began);
    // At the default interval this is thirty times less.
    expect(share).toBeLessThan(0.15);
    // In most tenths of a second of a round, some servers are checked. A pause of the machine may spoil one round.
    const spread = [1, 2, 3].map((round) => {
      const times = servers.map((_, n) => timesOf(n)[round]!);
      return new Set(times.map((time) => Math.floor(time / 100))).size;
    });
    expect(Math.max(...spread)).toBeGreaterThan(4);
  });
});

/** Milliseconds of CPU that a process has used. */
function cpuOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) * 10;
}
