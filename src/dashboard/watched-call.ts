/** One call while somebody looks on: its times, and what a page shows of it. */
import type { GatewayError } from '../base/errors.ts';
import { argumentsSpan } from '../calls/arguments.ts';
import type { Call } from '../calls/call.ts';
import { CallLimiter } from '../calls/limits/limiter.ts';
import type { CallWatch } from '../calls/observers.ts';
import { OUTCOMES, REFUSED } from '../calls/outcome.ts';
import { askedName, shownText } from '../observe/audit-line.ts';
import type { Message } from '../protocol/message.ts';
import { join, type Parts } from '../protocol/parts.ts';
import { readTrace } from '../protocol/trace.ts';
import type { CallDetail, CallOutcome, CallRow, CallStep, Recording } from './api-types.ts';

/** Bytes of arguments and results that are kept of a call. */
const LONGEST_VALUE = 16 * 1_024;

/** Those for whom it is watched. */
interface Onlookers {
  /** The date at zero of the clock that measures times, in milliseconds. */
  readonly epoch: number;
  readonly options: { readonly redact: (text: string) => string };
  /** What is kept of calls besides their figures. */
  readonly recording: Recording;
  ended(call: WatchedCall): void;
}

interface Wait {
  readonly from: number;
  readonly to: number;
  readonly what: string;
}

/** Of a call whose steps have stopped before it was sent. Milliseconds since it came in. */
interface Stops {
  readonly first: number;
  /** Since when it waits, or when it went on. */
  last: number;
  readonly waits: Wait[];
}

interface RecordedValues {
  readonly arguments: string | null;
  readonly result: string | null;
}

export class WatchedCall implements CallWatch {
  readonly id: number;
  readonly at: number;
  readonly startedAt = performance.now();
  readonly #live: Onlookers;
  /** Its place among those under way. */
  place: number;
  /** Null when it is over, so that its message can be freed. */
  #call: Call | null;
  #isFound = false;
  /** Milliseconds from when it came in until it was sent; -1 before. */
  #sentAt = -1;
  #stops: Stops | null = null;
  #error: GatewayError | null = null;
  #isCut = false;
  #values: RecordedValues | null = null;
  /** Whether those who look know of it. */
  isShown = false;
  ms = 0;
  outcome: CallOutcome = 'running';
  bytesIn: number;
  bytesOut = 0;
  // Filled in when it ends.
  #agent = '';
  #door = '';
  #method = '';
  #name = '';
  #server = '';
  #client: string | null = null;
  #through: string | null = null;
  #trace: string | null = null;

  constructor(id: number, call: Call, live: Onlookers, place: number) {
    this.id = id;
    this.#call = call;
    this.#live = live;
    this.place = place;
    this.at = Math.round(live.epoch + this.startedAt);
    this.bytesIn = call.message.bytes.length;
  }

