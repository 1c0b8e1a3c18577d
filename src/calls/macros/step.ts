/** One step of a macro. The answer of its call becomes a value that later steps can refer to. */
import { GatewayError } from '../../base/errors.ts';
import { ASKS, legacyResult } from '../../protocol/bridge.ts';
import type { Sink } from '../../protocol/contract.ts';
import { join, type Parts } from '../../protocol/parts.ts';
import type { Era } from '../../protocol/revisions.ts';
import { ForwardingSink } from '../forwarding-sink.ts';
import { parseObject } from '../relayed-error.ts';

/** The answer of a step. */
export interface StepAnswer {
  /** The result as it arrived, in the legacy format. */
  readonly bytes: Buffer;
  /** Its structured content; otherwise its text, parsed if that is JSON. */
  readonly value: unknown;
  readonly text: string;
}

export interface StepEnd {
  done(answer: StepAnswer): void;
  /** `why` is the message from the tool, its server or Toolgate. */
  failed(why: string): void;
}

/** A step's questions go to the caller of the macro. Its notifications are dropped. */
export class StepSink extends ForwardingSink {
  readonly end: StepEnd;

  constructor(macro: Sink, end: StepEnd) {
    super(macro);
    this.end = end;
  }

  override get tasks(): boolean {
    return false;
  }

  override get logLevel(): null {
    return null;
  }

  override notify(): void {}

  override result(result: Parts, era: Era): void {
    const answer = readAnswer(result, era);
    if (typeof answer === 'string') this.end.failed(answer);
    else this.end.done(answer);
  }

  override error(error: Buffer): void {
    this.end.failed(String(parseObject(error).message));
  }

  override fail(error: GatewayError): void {
    this.end.failed(error.message);
  }
}

/** The answer, or a text that says why it is not a success. */
function readAnswer(result: Parts, era: Era): StepAnswer | string {
  const bytes = era === 'modern' ? legacyResult(result, false) : join(result);
  if (bytes instanceof GatewayError) return bytes.message;
  if (bytes === ASKS) return 'The tool asked a question in a form that a macro cannot pass on.';
  const { content, structuredContent, isError, message } = parseObject(bytes);
  if (content === undefined && structuredContent === undefined && typeof message === 'string') return message;
  const text = textOf(content);
  if (isError === true) return text === '' ? 'The tool reported an error without a message.' : text;
  return { bytes, text, value: structuredContent ?? readText(text) };
}

function textOf(content: unknown): string {
  const blocks = Array.isArray(content) ? (content as { type?: unknown; text?: unknown }[]) : [];
  return blocks
    .filter(({ type, text }) => type === 'text' && typeof text === 'string')
    .map(({ text }) => text)
    .join('\n');
}

/** Many tools return JSON as text. */
function readText(text: string): unknown {
  if (!/^\s*[[{]/.test(text)) return text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
