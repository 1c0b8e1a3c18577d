/**
 * Thousands of valid and invalid requests through one gateway: each ends as the specification says, and none reaches
 * the wrong server.
 */
import { closeSync, openSync, readSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { beforeAll, expect, it } from 'vitest';
import { atEnd } from '../support/cleanup.ts';
import { type HttpGateway, startHttp } from '../support/gateway.ts';
import { bodyText, type Draft } from '../support/modern-draft.ts';
import { MARKED, NAMES, TOOL_DEFINITIONS, URIS } from '../support/modern-offer.ts';
import { server, serversToml } from '../support/server.ts';
import { useProcesses } from '../support/switch.ts';
import { tempFolder } from '../support/temp.ts';
import { isWide } from '../support/wide.ts';
import { drafts } from './cases.ts';
import { NO_ID, NO_ID_OR_NULL, type Outcome, predict, type Routed } from './oracle.ts';
import { openWire, type Wire, type WireReply } from './wire.ts';

useProcesses();

const RUNS = Number(process.env.FUZZ_RUNS ?? (isWide ? 3_000 : 500));

let gateway: HttpGateway;
let wire: Wire;
/** What the servers have received since the last read. */
let readLogs: (() => Received[])[];

interface Received {
  readonly method: string;
  readonly params?: { name?: string; uri?: string; arguments?: unknown; _meta?: Record<string, unknown> };
}

beforeAll(async () => {
  const folder = tempFolder({ 'tools.json': JSON.stringify(TOOL_DEFINITIONS) });
  const logs = [join(folder, 'bare.log'), join(folder, 'up.log')];
  for (const log of logs) writeFileSync(log, '');
  const [bare, up] = logs.map((log) =>
    server(
      'basic',
      ...['--log', log, '--raw-tools', join(folder, 'tools.json'), '--tools', [...NAMES, MARKED].join(',')],
      ...['--resources', URIS.join(','), '--prompts', NAMES.join(',')],
    ),
  ) as [string, string];
  gateway = await startHttp({ config: `controls = []\n${serversToml({ '': bare, up })}` });
  wire = openWire(gateway.origin);
  atEnd(() => wire.close());
  readLogs = logs.map(follow);
  for (const read of readLogs) read();
});

/** Reads a growing file from where the last read ended. */
function follow(file: string): () => Received[] {
  const opened = openSync(file, 'r');
  atEnd(() => closeSync(opened));
  const chunk = Buffer.alloc(65_536);
  return () => {
    let text = '';
    for (let size = -1; size !== 0; text += chunk.toString('utf8', 0, size)) size = readSync(opened, chunk);
    return text
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line) as Received);
  };
}

interface Answer {
  readonly id?: unknown;
  readonly result?: { resultType?: string; isError?: boolean; content?: { text: string }[] };
  readonly error?: { code: number; message: string };
}

/** The HTTP status for an error code that refuses the request itself. */
const statusOf = (code: number) => (code === -32601 ? 404 : 400);

/** The kind of outcome, for the statistics. Throws if the outcome is not the prescribed one. */
function judge(expected: Outcome, { status, type, body }: WireReply): string | number {
  if (expected.kind === 'noted') {
    expect({ status, body }).toEqual({ status: 202, body: '' });
    return 'noted';
  }
  expect(type).toBe('application/json');
  const answer = JSON.parse(body) as Answer;
  switch (expected.kind) {
    case 'legacy':
      expect(answer.error).toBeDefined();
      expect([400, 404]).toContain(status);
      return 'legacy';
    case 'refused': {
      const { code } = answer.error!;
      expect([...expected.codes]).toContain(code);
      expect(status).toBe(statusOf(code));
      if (expected.id === NO_ID_OR_NULL) expect(answer.id ?? null).toBeNull();
      else if (expected.id === NO_ID) expect(answer).not.toHaveProperty('id');
      else expect(answer.id).toBe(expected.id);
      return code;
    }
    case 'answered':
      expect([status, answer.id]).toEqual([200, expected.id]);
      if (!expected.isError) expect(answer.result?.resultType).toBe('complete');
      else if (expected.method === 'tools/call') expect(answer.result).toMatchObject({ isError: true });
      else expect(answer.error).toMatchObject({ code: -32602 });
      return 'answered';
    case 'routed':
      expect([status, answer.id]).toEqual([200, expected.id]);
      expect(answer.result).toMatchObject({ resultType: 'complete' });
      if (expected.request.method === 'tools/call') {
        const { name, args = {} } = expected.request;
        expect(JSON.parse(answer.result!.content![0]!.text)).toMatchObject({ tool: name, arguments: args });
      }
      return 'routed';
    default:
      return expected satisfies never;
  }
}

function routedOf({ method, params = {} }: Received): Routed {
  expect(Object.keys(params._meta ?? {}).filter((key) => key.includes('modelcontextprotocol'))).toEqual([]);
  return { method, name: (method === 'resources/read' ? params.uri : params.name)!, args: params.arguments };
}

async function tryOne(draft: Draft, counts: Map<string | number, number>): Promise<void> {
  const expected = predict(draft);
  const reply = await wire.post(draft.lines, bodyText(draft));
  const received = readLogs.map((read) => read().map(routedOf));
  try {
    const end = judge(expected, reply);
    counts.set(end, (counts.get(end) ?? 0) + 1);
    expect(received).toEqual(
      [0, 1].map((index) => (expected.kind === 'routed' && expected.server === index ? [expected.request] : [])),
    );
  } catch (error) {
    const sent = [...draft.lines.map(({ name, value }) => `${name}: ${value}`), bodyText(draft)].join('\n');
    throw new Error(`${(error as Error).message}\n\nsent:\n${sent}\n\nanswered ${reply.status}:\n${reply.body}`, {
      cause: error,
    });
  }
}

it(`${RUNS} requests end as prescribed, and only those with matching headers and body reach a server`, {
  timeout: 120_000,
}, async () => {
  const counts = new Map<string | number, number>();
  const before = performance.now();
  await fc.assert(
    fc.asyncProperty(drafts, (draft) => tryOne(draft, counts)),
    { numRuns: RUNS },
  );
  const seconds = (performance.now() - before) / 1000;
  console.info(`${Math.round(RUNS / seconds)} requests a second:`, Object.fromEntries(counts));
  // Every outcome must occur often. A run of only refusals, or of none, would prove little. A short run may miss some.
  const least = isWide ? RUNS / 1_000 : 0;
  for (const end of ['routed', 'answered', 'noted', 'legacy', -32700, -32600, -32601, -32602, -32020, -32022])
    expect(counts.get(end) ?? 0, String(end)).toBeGreaterThanOrEqual(least);
  expect((await fetch(`${gateway.origin}/health`)).status).toBe(200);
  expect(gateway.process.exitCode).toBeNull();
  expect(gateway.stderr()).not.toContain('failed unexpectedly');
});