  #since(): number {
    return performance.now() - this.startedAt;
  }

  found(): void {
    this.#isFound = true;
  }

  stopped(): void {
    if (this.#sentAt >= 0 || this.#call === null) return;
    const now = this.#since();
    if (this.#stops === null) this.#stops = { first: now, last: now, waits: [] };
    else this.#stops.last = now;
  }

  resumed(what: string): void {
    if (this.#stops === null) return;
    const now = this.#since();
    this.#stops.waits.push({ from: this.#stops.last, to: now, what });
    this.#stops.last = now;
  }

  sent(at: number): void {
    this.#sentAt = at - this.startedAt;
  }

  get keepsResults(): boolean {
    return this.#live.recording.results;
  }

  ended(outcome: number, error: GatewayError | null, answer: Parts | null, bytes: number, at: number): void {
    const call = this.#call;
    if (call === null) return;
    this.ms = at === 0 ? this.#since() : at - this.startedAt;
    this.outcome = outcome === REFUSED ? 'refused' : OUTCOMES[outcome]!;
    this.#error = error;
    this.bytesOut = bytes;
    const { limiter } = call;
    if (limiter instanceof CallLimiter && limiter.limits.maxResult !== null)
      this.#isCut = this.bytesOut > limiter.limits.maxResult;
    this.#read(call);
    const { recording } = this.#live;
    if (recording.arguments || recording.results) this.#values = this.#valuesOf(recording, call, answer);
    this.#call = null;
    this.#live.ended(this);
  }

  #read(call: Call): void {
    const { by, message, entry, isFound } = call;
    const { redact } = this.#live.options;
    this.#agent = by.agent;
    this.#door = by.door;
    this.#method = message.method;
    // What an agent asks for can have a secret in it; so can the URI of a resource.
    if (!isFound) this.#name = redact((askedName(message) ?? '').slice(0, LONGEST_NAME));
    else this.#name = entry.kind === 'tool' || entry.kind === 'prompt' ? entry.name : redact(entry.name);
    this.#server = isFound ? entry.sourceKey : '';
    this.#through = call.through;
    this.#trace = traceOf(call, message);
    const { title, sent } = by.own.traits;
    this.#client = title === 'unknown' ? (sent?.name ?? null) : title;
  }

  #valuesOf({ arguments: withArguments, results }: Recording, { message }: Call, answer: Parts | null): RecordedValues {
    const { redact } = this.#live.options;
    const span = withArguments ? argumentsSpan(message) : null;
    return {
      arguments: span === null ? null : shownText(message.bytes.subarray(span.start, span.end), LONGEST_VALUE, redact),
      result: results && answer !== null ? shownText(join(answer), LONGEST_VALUE, redact) : null,
    };
  }

  /** How long it waited for a person, also one who never approved it. That says nothing about how quick tools are. */
  get heldMs(): number {
    if (this.#stops === null) return 0;
    if (this.#sentAt < 0 && this.outcome !== 'cached') return this.ms - this.#stops.last;
    let sum = 0;
    for (const { from, to, what } of this.#stops.waits) if (what === 'approval') sum += to - from;
    return sum;
  }

  get valueBytes(): number {
    const values = this.#values;
    return values === null ? 0 : (values.arguments?.length ?? 0) + (values.result?.length ?? 0);
  }

  /** Nobody has to see it among many. */
  get isPlain(): boolean {
    return this.outcome === 'ok' || this.outcome === 'cached';
  }

  forgetValues(): void {
    this.#values = null;
  }

  row(): CallRow {
    if (this.#call !== null) this.#read(this.#call);
    return {
      id: this.id,
      at: this.at,
      agent: this.#agent,
      door: this.#door,
      method: this.#method,
      name: this.#name,
      server: this.#server,
      through: this.#through,
      outcome: this.outcome,
      error: this.#error?.code ?? null,
      ms: this.outcome === 'running' ? null : rounded(this.ms),
      bytesIn: this.bytesIn,
      bytesOut: this.bytesOut,
      limits: this.#limits(),
      trace: this.#trace,
    };
  }

  #limits(): string[] {
    const limits: string[] = [];
    if (this.#error !== null) {
      const { code, message } = this.#error;
      if (code === 'rate_limited') limits.push(message.includes('"calls_per_day"') ? 'calls_per_day' : 'rate');
      else if (code === 'source_busy') limits.push('concurrency');
      else if (code === 'too_large' && message.includes('"max_arguments"')) limits.push('max_arguments');
      else if (code === 'source_timeout' || code === 'execution_timeout') limits.push('timeout');
    }
    if (this.#stops?.waits.some(({ what }) => what === 'limits')) limits.push('concurrency');
    if (this.#isCut) limits.push('max_result');
    return limits;
  }

  detail(): CallDetail {
    const { redact } = this.#live.options;
    return {
      ...this.row(),
      steps: this.#steps(),
      message: this.#error === null ? null : redact(this.#error.message),
      arguments: this.#values?.arguments ?? null,
      result: this.#values?.result ?? null,
      client: this.#client === null ? null : redact(this.#client),
    };
  }

  #steps(): CallStep[] {
    const end = this.outcome === 'running' ? this.#since() : this.ms;
    // One that did not wait was sent as soon as it was found.
    const stops = this.#stops;
    const found = stops !== null ? stops.first : this.#sentAt >= 0 ? this.#sentAt : end;
    const step = (name: CallStep['step'], from: number, to: number, detail: string): CallStep => ({
      step: name,
      from: rounded(from),
      to: rounded(to),
      detail,
    });
    const waits = (stops?.waits ?? []).map(({ from, to, what }) => step('wait', from, to, WAITS[what] ?? ''));
    // What it still waits for, or what ended it while it waited.
    const heldSince = stops !== null && this.#sentAt < 0 && end - stops.last > 1 ? stops.last : null;
    return [
      step('lookup', 0, found, !this.#isFound ? 'was not found, or is not allowed' : ''),
      ...waits,
      ...(heldSince === null ? [] : [step('wait', heldSince, end, '')]),
      ...(this.#sentAt < 0 ? [] : [step('server', this.#sentAt, end, this.#server)]),
    ];
  }
}

const LONGEST_NAME = 256;

const WAITS: Readonly<Record<string, string>> = {
  approval: 'a person approves it',
  limits: 'others are before it',
  audit: 'its line in the audit is written',
};

function traceOf({ traceContext }: Call, message: Message): string | null {
  const parent = (traceContext ?? readTrace(message))?.traceparent;
  return parent === undefined ? null : parent.slice(3, 35);
}

export function rounded(ms: number): number {
  return Math.round(ms * 1_000) / 1_000;
}
