/**
 * Writes the records of calls, denials and administrative acts to one log. A line is built from parts that are mostly
 * printed already.
 */
import type { Writable } from 'node:stream';
import { plainSubject } from '../access/circumstances.ts';
import type { DenialReason, DeniedRequest } from '../access/explain.ts';
import type { ErrorCode, GatewayError } from '../base/errors.ts';
import type { EventMap } from '../base/events.ts';
import { memo } from '../base/memo.ts';
import type { RecordedCall, RecordedCaller, Recorder } from '../calls/observers.ts';
import { ERROR, OUTCOMES } from '../calls/outcome.ts';
import type { Entry } from '../catalog/entry.ts';
import type { AuditConfig } from '../config/audit.ts';
import type { Message } from '../protocol/message.ts';
import type { Parts } from '../protocol/parts.ts';
import { createHeadKeeper } from '../store/audit-heads.ts';
import { AuditLog } from '../store/audit-log.ts';
import { type AuditCopies, openAuditCopies } from './audit-copies.ts';
import {
  askedName,
  isEntryItself,
  kindsOf,
  printArguments,
  printAsked,
  printBegun,
  printCaller,
  printEntry,
  printErrorCode,
  printFilled,
  printId,
  printMs,
  printResult,
  printText,
  printThrough,
  type RecordIds,
  type Redact,
  smallNumber,
} from './audit-line.ts';
import { PendingCalls } from './audit-pending.ts';

export interface AuditRecorderOptions {
  readonly ids: RecordIds;
  readonly redact: Redact;
  /** Called when writing starts to fail, with the problem, and with null when it works again. */
  report(problem: string | null): void;
  /** The standard output; null if it belongs to a client. */
  readonly stdout: Writable | null;
  /** Called for a problem that does not keep lines from being written. */
  warn(problem: string): void;
  /** Why a request was denied; null if what it asked for does not exist. */
  reason(request: DeniedRequest): DenialReason | null;
}

/** The maximum length of a detail, in characters. */
const DETAIL = 1_024;

/** Writes to one log. The log prints the pending calls through it. */
export class AuditRecorder implements Recorder {
  readonly log: AuditLog;
  readonly copies: AuditCopies;
  readonly #ids: RecordIds;
  readonly #redact: Redact;
  readonly #reason: AuditRecorderOptions['reason'];
  readonly #pending = new PendingCalls();
  #config: AuditConfig;
  #parts: LineParts;

  constructor(config: AuditConfig, { ids, redact, report, warn, stdout, reason }: AuditRecorderOptions) {
    this.#config = config;
    this.#ids = ids;
    this.#redact = redact;
    this.#reason = reason;
    this.#parts = createLineParts(redact);
    this.copies = openAuditCopies(config.copies, { stdout, warn });
    this.log = new AuditLog({
      folder: config.dir,
      boot: ids.boot,
      key: config.key(),
      ...(config.copies.length > 0 && { written: (bytes: Buffer) => this.copies.add(bytes) }),
      heads: createHeadKeeper({ path: config.heads, boot: ids.boot, key: config.key(), now: Date.now, warn }),
      retention: () => this.#config.retention,
      report,
      collect: () => this.#printPending(),
      lostLine: (count) => this.#actLine('audit_lost', '', `${count} lines could not be written`),
    });
  }

  /** Applies another configuration with the same folder. */
  apply(config: AuditConfig): void {
    this.#config = config;
    // There may be new secrets to redact, so the printed parts are no longer valid.
    this.#parts = createLineParts(this.#redact);
  }

  begun(call: RecordedCall): { readonly id: string; readonly isWritten: Promise<boolean> } {
    const { message, by } = call;
    this.#printPending();
    const id = `${this.#ids.boot}-${this.#ids.next()}`;
    this.log.write(
      `{"time":"${this.log.time()}","id":"${id}","request":${printId(message, this.#redact)}` +
        `${printOpening('begun', this.#parts.caller(by), message.method)}${this.#item(call)}` +
        `,"status":"begun","bytes_in":${message.bytes.length}${printThrough(call)}${this.#arguments(message)}}`,
    );
    return { id, isWritten: this.log.put() };
  }

  get keepsResults(): boolean {
    return this.#config.results;
  }

