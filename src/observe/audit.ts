/**
 * The audit: every call, every denial and every administrative act is one line. If it is off, it costs a call one field
 * access. If it is on, a line is built from parts that are mostly printed already.
 */
import { randomBytes } from 'node:crypto';
import type { GatewayError } from '../base/errors.ts';
import type { Events } from '../base/events.ts';
import type { CallAudit, RecordedCall, RecordedCaller, Recorder } from '../calls/observers.ts';
import { ERROR, OUTCOMES } from '../calls/outcome.ts';
import type { Entry } from '../catalog/entry.ts';
import type { AuditConfig } from '../config/audit.ts';
import type { Message } from '../protocol/message.ts';
import { type Parts, sizeOf } from '../protocol/parts.ts';
import { AuditLog } from '../store/audit-log.ts';
import {
  isEntryItself,
  printArguments,
  printAsked,
  printCaller,
  printEntry,
  printErrorCode,
  printFilled,
  printId,
  printMs,
  printResult,
  printText,
  smallNumber,
} from './audit-line.ts';
import { PendingCalls } from './audit-pending.ts';

export interface Audit extends CallAudit {
  readonly metrics: AuditMetrics;
  apply(config: AuditConfig): void;
  close(): Promise<void>;
}

/** How many records were written since the start, how many could not be, and whether writing is failing now. */
export interface AuditMetrics {
  readonly written: number;
  readonly lost: number;
  readonly isFailing: boolean;
}

const NOTHING: AuditMetrics = { written: 0, lost: 0, isFailing: false };

export interface AuditOptions {
  readonly events: Events;
  readonly redact: (text: string) => string;
  /** Whether the audit is on if the configuration does not say; false: it is never on. */
  readonly isOn: boolean | undefined;
}

