/** Copies of the audit: real listeners get every line, and a target that is away holds up nothing. */
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, createServer as createTcpServer } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { configFromValue } from '../../src/index.ts';
import { openAuditCopies } from '../../src/observe/audit-copies.ts';
import { auditOf, isAdmin, isCall, type Line, readLines, waitForLines } from '../support/audit-records.ts';
import { atEnd } from '../support/cleanup.ts';
import { startHttp } from '../support/gateway.ts';
import { waitFor } from '../support/processes.ts';
import { server, serversToml } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';

const config = (...copies: string[]) =>
  `controls = []\ndenied_tools = { a = ["count"] }\n[audit]\ncopies = ${JSON.stringify(copies)}\n${serversToml({ a: server('basic') })}`;

/** Calls a tool and is denied another one. Returns where the gateway ran, and its lines of both. */
async function use(...copies: string[]) {
  const gateway = await startHttp({ config: config(...copies) });
  const { client } = await gateway.connect();
  await client.callTool({ name: 'a_echo', arguments: {} });
  await client.callTool({ name: 'a_count', arguments: {} });
  return { gateway, lines: await waitForLines(gateway.cwd, 2, (line) => !isAdmin(line)) };
}

const MESSAGE = /^<(\d+)>1 (\S+Z) \S+ toolgate \d+ audit - (\{.*\})$/;

function parse(message: string): { priority: number; line: Line } {
  const [, priority, time, text] = MESSAGE.exec(message) ?? expect.fail(message);
  const line = JSON.parse(text!) as Line;
  expect(line.time).toBe(time);
  return { priority: Number(priority), line };
}

const ofUse = (messages: readonly { priority: number; line: Line }[]) =>
  messages
    .filter(({ line }) => !isAdmin(line))
    .map(({ priority, line: { kind, server: key, status } }) => [priority, kind, key, status]);
const EXPECTED = [
  [13 * 8 + 6, 'call', 'a', 'ok'],
  [13 * 8 + 4, 'denial', 'a', 'item_unknown'],
];

describe('a copy of the audit', () => {
  it('goes to syslog over UDP', async () => {
    const socket = createSocket('udp4');
    atEnd(() => void socket.close());
    const messages: string[] = [];
    socket.on('message', (bytes) => messages.push(bytes.toString()));
    socket.bind(0, '127.0.0.1');
    await once(socket, 'listening');
    await use(`syslog+udp://127.0.0.1:${socket.address().port}`);
    await waitFor(() => messages.length >= 3);
    expect(ofUse(messages.map(parse))).toEqual(EXPECTED);
  });

  it.each(['tcp', 'unix'])('goes to syslog over %s, each message with its length', async (kind) => {
    let received = '';
    const listener = createTcpServer((socket) => socket.on('data', (chunk: Buffer) => (received += chunk)));
    atEnd(() => void listener.close());
    const path = join(tempFolder(), 'log.sock');
    if (kind === 'tcp') listener.listen(0, '127.0.0.1');
    else listener.listen(path);
    await once(listener, 'listening');
    const { port } = listener.address() as AddressInfo;
    await use(kind === 'tcp' ? `syslog+tcp://127.0.0.1:${port}` : `syslog+unix://${path}`);
    const messages = () => {
      const found: string[] = [];
      for (let rest = received; rest !== ''; ) {
        const [head, length] = /^(\d+) /.exec(rest) ?? expect.fail(rest);
        found.push(rest.slice(head.length, head.length + Number(length)));
        rest = rest.slice(head.length + Number(length));
      }
      return found;
    };
    await waitFor(() => messages().length >= 3);
    expect(ofUse(messages().map(parse))).toEqual(EXPECTED);
  });

  it('goes to syslog for as long as the connection lasts, without a warning about it', async () => {
    let lines = 0;
    const listener = createTcpServer((socket) =>
      socket.on('data', (chunk: Buffer) => (lines += chunk.toString().split('}').length - 1)),
    );
    atEnd(() => void listener.close());
    listener.listen(0, '127.0.0.1');
    await once(listener, 'listening');
    const { port } = listener.address() as AddressInfo;
    const warnings: string[] = [];
    const listen = ({ message }: Error) => warnings.push(message);
    process.on('warning', listen);
    const target = { kind: 'tcp', host: '127.0.0.1', port, text: 'syslog' } as const;
    const copies = openAuditCopies([target], { stdout: null, warn: (problem) => warnings.push(problem) });
    for (let i = 1; i <= 20; i++) {
      copies.add(Buffer.from('{"time":"2026-11-16T08:00:00.000Z","kind":"call"}\n'));
      await waitFor(() => lines === i);
    }
    await copies.close();
    process.off('warning', listen);
    expect(warnings).toEqual([]);
  });

  it('goes to a collector as OTLP logs, and again after the collector was away', async () => {
    type Record = { body: { stringValue: string }; severityText: string; attributes: { key: string }[] };
    const records: Record[] = [];
    let isAway = true;
    const collector = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        response.statusCode = isAway ? 503 : 200;
        if (!isAway) {
          const body = JSON.parse(Buffer.concat(chunks).toString()) as {
            resourceLogs: { scopeLogs: { logRecords: Record[] }[] }[];
          };
          records.push(...body.resourceLogs[0]!.scopeLogs[0]!.logRecords);
        }
        isAway = false;
        response.end('{}');
      });
    });
    atEnd(() => void collector.close());
    collector.listen(0, '127.0.0.1');
    await once(collector, 'listening');
    const { port } = collector.address() as AddressInfo;
    const { gateway } = await use(`otlp+http://127.0.0.1:${port}/v1/logs`);
    await waitFor(() => records.length >= 3);
    const written = readLines(auditOf(gateway.cwd)).slice(0, 3);
    expect(records.slice(0, 3).map(({ body }) => JSON.parse(body.stringValue) as Line)).toEqual(written);
    const denial = records.find(({ severityText }) => severityText === 'WARN')!;
    expect(denial.attributes).toContainEqual({ key: 'toolgate.audit.rule', value: { stringValue: 'denied_tools.a' } });
    expect(gateway.stderr()).toMatch(/does not take lines: it answered with HTTP status 503/);
  });

  it('goes to standard output of serve', async () => {
    const { gateway } = await use('stdout');
    await waitFor(() => gateway.stdout().includes('"kind":"denial"'));
    const lines = gateway
      .stdout()
      .split('\n')
      .filter((line) => line.startsWith('{"time"'))
      .map((line) => JSON.parse(line) as Line);
    expect(lines.filter(isCall)).toMatchObject([{ server: 'a', tool: 'echo' }]);
  });

  it('that nobody takes holds up neither calls nor the end', async () => {
    const { gateway, lines } = await use('syslog+tcp://127.0.0.1:1', 'syslog+unix:///nowhere/log.sock');
    expect(lines).toHaveLength(2);
    expect((await gateway.stop()) ?? 0).toBeDefined();
  });
});

it.each(['nowhere', 'syslog://x', 'syslog+udp://', 'syslog+unix://relative', 'otlp+ftp://x', 'syslog+tcp://u:p@x:1'])(
  '"%s" is refused when the configuration is read',
  (copy) => {
    const read = () => configFromValue({ servers: [], audit: { copies: [copy] } }, { cwd: '/', env: {} });
    expect(read).toThrow('audit.copies[0]: expected stdout, syslog+udp://');
  },
);