  ended(
    call: RecordedCall,
    outcome: number,
    ms: number,
    error: GatewayError | null,
    answer: Parts | null,
    bytes: number,
  ): void {
    // A call that failed before it was sent was denied.
    if (error !== null && !call.isCounted) this.log.write(this.#denialLine(call, error));
    else if (error !== null || !this.#postpone(call, outcome, ms, bytes))
      this.log.write(this.#callLine(call, outcome, ms, error, answer, bytes));
  }

  /** Records an administrative act. Agent and detail may be empty. */
  act(act: string, agent: string, detail: string, by = ''): void {
    const about = by === '' ? '' : `,"by":${printText(by, this.#redact)}`;
    this.log.write(this.#actLine(act, agent, detail, about));
  }

  /** Records that a server changed a definition. */
  definition({ source, kind, name, fields, before, after }: EventMap['definition']): void {
    const tool = name === '' ? '' : `,"tool":${printText(name, this.#redact)}`;
    const about = `,"server":${printText(source, this.#redact)}${tool}`;
    const detail = `${kind}: ${fields.join(', ')}; sha256 ${before} -> ${after}`;
    this.log.write(this.#actLine('definition_changed', '', detail, about));
  }

  /** Records a request that had no valid credential. */
  unauthorized(reason: string, remote: string): void {
    const about = `"remote":${printText(remote, this.#redact)},"detail":${printText(reason, this.#redact)}`;
    this.log.write(
      `${this.#head()},"kind":"denial","door":"http","status":"unauthorized","error":"unauthorized",${about}}`,
    );
  }

  /** Records a request that was refused for the name by which it was sent, or for its sender. */
  forbidden(rule: string, remote: string): void {
    const about = `"rule":${printText(rule, this.#redact)},"remote":${printText(remote, this.#redact)}`;
    this.log.write(`${this.#head()},"kind":"denial","door":"http","status":"forbidden","error":"forbidden",${about}}`);
  }

  /** Records a denied request that is not a call. */
  denied({ agent, principal, door, method, namespace, name, code, detail }: EventMap['denied']): void {
    const text = (key: string, value: string | null) =>
      value === null || value === '' ? '' : `,"${key}":${printText(value, this.#redact)}`;
    const kinds = name === null ? [] : kindsOf(method);
    const found = this.#reason({ subject: plainSubject(agent), name, kinds, namespace });
    this.log.write(
      `${this.#head()},"kind":"denial"${text('agent', agent)}${text('principal', principal === agent ? null : principal)}` +
        `,"door":"${door}"${text('method', method)}${text('server', found?.server ?? null)}` +
        `${text('namespace', namespace)}${text('tool', name)},"status":"${code}","error":"${code}"` +
        `${text('rule', found?.rule ?? null)}${text('detail', detail)}}`,
    );
  }

  /** Adds an ordinary call to the pending ones. Returns false if the call has to be printed at once. */
  #postpone(call: RecordedCall, outcome: number, ms: number, bytesOut: number): boolean {
    const { message, by } = call;
    const { arguments: withArguments, results: withResults } = this.#config;
    if (outcome === ERROR || !call.isFound || withArguments || withResults || this.log.isFailing) return false;
    if (call.through !== null || call.tried !== null || call.begun !== null) return false;
    const request = message.idStart < 0 ? -1 : smallNumber(message.bytes, message.idStart, message.idEnd);
    if (request < 0) return false;
    const pending = this.#pending;
    if (pending.size === 0) this.log.hurry();
    const opening =
      message.method === 'tools/call'
        ? this.#parts.toolCall(by)
        : printOpening('call', this.#parts.caller(by), message.method);
    pending.add(this.log.now(), opening, this.#item(call), request, outcome, ms, message.bytes.length, bytesOut);
    if (pending.isFull) this.#printPending();
    return true;
  }

  #printPending(): void {
    if (this.#pending.size > 0) this.#pending.print(this.log, this.#ids);
  }

  /** Starts a line. Pending calls are printed first, because lines have to be in the order of events. */
  #head(): string {
    this.#printPending();
    return `{"time":"${this.log.time()}","id":"${this.#ids.boot}-${this.#ids.next()}"`;
  }

  #callLine(
    call: RecordedCall,
    outcome: number,
    ms: number,
    error: GatewayError | null,
    answer: Parts | null,
    bytesOut: number,
  ): string {
    const { message, by } = call;
    const item = call.isFound
      ? this.#item(call)
      : `,"server":"toolgate","namespace":""${printAsked(message, this.#redact)}`;
    const code = error !== null ? `,"error":"${error.code}"` : outcome === ERROR ? codeOf(answer) : '';
    return (
      `${this.#head()},"request":${printId(message, this.#redact)}` +
      `${printOpening('call', this.#parts.caller(by), message.method)}${item}` +
      `,"status":"${OUTCOMES[outcome]}","ms":${printMs(ms)}${code}` +
      `,"bytes_in":${message.bytes.length},"bytes_out":${bytesOut}` +
      `${printThrough(call)}${printBegun(call)}${this.#tried(call)}${this.#arguments(message)}${this.#result(answer)}}`
    );
  }

  /** What rules that are only tried would have decided. */
  #tried({ tried }: RecordedCall): string {
    if (tried === null) return '';
    const { decision, rule, why } = tried;
    const detail = why === '' ? '' : `,"detail":${printText(why, this.#redact, DETAIL)}`;
    return `,"dry_run":"${decision}","rule":${printText(rule, this.#redact)}${detail}`;
  }

  #denialLine(call: RecordedCall, { code, rule, why: reason }: GatewayError): string {
    const { by, message } = call;
    const namespace = by.namespace === null ? '' : `,"namespace":${printText(by.namespace, this.#redact)}`;
    const found = this.#reasonOf(call, code);
    const server = found === null ? '' : `,"server":${printText(found.server, this.#redact)}`;
    const broken = rule ?? found?.rule ?? null;
    const why = reason ?? found?.text ?? null;
    return (
      `${this.#head()},"request":${printId(message, this.#redact)},"kind":"denial"${this.#parts.caller(by)}` +
      `,"method":"${message.method}"${server}${namespace}${printAsked(message, this.#redact)}` +
      `,"status":"${code}","error":"${code}","bytes_in":${message.bytes.length}` +
      `${printThrough(call)}${printBegun(call)}${broken === null ? '' : `,"rule":${printText(broken, this.#redact)}`}` +
      `${why === null ? '' : `,"detail":${printText(why, this.#redact, DETAIL)}`}${this.#arguments(message)}}`
    );
  }

  /** The server that has what was called, and the rule that keeps it from the caller; null if there is no such item. */
  #reasonOf({ by, message, entry, isFound }: RecordedCall, code: ErrorCode): DenialReason | null {
    if (isFound) return { server: entry.sourceKey, rule: null, text: null };
    const name = askedName(message);
    if (name === null) return null;
    const { subject, namespace, isOperator, narrowedBy } = by;
    const found = this.#reason({ subject, name, kinds: kindsOf(message.method), namespace });
    if (found === null || (found.rule !== null && !isOperator)) return found;
    return { server: found.server, rule: code === 'item_inactive' ? null : narrowedBy, text: null };
  }

  /** `about` is a printed part of the line. */
  #actLine(act: string, agent: string, detail: string, about = ''): string {
    const who = agent === '' ? '' : `,"agent":${printText(agent, this.#redact)}`;
    const what = detail === '' ? '' : `,"detail":${printText(detail, this.#redact, DETAIL)}`;
    return `${this.#head()},"kind":"admin"${who}${about},"act":${printText(act, this.#redact)},"status":"ok"${what}}`;
  }

  #item(call: RecordedCall): string {
    return isEntryItself(call) ? this.#parts.entry(call.entry) : printFilled(call, this.#redact);
  }

  #arguments(message: Message): string {
    return this.#config.arguments ? printArguments(message, this.#config.maxValue, this.#redact) : '';
  }

  #result(answer: Parts | null): string {
    return this.#config.results && answer !== null ? printResult(answer, this.#config.maxValue, this.#redact) : '';
  }
}

/** Parts of lines that are printed once per caller or entry. */
interface LineParts {
  caller(caller: RecordedCaller): string;
  /** The beginning of a caller's tool calls. */
  toolCall(caller: RecordedCaller): string;
  entry(entry: Entry): string;
}

function createLineParts(redact: Redact): LineParts {
  const caller = memo((one: RecordedCaller) => printCaller(one, redact));
  return {
    caller,
    toolCall: memo((one: RecordedCaller) => printOpening('call', caller(one), 'tools/call')),
    entry: memo((entry: Entry) => printEntry(entry, redact)),
  };
}

function printOpening(kind: 'call' | 'begun', caller: string, method: string): string {
  return `,"kind":"${kind}"${caller},"method":"${method}"`;
}

function codeOf(answer: Parts | null): string {
  return Buffer.isBuffer(answer) ? printErrorCode(answer) : '';
}
