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
  paths: {
    http: {
      names: ['direct', 'bare', 'toolgate', 'governed', 'fastmcp', 'mcpo', 'mcp-hub'],
      pins,
      machine: { date: '2026-01-02', cpu: 'a CPU', cores: 2, node: '20.19.0' },
      load: ['1.0', '2.5'],
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
    expect(text).toContain('2026-01-02, a CPU, 2 cores, Node 20.19.0. The load average was 1 to 2.5;');
    expect(text).toContain('| HTTP to HTTP, 32 callers | 1.00 | – | 3.00 (FastMCP proxy) | 3.00 | 1 |');
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

describe('docs/benchmark.md', () => {
  const read = (path: string) => readFileSync(join(root, path), 'utf8');
  const kept = JSON.parse(read('bench/peers/results.json')) as {
    paths: Record<string, { runs: Record<string, { samples: Record<string, unknown> }> }>;
  };

  it('is what the script writes from the kept results, with its plot', () => {
    expect(read('docs/benchmark.md')).toBe(page(kept, PEERS, 'images/benchmark.svg'));
    expect(read('docs/images/benchmark.svg')).toBe(plot(kept, PEERS));
  });

  it('has all paths and runs, each with Toolgate, the bare proxy and a direct connection, and eight peers in all', () => {
    expect(Object.keys(kept.paths).sort()).toEqual(['http', 'modern', 'modern-stdio', 'stdio']);
    const runs = Object.values(kept.paths).flatMap(({ runs }) => Object.values(runs));
    expect(runs).toHaveLength(10);
    const measured = runs.map(({ samples }) => Object.keys(samples));
    for (const names of measured) expect(names).toEqual(expect.arrayContaining(['direct', 'bare', 'toolgate']));
    expect(Object.keys(PEERS).filter((name) => measured.flat().includes(name)).length).toBeGreaterThanOrEqual(8);
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