export function createAudit(initial: AuditConfig, { events, redact, isOn }: AuditOptions): Audit {
  const boot = randomBytes(6).toString('hex');
  let serial = 0;
  let config = initial;
  let log: AuditLog | null = null;
  let recorder: Recorder | null = null;
  /** Resolves when the previous log, which was replaced, has been closed. */
  let ending = Promise.resolve();
  let callers = new WeakMap<RecordedCaller, string>();
  let entries = new WeakMap<Entry, string>();
  /** For each caller, how the lines of its tool calls begin. */
  let openings = new WeakMap<RecordedCaller, string>();
  const pending = new PendingCalls();

  function open(folder: string): AuditLog {
    return new AuditLog({
      folder,
      boot,
      retention: () => config.retention,
      report: (problem) =>
        events.emit('audit', {
          ok: problem === null,
          message: problem === null ? 'is written again' : `cannot be written to ${folder}: ${problem}`,
        }),
      collect: () => {
        if (log !== null) collect(log);
      },
      lostLine: (count) => adminLine(log!, 'audit_lost', '', `${count} lines could not be written`),
    });
  }

  const textOf = (caller: RecordedCaller): string => {
    const known = callers.get(caller);
    if (known !== undefined) return known;
    const text = printCaller(caller, redact);
    callers.set(caller, text);
    return text;
  };

  const itemOf = (call: RecordedCall): string => {
    if (!isEntryItself(call)) return printFilled(call, redact);
    const known = entries.get(call.entry);
    if (known !== undefined) return known;
    const text = printEntry(call.entry, redact);
    entries.set(call.entry, text);
    return text;
  };

  const next = () => ++serial;

  /** Starts a line. Pending calls are printed first, because lines have to be in the order of events. */
  const head = (to: AuditLog): string => {
    collect(to);
    return `{"time":"${to.time()}","id":"${boot}-${next()}"`;
  };

  function collect(to: AuditLog): void {
    if (pending.size > 0) pending.print(to, boot, next);
  }

  /** Keeps an ordinary call to be printed later. Returns false if the call has to be printed at once. */
  function hold(to: AuditLog, call: RecordedCall, outcome: number, ms: number, answer: Parts | null): boolean {
    const { message, by } = call;
    if (outcome === ERROR || !call.isFound || config.arguments || config.results || to.isFailing) return false;
    const request = message.idStart < 0 ? -1 : smallNumber(message.bytes, message.idStart, message.idEnd);
    if (request < 0) return false;
    if (pending.size === 0) to.hurry();
    const bytesOut = answer === null ? 0 : sizeOf(answer);
    pending.add(to.now(), openingOf(by, message), itemOf(call), request, outcome, ms, message.bytes.length, bytesOut);
    if (pending.isFull) collect(to);
    return true;
  }

  function openingOf(by: RecordedCaller, { method }: Message): string {
    const known = method === 'tools/call' ? openings.get(by) : undefined;
    if (known !== undefined) return known;
    const text = `,"kind":"call"${textOf(by)},"method":"${method}"`;
    if (method === 'tools/call') openings.set(by, text);
    return text;
  }

  function callLine(
    to: AuditLog,
    call: RecordedCall,
    outcome: number,
    ms: number,
    error: GatewayError | null,
    answer: Parts | null,
  ): string {
    const { message, by } = call;
    const line =
      `${head(to)},"request":${printId(message, redact)},"kind":"call"${textOf(by)},"method":"${message.method}"` +
      `${call.isFound ? itemOf(call) : `,"server":"toolgate","namespace":""${printAsked(message, redact)}`},"status":"${OUTCOMES[outcome]}","ms":${printMs(ms)}`;
    const why = error !== null ? `,"error":"${error.code}"` : outcome === ERROR ? codeOf(answer) : '';
    const sizes = `,"bytes_in":${message.bytes.length},"bytes_out":${answer === null ? 0 : sizeOf(answer)}`;
    return `${line}${why}${sizes}${valuesOf(message, answer)}}`;
  }

  function valuesOf(message: Message, answer: Parts | null): string {
    const args = config.arguments ? printArguments(message, config.maxValue, redact) : '';
    return config.results && answer !== null ? args + printResult(answer, config.maxValue, redact) : args;
  }

  function denialLine(to: AuditLog, { by, message }: RecordedCall, { code }: GatewayError): string {
    return (
      `${head(to)},"request":${printId(message, redact)},"kind":"denial"${textOf(by)},"method":"${message.method}"` +
      `${by.namespace === null ? '' : `,"namespace":${printText(by.namespace, redact)}`}` +
      `${printAsked(message, redact)},"status":"${code}","error":"${code}","bytes_in":${message.bytes.length}` +
      `${config.arguments ? printArguments(message, config.maxValue, redact) : ''}}`
    );
  }

  function adminLine(to: AuditLog, act: string, agent: string, detail: string): string {
    const who = agent === '' ? '' : `,"agent":${printText(agent, redact)}`;
    const what = detail === '' ? '' : `,"detail":${printText(detail, redact, 1_024)}`;
    return `${head(to)},"kind":"admin"${who},"act":${printText(act, redact)},"status":"ok"${what}}`;
  }

  const writeAdmin = (act: string, agent: string, detail: string) => log?.write(adminLine(log, act, agent, detail));

  function start(folder: string): void {
    const opened = open(folder);
    log = opened;
    recorder = {
      ended(call, outcome, ms, error, answer) {
        // A call that failed before it was sent was denied.
        if (error !== null && !call.isCounted) opened.write(denialLine(opened, call, error));
        else if (error !== null || !hold(opened, call, outcome, ms, answer))
          opened.write(callLine(opened, call, outcome, ms, error, answer));
      },
    };
    opened.write(adminLine(opened, 'start', '', ''));
    // Written at once, so that a failure to write shows at the start.
    void opened.flush();
  }

  async function stop(): Promise<void> {
    const old = log;
    log = null;
    recorder = null;
    if (old === null) return;
    old.write(adminLine(old, 'stop', '', ''));
    await old.close();
  }

  function apply(next: AuditConfig): void {
    const wanted = isOn !== false && (next.enabled ?? isOn ?? false);
    const isSame = log !== null && next.dir === config.dir;
    config = next;
    // There may be new secrets to redact, so the cached parts are no longer valid.
    callers = new WeakMap();
    entries = new WeakMap();
    openings = new WeakMap();
    if (wanted && isSame) return;
    ending = stop();
    if (wanted) start(next.dir);
  }

  apply(initial);
  const subscriptions = [
    events.on('config', ({ ok, message }) => writeAdmin(ok ? 'config_applied' : 'config_refused', '', message)),
    events.on('admin', ({ act, agent, detail }) => writeAdmin(act, agent, detail)),
    events.on('approval', ({ id, state, agent, tool, by, reason }) =>
      writeAdmin(`approval_${state}`, agent, `${tool} (${id}), by ${by}${reason && `: ${reason}`}`),
    ),
    events.on('unauthorized', ({ reason, remote }) => {
      if (log === null) return;
      const about = `"remote":${printText(remote, redact)},"detail":${printText(reason, redact)}`;
      log.write(`${head(log)},"kind":"denial","door":"http","status":"unauthorized","error":"unauthorized",${about}}`);
    }),
  ];

  return {
    get recorder() {
      return recorder;
    },
    get stops() {
      return config.onFailure === 'stop' && log?.isFailing === true;
    },
    get metrics() {
      return log ?? NOTHING;
    },
    apply,
    close() {
      for (const end of subscriptions) end();
      return Promise.all([ending, stop()]).then(() => {});
    },
  };
}

function codeOf(answer: Parts | null): string {
  return Buffer.isBuffer(answer) ? printErrorCode(answer) : '';
}
