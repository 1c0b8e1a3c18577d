/** Checks the blocks of docs/metrics.md for other programs against the gateway that the page has just started. */
import { expect } from 'vitest';
import { parse } from 'yaml';
import type { Check } from '../support/docs-page.ts';
import { readExposition } from '../support/exposition.ts';

interface Scrape {
  readonly metrics_path: string;
  readonly static_configs: { readonly targets: string[] }[];
}

/** Scrapes the gateway as Prometheus would. */
const prometheus: Check = async (text, { env }) => {
  const { scrape_configs } = parse(text) as { scrape_configs: Scrape[] };
  const [target] = scrape_configs[0]!.static_configs[0]!.targets;
  expect(target).toBe(`127.0.0.1:${env.CORE_PORT}`);
  const response = await fetch(`http://${target}${scrape_configs[0]!.metrics_path}`);
  for (const [name, { samples }] of readExposition(await response.text())) {
    seen.add(name);
    for (const sample of samples) seen.add(sample.name);
  }
};

/** The metric names that the page's gateway has reported. */
const seen = new Set<string>();

const promql: Check = (text) => {
  const names = text.match(/\btoolgate_\w+/g) ?? [];
  expect(names.length).toBeGreaterThan(5);
  for (const name of names) expect([...seen], name).toContain(name);
};

/** The collector must listen at the address the page sends to, and accept everything that is sent. */
const collector: Check = (text) => {
  const { receivers, service } = parse(text) as {
    receivers: { otlp: { protocols: { http: { endpoint: string } } } };
    service: { pipelines: object };
  };
  expect(receivers.otlp.protocols.http.endpoint).toBe('127.0.0.1:4318');
  expect(Object.keys(service.pipelines)).toEqual(['traces', 'metrics']);
};

export const figureChecks: Record<string, Check> = {
  'prometheus.yml': prometheus,
  promql,
  'collector.yaml': collector,
};
