/** `/metrics`: in the text format of Prometheus (0.0.4), or as JSON for clients that ask for JSON. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { VERSION } from '../../../base/version.ts';
import type { Gateway } from '../../../gateway/gateway.ts';
import type { Family, Labels } from '../../../observe/families.ts';
import { sendJson, sendText } from '../wire/reply.ts';

export function sendMetrics(
  gateway: Gateway,
  { headers: asked }: IncomingMessage,
  response: ServerResponse,
  headers: readonly string[],
): void {
  const { metrics } = gateway;
  if (asked.accept === 'application/json') {
    const body = { version: VERSION, calls: metrics.entries(), agents: metrics.agents() };
    sendJson(response, 200, body, headers);
    return;
  }
  const text = gateway.measure().map(printFamily).join('');
  sendText(response, 200, 'text/plain; version=0.0.4; charset=utf-8', text, headers);
}

function printFamily(family: Family): string {
  const { name, help, type } = family;
  const lines = family.type === 'histogram' ? printHistogram(family) : family.samples.map(printOne(name));
  return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${lines.join('')}`;
}

function printHistogram({ name, samples }: Extract<Family, { type: 'histogram' }>): string[] {
  return samples.flatMap(({ labels, value: { buckets, sum, count } }) => [
    ...buckets.map((bucket) => line(`${name}_bucket`, { ...labels, le: String(bucket.bound) }, bucket.count)),
    line(`${name}_bucket`, { ...labels, le: '+Inf' }, count),
    line(`${name}_sum`, labels, sum),
    line(`${name}_count`, labels, count),
  ]);
}

function printOne(name: string) {
  return ({ labels, value }: { readonly labels: Labels; readonly value: number }) => line(name, labels, value);
}

function line(name: string, labels: Labels, value: number): string {
  const pairs = Object.entries(labels).map(([label, text]) => `${label}="${escaped(text)}"`);
  return `${name}${pairs.length === 0 ? '' : `{${pairs.join(',')}}`} ${value}\n`;
}

const ESCAPED: Readonly<Record<string, string>> = { '\\': '\\\\', '"': '\\"', '\n': '\\n' };

function escaped(value: string): string {
  return value.replace(/[\\"\n]/g, (char) => ESCAPED[char]!);
}
