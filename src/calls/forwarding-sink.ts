/** Stands before the sink of a client and passes everything on; what wants to see or change something of it extends this. */

import type { GatewayError } from '../base/errors.ts';
import type { Admission, Sink } from '../protocol/contract.ts';
import type { LogLevel } from '../protocol/levels.ts';
import type { Parts } from '../protocol/parts.ts';
import type { Question } from '../protocol/question.ts';
import type { Era } from '../protocol/revisions.ts';

export class Relay implements Sink {
  readonly inner: Sink;

  constructor(inner: Sink) {
    this.inner = inner;
  }

  get owner(): object {
    return this.inner.owner;
  }

  get capabilities(): string {
    return this.inner.capabilities;
  }

  get asks(): ReadonlySet<string> {
    return this.inner.asks;
  }

  get logLevel(): LogLevel | null {
    return this.inner.logLevel;
  }

  get tasks(): boolean {
    return this.inner.tasks;
  }

  get awaySince(): number | null {
    return this.inner.awaySince;
  }

  get isFull(): boolean {
    return this.inner.isFull;
  }

  whenDrained(goOn: () => void): void {
    this.inner.whenDrained(goOn);
  }

  admit(call: Admission): void {
    this.inner.admit(call);
  }

  result(result: Parts, era: Era): void {
    this.inner.result(result, era);
  }

  error(error: Buffer, era: Era): void {
    this.inner.error(error, era);
  }

  fail(error: GatewayError): void {
    this.inner.fail(error);
  }

  notify(message: Buffer): void {
    this.inner.notify(message);
  }

  ask(question: Question): void {
    this.inner.ask(question);
  }
}
