/** A call of wordy.mjs. Every message about the call contains its word; a message with another word was misrouted. */
import type { Message } from '../support/lean-client.ts';

export type Answering = 'accept' | 'decline' | 'error' | 'never';

export interface Plan {
  readonly id: number;
  readonly upstream: string;
  readonly tool: 'say' | 'ask';
  readonly args: Record<string, unknown>;
  readonly answering: Answering;
  /** What the client does after the first message about the call, or after some time. */
  readonly then: 'wait' | 'cancel' | 'drop' | 'return' | 'vanish';
  readonly after: number;
}

/** Counts of outcomes, by name. */
export interface Findings {
  readonly foreign: string[];
  readonly broken: string[];
  readonly counts: Map<string, number>;
}

export function createFindings(): Findings {
  return { foreign: [], broken: [], counts: new Map() };
}

export function count({ counts }: Findings, what: string): void {
  counts.set(what, (counts.get(what) ?? 0) + 1);
}

export interface Asked {
  readonly key: string;
  readonly method: string;
  readonly line: string;
}

const GAVE_WAY = /exited with code 0 before it answered|is being stopped/;

export class WordCall {
  readonly plan: Plan;
  readonly word: string;
  /** All clients also use the same progress tokens. */
  readonly token: string;
  readonly findings: Findings;
  readonly #settled: () => void;
  readonly over: Promise<void>;
  isOver = false;
  /** The client has no session: its parked question may be dropped if another call needs the process. */
  mayGiveWay = false;

  constructor(client: string, plan: Plan, findings: Findings) {
    this.plan = plan;
    this.word = `${client}-${plan.id}`;
    this.token = `token-${plan.id}`;
    this.findings = findings;
    let settle = () => {};
    this.over = new Promise((resolve) => {
      settle = resolve;
    });
    this.#settled = settle;
  }

  get params(): Record<string, unknown> {
    const { upstream, tool, args } = this.plan;
    return { name: `${upstream}_${tool}`, arguments: { ...args, word: this.word } };
  }

  end(what: string): void {
    if (this.isOver) return;
    this.isOver = true;
    count(this.findings, what);
    this.#settled();
  }

  broken(what: string): void {
    this.findings.broken.push(`${this.word} (${this.#about()}): ${what}`);
    this.end('broken');
  }

  foreign(message: unknown): void {
    this.findings.foreign.push(`${this.word} (${this.#about()}) got ${JSON.stringify(message).slice(0, 300)}`);
  }

  #about(): string {
    const { upstream, tool, answering, then } = this.plan;
    return `${upstream} ${tool} ${answering} ${then}`;
  }

  /** Takes a notification or a question. Returns the question. */
  hear(message: Message): Asked | null {
    const { method, params = {}, id } = message;
    if (method === 'notifications/progress') {
      count(this.findings, 'progress');
      if (params.progressToken !== this.token || params.message !== this.word) this.foreign(message);
    } else if (method === 'notifications/message') {
      count(this.findings, 'logs');
      if (params.data !== this.word) this.foreign(message);
    } else if (method === 'notifications/cancelled') {
      count(this.findings, 'questions taken back');
    } else if (id !== undefined && id !== null) {
      return this.ask(String(id), method!, params);
    } else this.foreign(message);
    return null;
  }

  ask(key: string, method: string, params: Record<string, unknown>): Asked {
    count(this.findings, 'questions');
    const line = lineOf(params);
    if (!line.startsWith(`${this.word}#`)) this.foreign({ method, params });
    return { key, method, line };
  }

  /** Takes the answer. */
  settle(message: Message, id: number | string): void {
    const { result, error } = message;
    if (message.id !== id) this.foreign(message);
    if (error !== undefined) this.#refused(String(error.code), error.message);
    else if (result?.isError === true) {
      const text = textOf(result);
      const { code = 'none' } = text.startsWith('{') ? (JSON.parse(text) as { code?: string }) : {};
      this.#refused(code, text);
    } else this.#succeeded(message);
  }

  #succeeded(message: Message): void {
    const { word, answers = [] } = JSON.parse(textOf(message.result!)) as { word: string; answers?: string[] };
    if (word !== this.word) this.foreign(message);
    for (const answer of answers)
      if (answer.startsWith('re ') && !answer.startsWith(`re ${this.word}#`)) this.foreign(message);
    const isRefused = answers.some((answer) => answer.startsWith('Toolgate cannot pass on'));
    if (this.plan.tool === 'say') this.end('said');
    else if (isRefused) this.end('questions refused');
    else this.end(answers.some((answer) => answer.startsWith('re ')) ? 'answered' : 'declined');
  }

  /** Some refusals are expected, but only those that this test can cause. */
  #refused(code: string, text: string): void {
    const { answering, then } = this.plan;
    if (this.mayGiveWay && GAVE_WAY.test(text)) {
      this.end('gave way');
      return;
    }
    const isRight =
      code === 'source_busy' ||
      code === 'capability_missing' ||
      code === '-32021' ||
      (code === 'question_unanswered' && answering !== 'accept') ||
      (code === 'source_timeout' && (answering === 'never' || then !== 'wait'));
    if (isRight) this.end(code === 'source_busy' ? 'busy' : code === 'source_timeout' ? 'timed out' : 'refused');
    else this.broken(`${code} ${text.slice(0, 200)}`);
  }
}

/** A client's answer to a question: a result or an error; null for no answer. */
export function answerTo({ method, line }: Asked, answering: Answering): { result: object } | { error: object } | null {
  if (answering === 'never') return null;
  const isSampling = method === 'sampling/createMessage';
  if (answering === 'error' || (answering === 'decline' && isSampling)) return { error: { code: -1, message: 'no' } };
  if (answering === 'decline') return { result: { action: 'decline' } };
  const said = `re ${line}`;
  if (!isSampling) return { result: { action: 'accept', content: { word: said } } };
  return { result: { role: 'assistant', model: 'm', content: { type: 'text', text: said } } };
}

function lineOf(params: Record<string, unknown>): string {
  const [message] = (params.messages ?? []) as { content: { text: string } }[];
  // A form says which server asks.
  return String(params.message ?? message?.content.text).replace(/^Server "\w+" asks: /, '');
}

function textOf(result: Record<string, unknown>): string {
  return (result.content as { text: string }[] | undefined)?.[0]?.text ?? '';
}
