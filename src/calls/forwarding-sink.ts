/** A sink that passes everything on to another sink. Classes that need to see or change something extend it. */
import type { GatewayError } from '../base/errors.ts';
import type { Sink } from '../protocol/contract.ts';
import type { LogLevel } from '../protocol/levels.ts';
import type { Parts } from '../protocol/parts.ts';
import type { Question } from '../protocol/question.ts';
import type { Era } from '../protocol/revisions.ts';

export class ForwardingSink implements Sink {
  inner: Sink;

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

  whenDrained(resume: () => void): void {
    this.inner.whenDrained(resume);
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
