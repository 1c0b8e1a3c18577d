/**
 * Copies of the lines of the audit for other programs: standard output, syslog and OTLP collectors. A copy is sent after
 * the line is on the disk. A target that does not answer holds nobody up: lines wait in memory, up to a limit.
 */
import { createSocket } from 'node:dgram';
import { connect, type Socket } from 'node:net';
import { hostname } from 'node:os';
import type { Writable } from 'node:stream';
import { backoffDelay } from '../base/backoff.ts';
import { messageOf } from '../base/errors.ts';
import { VERSION } from '../base/version.ts';
import type { AuditTarget } from '../config/audit.ts';

export interface AuditCopies {
  /** Whole lines. */
  add(bytes: Buffer): void;
  /** Waits a few seconds for what is left. */
  close(): Promise<void>;
}

export interface AuditCopiesOptions {
  /** The standard output; null if it belongs to a client. */
  readonly stdout: Writable | null;
  /** Called when a target begins to fail, and when lines for it are lost. */
  warn(problem: string): void;
}

/** Sends lines to one target. Rejects if it does not take them. */
interface Sender {
  send(lines: readonly string[]): Promise<void>;
  close(): void;
}

const MOST = 8 * 1024 * 1024;
/** Lines in one message to a collector. */
const MOST_LINES = 500;
const PATIENCE = 5_000;
const CLOSING = 3_000;

export function openAuditCopies(targets: readonly AuditTarget[], options: AuditCopiesOptions): AuditCopies {
  const copies = targets.flatMap((target) => {
    const sender = senderFor(target, options.stdout);
    if (sender !== null) return openCopy(target.text, sender, options.warn);
    options.warn('"stdout" is left out: it belongs to the client here. It is for toolgate serve');
    return [];
  });
  return {
    add(bytes) {
      if (copies.length === 0) return;
      const lines = bytes
        .toString('latin1')
        .split('\n')
        .filter((line) => line !== '');
      for (const copy of copies) copy.add(lines);
    },
    async close() {
      await Promise.all(copies.map((copy) => copy.close()));
    },
  };
}

function senderFor(target: AuditTarget, stdout: Writable | null): Sender | null {
  switch (target.kind) {
    case 'stdout':
      return stdout === null ? null : toStream(stdout);
    case 'udp':
      return toUdp(target.host, target.port);
    case 'tcp':
      return toSocket(() => connect(target.port, target.host));
    case 'unix':
      return toSocket(() => connect(target.path));
    case 'otlp':
      return toCollector(target.url);
    default:
      return target satisfies never;
  }
}

/** One target with the lines that it has not taken yet. */
function openCopy(name: string, sender: Sender, warn: (problem: string) => void) {
  let waiting: string[] = [];
  let size = 0;
  let lost = 0;
  let sending: Promise<void> | null = null;
  let isClosed = false;
  let wake: (() => void) | null = null;

  function add(lines: readonly string[]): void {
    for (const line of lines) {
      if (size > MOST) lost++;
      else {
        waiting.push(line);
        size += line.length;
      }
    }
    sending ??= drain().finally(() => {
      sending = null;
    });
  }

  async function drain(): Promise<void> {
    let failures = 0;
    while (waiting.length > 0) {
      const lines = waiting.slice(0, MOST_LINES);
      try {
        await sender.send(lines);
        waiting = waiting.slice(lines.length);
        size -= lines.reduce((sum, line) => sum + line.length, 0);
        if (failures > 0) warn(`${name} takes lines again${lost > 0 ? `; ${lost} were lost` : ''}`);
        failures = 0;
        lost = 0;
      } catch (error) {
        if (failures++ === 0) warn(`${name} does not take lines: ${messageOf(error)}`);
        if (isClosed) return;
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, backoffDelay(failures));
          timer.unref();
          wake = () => {
            clearTimeout(timer);
            resolve();
          };
        });
      }
    }
  }

  return {
    add,
    async close() {
      isClosed = true;
      wake?.();
      let timer: NodeJS.Timeout | undefined;
      const late = new Promise<void>((resolve) => {
        timer = setTimeout(resolve, CLOSING);
      });
      await Promise.race([sending, late]);
      clearTimeout(timer);
      sender.close();
    },
  };
}

