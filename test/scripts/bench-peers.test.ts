/** npm run bench:peers: its pins are exact, its page and plot say what was measured, and what was not. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { root } from '../support/docs-page.ts';
import { runTool } from '../support/tools.ts';

interface Peer {
  readonly title: string;
  readonly about: string;
  readonly why?: string;
  readonly http?: Start;
  readonly stdio?: Start;
}
type Start = (
  upstream: { url?: string; command?: string; args?: readonly string[] },
  port: number,
  folder: string,
) => { command: string[]; path: string };

const load = (name: string) => import(join(root, 'bench', 'peers', name)) as Promise<Record<string, never>>;
const { PEERS } = (await load('peers.mjs')) as unknown as { PEERS: Record<string, Peer> };
const { page, plot } = (await load('report.mjs')) as unknown as Record<'page' | 'plot', (...args: unknown[]) => string>;
const { before, peers: pins } = JSON.parse(readFileSync(join(root, 'bench/peers/pins.json'), 'utf8')) as {
  before: string;
  peers: Record<string, { registry: string; package: string; version: string }>;
};

describe('the pins', () => {
  it('name an exact version in a registry for every peer, and a day for what these need', () => {
    expect(Object.keys(pins).sort()).toEqual(Object.keys(PEERS).sort());
    for (const { registry, version } of Object.values(pins)) {
      expect(['npm', 'pypi', 'go']).toContain(registry);
      expect(version).toMatch(/^v?\d+\.\d+\.\d+(\.post\d+)?$/);
    }
    expect(Date.parse(before)).toBeLessThan(Date.now() + 86_400_000);
  });

  it('are started on loopback, each in front of the upstream', async () => {
    const { tempFolder } = await import('../support/temp.ts');
    for (const [name, peer] of Object.entries(PEERS)) {
      expect(peer.why !== undefined || peer.http !== undefined || peer.stdio !== undefined, name).toBe(true);
      for (const [start, upstream] of [
        [peer.http, { url: 'http://127.0.0.1:1/mcp' }],
        [peer.stdio, { command: 'node', args: ['upstream-stdio.mjs'] }],
      ] as const) {
        if (start === undefined) continue;
        const { command, path } = start(upstream, 4321, tempFolder());
        expect(path, name).toMatch(/^\//);
        expect(command.join(' '), name).not.toContain('0.0.0.0');
      }
    }
  });
});

/** Two rounds: twice and four times the CPU of the bare proxy. */
const samples = (cpu: number) => [
  { cpu, perSecond: 10, p50: 1_000, p99: 2_000 },
  { cpu: cpu * 2, perSecond: 20, p50: 3_000, p99: 4_000 },
];
const bare = [
  { cpu: 10, perSecond: 100, p50: 100, p99: 200 },
  { cpu: 10, perSecond: 100, p50: 100, p99: 200 },
];
const run = { samples: { direct: samples(Number.NaN), bare, toolgate: bare, fastmcp: samples(20) }, reasons: {} };
const results = {
  names: ['direct', 'bare', 'toolgate', 'governed', 'fastmcp', 'mcpo', 'mcp-hub'],
  pins,
  rounds: 5,
  machine: { date: '2026-01-02', cpu: 'a CPU', cores: 2, loadBefore: '1.0', loadAfter: '2.0', node: '20.19.0' },
  paths: {
    http: {
      reasons: { mcpo: 'it ended: a | b <c>', 'mcp-hub': PEERS['mcp-hub']!.why },
      runs: { one: run, many: run, big: { samples: run.samples, reasons: { governed: 'No reply in 60 s' } } },
    },
  },
};

describe('the page', () => {
  const text = page(results, PEERS, 'images/benchmark.svg');

  it('has the median of the ratios of each round', () => {
    expect(text).toContain('| FastMCP proxy | 3.00 | 3.00 | 3.00 |');
    expect(text).toContain('| Toolgate | 1.00 | 1.00 | 1.00 |');
    expect(text).toContain('2026-01-02, a CPU, 2 cores, load average 1.0 before and 2.0 after');
    expect(text).toContain('median of 2 rounds of one run');
  });

  it('names what did not run, with the reason', () => {
    expect(text).toContain('| mcpo | HTTP to HTTP | it ended: a \\| b &lt;c> |');
    expect(text).toContain(`| mcp-hub | HTTP to HTTP | ${PEERS['mcp-hub']!.why} |`);
    expect(text).toContain('| Toolgate with policy, limits and audit | HTTP to HTTP, 1 MB | No reply in 60 s |');
    expect(text).toContain('through 1 other published');
  });

  it('shows the version of each peer', () => {
    expect(text).toContain(`pypi: \`fastmcp\` ${pins.fastmcp!.version}`);
  });
});

describe('the plot', () => {
  it('is well-formed, with a bar and a figure for each contender that ran', async () => {
    const svg = plot(results, PEERS);
    for (const title of ['bare proxy', 'Toolgate', 'FastMCP proxy']) expect(svg).toContain(`>${title}</text>`);
    expect(svg).toContain('>3.00</text>');
    expect(svg).not.toMatch(/NaN|undefined|Infinity/);
    expect(svg.match(/<rect /g)).toHaveLength(1 + 3);
    // Every element is closed, in order.
    const open: string[] = [];
    for (const [, close, name, self] of svg.matchAll(/<(\/?)([a-z]+)[^>]*?(\/?)>/g)) {
      if (close) expect(open.pop()).toBe(name);
      else if (!self) open.push(name!);
    }
    expect(open).toEqual([]);
  });
});

it('bench:peers refuses contenders that it does not know', async () => {
  const { code, stderr } = await runTool(process.execPath, [join(root, 'bench/peers/run.mjs'), '--only', 'toolgat']);
  expect(code).toBe(1);
  expect(stderr).toMatch(/^Unknown: toolgat\. Known: direct, bare, toolgate, /);
});
