/** The dashboard and the alerts of the chart: valid, tested, and only about metrics that a gateway reports. */
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { connectHttp } from '../support/connection.ts';
import { root } from '../support/docs-page.ts';
import { type Family, readExposition } from '../support/exposition.ts';
import { isMissing } from '../support/needs.ts';
import { basic, open } from '../support/open-gateway.ts';
import { tempFolder } from '../support/temp.ts';
import { runTool } from '../support/tools.ts';

const folder = join(root, 'deploy', 'helm');
const read = (name: string) => readFileSync(join(folder, name), 'utf8');

interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly targets?: readonly { readonly expr: string }[];
}
const dashboard = JSON.parse(read('toolgate/files/dashboard.json')) as {
  panels: readonly Panel[];
  templating: { list: readonly { name: string; query: string | { query: string } }[] };
};
const { groups } = parse(read('toolgate/files/alerts.yml')) as {
  groups: { rules: { alert: string; expr: string }[] }[];
};
const rules = groups.flatMap((group) => group.rules);
const adapter = parse(read('prometheus-adapter.yaml')) as {
  rules: { custom: { seriesQuery: string; name: { as: string }; metricsQuery: string }[] };
};
const shown = dashboard.panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr));
const asked = dashboard.templating.list.flatMap(({ query }) => (typeof query === 'string' ? [] : [query.query]));

/** As Grafana fills them in before it asks Prometheus. */
const filled = (expr: string) =>
  expr.replaceAll('$__rate_interval', '1m').replaceAll(/\$(job|instance|server)\b/g, '.*');

/** Labels that Prometheus and Kubernetes add when they scrape. */
const ADDED = ['job', 'instance', 'namespace', 'pod'];

/** What an expression says about metrics: each with the labels that it is matched by, and all labels that are grouped by. */
function mentioned(expr: string): { metrics: [name: string, labels: string[]][]; grouped: string[] } {
  const metrics = [...expr.matchAll(/\b((?:toolgate|process|nodejs)_\w+)(?:\{([^}]*)\})?/g)].map(
    ([, name, inside = '']): [string, string[]] => [
      name!,
      [...inside.matchAll(/(\w+)(?:=~|!~|!=|=)"/g)].map((found) => found[1]!),
    ],
  );
  const grouped = [...expr.matchAll(/\b(?:by|on) \(([^)]*)\)/g)].flatMap(([, names]) => names!.split(', '));
  return { metrics, grouped };
}

/** The metrics of a gateway that has been used, with the labels of each. */
async function reported(): Promise<Map<string, Set<string>>> {
  const { origin, url } = await open({ a: basic() });
  const { client } = await connectHttp(url);
  await client.callTool({ name: 'a_echo', arguments: {} });
  await client.callTool({ name: 'nothing', arguments: {} }).catch(() => {});
  await fetch(url, { method: 'POST', headers: { origin: 'http://evil.example' } });
  const families = readExposition(await (await fetch(`${origin}/metrics`)).text());
  const all = new Map<string, Set<string>>();
  for (const [name, { samples }] of families as Map<string, Family>) {
    all.set(name, all.get(name) ?? new Set());
    for (const sample of samples)
      all.set(sample.name, new Set([...(all.get(sample.name) ?? []), ...Object.keys(sample.labels)]));
  }
  return all;
}

describe('the dashboard, the alerts and the metrics for autoscaling', () => {
  it('name only metrics that a gateway reports, with labels that these have', async () => {
    const metrics = await reported();
    const custom = adapter.rules.custom.flatMap(({ seriesQuery, metricsQuery }) => [
      seriesQuery,
      metricsQuery.replace('<<.LabelMatchers>>', 'pod="x"').replace('<<.GroupBy>>', 'pod'),
    ]);
    for (const expr of [...shown, ...asked, ...rules.map((rule) => rule.expr), ...custom]) {
      const used = mentioned(expr);
      expect(used.metrics.length, expr).toBeGreaterThan(0);
      const known = new Set(ADDED);
      for (const [name, labels] of used.metrics) {
        expect([...metrics.keys()], expr).toContain(name);
        // A metric without a sample yet shows no labels.
        const own = metrics.get(name)!;
        for (const label of own) known.add(label);
        if (own.size > 0 || !EMPTY.has(name))
          expect([...ADDED, ...own], `${name} in ${expr}`).toEqual(expect.arrayContaining(labels));
        else for (const label of EMPTY.get(name)!) known.add(label);
      }
      expect([...known], expr).toEqual(expect.arrayContaining(used.grouped));
    }
  });

  it('are what the chart scales by', () => {
    const template = read('toolgate/templates/horizontalpodautoscaler.yaml');
    const wanted = [...template.matchAll(/metric:\n\s+name: (\w+)/g)].map(([, name]) => name);
    expect(adapter.rules.custom.map(({ name }) => name.as)).toEqual(wanted);
  });
});

/** Metrics that have no samples until something happens that this test does not do. */
const EMPTY = new Map([
  ['toolgate_server_health_checks_total', ['server', 'outcome']],
  ['toolgate_list_changes_total', ['list']],
  ['toolgate_dry_run_total', ['decision']],
  ['toolgate_calls_refused_total', ['code']],
  ['toolgate_http_refused_total', ['code']],
  ['toolgate_cache_misses_total', ['server', 'kind', 'tool']],
]);

describe.skipIf(isMissing('promtool'))('promtool', () => {
  it('accepts every alert and every query of the dashboard', async () => {
    const queries = [...shown].map((expr, i) => ({ record: `panel:${i}`, expr: filled(expr) }));
    const checked = tempFolder({
      'dashboard.yml': JSON.stringify({ groups: [{ name: 'dashboard', rules: queries }] }),
    });
    const { code, stderr } = await runTool('promtool', [
      'check',
      'rules',
      join(folder, 'toolgate/files/alerts.yml'),
      join(checked, 'dashboard.yml'),
    ]);
    expect([code, stderr]).toEqual([0, '']);
  });

  it('sees each alert fire when it should, and not before', async () => {
    const tests = readFileSync(join(import.meta.dirname, 'alerts.test.yml'), 'utf8');
    for (const { alert } of rules) {
      const found = [...tests.matchAll(new RegExp(`alertname: ${alert}\\b`, 'g'))];
      expect(found.length, alert).toBeGreaterThan(0);
    }
    const run = tempFolder();
    copyFileSync(join(folder, 'toolgate/files/alerts.yml'), join(run, 'alerts.yml'));
    writeFileSync(join(run, 'tests.yml'), tests);
    const { code, stdout, stderr } = await runTool('promtool', ['test', 'rules', join(run, 'tests.yml')]);
    expect(code, stdout + stderr).toBe(0);
  });
});

describe('the dashboard', () => {
  it('has panels that do not overlap, with an id and a query each', () => {
    const { panels } = dashboard;
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
    const taken = new Map<string, string>();
    for (const { title, type, targets = [], gridPos } of panels) {
      expect(type === 'row' || targets.length > 0, title).toBe(true);
      expect(gridPos.x + gridPos.w, title).toBeLessThanOrEqual(24);
      for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++)
        for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
          expect(taken.get(`${x},${y}`), title).toBeUndefined();
          taken.set(`${x},${y}`, title);
        }
    }
  });
});