function toStream(stream: Writable): Sender {
  return {
    send: (lines) =>
      new Promise((resolve, reject) => {
        stream.write(`${lines.join('\n')}\n`, (error) => (error == null ? resolve() : reject(error)));
      }),
    close() {},
  };
}

/** Facility 13 is the log of an audit. A denial is a warning. */
const PRIORITY = 13 * 8;
const WARNING = 4;
const INFO = 6;

interface LineHead {
  readonly time: string;
  readonly kind: string;
}

function readLine(line: string): LineHead {
  return JSON.parse(line) as LineHead;
}

/** RFC 5424. */
export function syslogText(line: string): string {
  const { time, kind } = readLine(line);
  const priority = PRIORITY + (kind === 'denial' ? WARNING : INFO);
  return `<${priority}>1 ${time} ${hostname()} toolgate ${process.pid} audit - ${line}`;
}

function toUdp(host: string, port: number): Sender {
  const socket = createSocket(host.includes(':') ? 'udp6' : 'udp4');
  socket.unref();
  // The sender of each message gets its error.
  socket.on('error', () => {});
  return {
    async send(lines) {
      for (const line of lines)
        await new Promise<void>((resolve, reject) => {
          socket.send(syslogText(line), port, host, (error) => (error === null ? resolve() : reject(error)));
        });
    },
    close: () => socket.close(),
  };
}

/** Each message with its length before it, RFC 6587. The connection is opened when it is needed. */
function toSocket(open: () => Socket): Sender {
  let socket: Socket | null = null;
  function connected(): Promise<Socket> {
    if (socket !== null && !socket.destroyed && socket.writable) return Promise.resolve(socket);
    const opened = open();
    socket = opened;
    opened.unref();
    return new Promise((resolve, reject) => {
      opened.once('error', reject);
      opened.once('connect', () => resolve(opened));
      opened.on('error', () => opened.destroy());
    });
  }
  return {
    async send(lines) {
      const target = await connected();
      const frames = lines.map(syslogText).map((text) => `${Buffer.byteLength(text)} ${text}`);
      await new Promise<void>((resolve, reject) => {
        target.once('close', () => reject(new Error('the connection was closed')));
        target.write(frames.join(''), (error) => (error == null ? resolve() : reject(error)));
      });
      target.removeAllListeners('close');
    },
    close: () => socket?.destroy(),
  };
}

/** OTLP over HTTP with JSON. */
function toCollector(url: string): Sender {
  return {
    async send(lines) {
      const response = await fetch(url, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(otlpLogs(lines)),
        redirect: 'error',
        signal: AbortSignal.timeout(PATIENCE),
      });
      await response.body?.cancel();
      if (!response.ok) throw new Error(`it answered with HTTP status ${response.status}`);
    },
    close() {},
  };
}

/** Members of a line that become attributes. */
const ATTRIBUTES = [
  'id',
  'kind',
  'agent',
  'door',
  'method',
  'server',
  'tool',
  'name',
  'act',
  'status',
  'rule',
] as const;

export function otlpLogs(lines: readonly string[]) {
  const text = (key: string, value: string) => ({ key, value: { stringValue: value } });
  const logRecords = lines.map((line) => {
    const record = JSON.parse(line) as LineHead & Readonly<Record<string, unknown>>;
    const isDenial = record.kind === 'denial';
    return {
      timeUnixNano: `${Date.parse(record.time)}000000`,
      severityNumber: isDenial ? 13 : 9,
      severityText: isDenial ? 'WARN' : 'INFO',
      body: { stringValue: line },
      attributes: ATTRIBUTES.flatMap((key) =>
        typeof record[key] === 'string' ? text(`toolgate.audit.${key}`, record[key]) : [],
      ),
    };
  });
  const resource = { attributes: [text('service.name', 'toolgate'), text('service.version', VERSION)] };
  return { resourceLogs: [{ resource, scopeLogs: [{ scope: { name: 'toolgate.audit' }, logRecords }] }] };
}
