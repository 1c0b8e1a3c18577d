/**
 * The audit: every call, every denial and every administrative act is one line. If it is off, it costs a call one field
 * access.
 */
import type { Writable } from 'node:stream';
import type { DenialReason, DeniedRequest } from '../access/explain.ts';
import type { Events } from '../base/events.ts';
import { isSameValue } from '../base/objects.ts';
import type { CallAudit } from '../calls/observers.ts';
import type { AuditConfig } from '../config/audit.ts';
import { RecordIds, type Redact } from './audit-line.ts';
import { AuditRecorder } from './audit-recorder.ts';

/** How many records were written and lost since the start, and whether writing is failing now. */
export interface AuditMetrics {
  readonly written: number;
  readonly lost: number;
  readonly isFailing: boolean;
}

const NOTHING: AuditMetrics = { written: 0, lost: 0, isFailing: false };

export interface AuditOptions {
  readonly events: Events;
  readonly redact: Redact;
  /** Whether the audit is on if the configuration does not say; false: it is never on. */
  readonly isOn: boolean | undefined;
  /** The standard output; null if it belongs to a client. */
  readonly stdout: Writable | null;
  /** Why a request was denied; null if what it asked for does not exist. */
  reason(request: DeniedRequest): DenialReason | null;
}

export class Audit implements CallAudit {
  recorder: AuditRecorder | null = null;
  readonly #options: AuditOptions;
  readonly #ids = new RecordIds();
  readonly #subscriptions: readonly (() => void)[];
  #config: AuditConfig;
  /** Resolves when the previous log, which was replaced, has been closed. */
  #ending = Promise.resolve();

  constructor(config: AuditConfig, options: AuditOptions) {
    this.#config = config;
    this.#options = options;
    this.apply(config);
    const { events } = options;
    this.#subscriptions = [
      events.on('config', ({ ok, message }) =>
        this.recorder?.act(ok ? 'config_applied' : 'config_refused', '', message),
      ),
      events.on('admin', ({ act, agent, detail, by }) => this.recorder?.act(act, agent, detail, by)),
      events.on('approval', ({ id, state, agent, tool, by, reason }) =>
        this.recorder?.act(`approval_${state}`, agent, `${tool} (${id}), by ${by}${reason && `: ${reason}`}`),
      ),
      events.on('definition', (changed) => this.recorder?.definition(changed)),
      events.on('unauthorized', ({ reason, remote }) => this.recorder?.unauthorized(reason, remote)),
      events.on('forbidden', ({ rule, remote }) => this.recorder?.forbidden(rule, remote)),
      events.on('denied', (denied) => this.recorder?.denied(denied)),
    ];
  }

  get stops(): boolean {
    return this.#config.onFailure === 'stop' && this.recorder?.log.isFailing === true;
  }

  get before(): boolean {
    return this.#config.before && this.recorder !== null;
  }

  get metrics(): AuditMetrics {
    return this.recorder?.log ?? NOTHING;
  }

  apply(config: AuditConfig): void {
    const { isOn } = this.#options;
    const isWanted = isOn !== false && (config.enabled ?? isOn ?? false);
    const { dir, heads, key, copies } = this.#config;
    const isSame =
      config.dir === dir && config.heads === heads && config.key() === key() && isSameValue(config.copies, copies);
    this.#config = config;
    if (isWanted && isSame && this.recorder !== null) {
      this.recorder.apply(config);
      return;
    }
    this.#ending = this.#stop();
    if (isWanted) this.#start(config);
  }

  async close(): Promise<void> {
    for (const end of this.#subscriptions) end();
    await Promise.all([this.#ending, this.#stop()]);
  }

  #start(config: AuditConfig): void {
    const { events, redact, reason, stdout } = this.#options;
    const report = (problem: string | null) =>
      events.emit('audit', {
        ok: problem === null,
        message: problem === null ? 'is written again' : `cannot be written to ${config.dir}: ${problem}`,
      });
    const warn = (message: string) => events.emit('note', { source: 'audit', message });
    const recorder = new AuditRecorder(config, { ids: this.#ids, redact, report, warn, stdout, reason });
    this.recorder = recorder;
    recorder.act('start', '', '');
    // Written at once, so that a failure to write shows at the start.
    void recorder.log.flush();
  }

  async #stop(): Promise<void> {
    const { recorder } = this;
    this.recorder = null;
    if (recorder === null) return;
    recorder.act('stop', '', '');
    await recorder.log.close();
    await recorder.copies.close();
  }
}
