/** What the CLI prints: colour and movement on a terminal, plain text in a pipe; and the signals that end it. */
import { setTimeout as sleep } from 'node:timers/promises';
import { styleText } from 'node:util';
import { escaped, excerpt } from '../base/text.ts';
import type { CommandIo, Screen } from './command-io.ts';
import type { Options } from './options.ts';

type Style = 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'cyan';

function isColourful(io: CommandIo, stream: 'stdout' | 'stderr'): boolean {
  const { NO_COLOR, FORCE_COLOR } = io.env;
  if (NO_COLOR !== undefined && NO_COLOR !== '') return false;
  if (FORCE_COLOR !== undefined && FORCE_COLOR !== '0') return true;
  return io[stream].isTTY === true;
}

export function paint(style: Style, text: string, io: CommandIo, stream: 'stdout' | 'stderr' = 'stdout'): string {
  // styleText would check the stream itself, but by other rules.
  return isColourful(io, stream) ? styleText(style, text, { validateStream: false }) : text;
}

/**
 * Makes text from a server safe to show, on several lines: none of its escape sequences reach the terminal, and no
 * character changes the direction or the order of the others.
 */
export function plain(text: string): string {
  return text.replace(
    // biome-ignore lint/suspicious/noControlCharactersInRegex: exactly these characters are replaced
    /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g,
    '?',
  );
}

/** The longest name that is shown whole. */
const LONGEST_NAME = 150;

/** A name as a cell of a table: on one line, every character visible, the middle left out if it is very long. */
export function cell(name: string): string {
  return excerpt(escaped(name), LONGEST_NAME);
}

/** JSON that is safe to show: JSON.stringify leaves some control characters unescaped. */
export function jsonText(value: unknown, indent?: number): string {
  return safeJson(JSON.stringify(value, null, indent));
}

/** The same JSON with escapes for what a terminal would act on. Such characters occur in strings only. */
export function safeJson(json: string): string {
  const inEscapes = (char: string) =>
    char
      .split('')
      .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
      .join('');
  return json.replace(/[\u007f-\u009f\p{Cf}\p{Zl}\p{Zp}]/gu, inEscapes);
}

/** Prints a line. Returns exit code 0, so that a command can end with it. */
export function print(text: string, io: CommandIo): 0 {
  io.stdout.write(`${text}\n`);
  return 0;
}

/** Prints the result of a command: as JSON for programs, as text for people. */
export function printResult({ json }: Pick<Options, 'json'>, value: unknown, text: string, io: CommandIo): 0 {
  return print(json === true ? jsonText(value, 2) : text, io);
}

export function warn(text: string, io: CommandIo): void {
  io.stderr.write(`${paint('yellow', 'warning:', io, 'stderr')} ${plain(text)}\n`);
}

/** Says what a person should know and a script need not. Standard output stays free for the result. */
export function note(text: string, io: CommandIo): void {
  io.stderr.write(`${paint('dim', plain(text), io, 'stderr')}\n`);
}

/** Text on one line, cut to `width` characters. */
export function brief(text: string, width: number): string {
  const line = plain(text).replace(/\s+/g, ' ').trim();
  const letters = [...line];
  return letters.length > width ? `${letters.slice(0, Math.max(1, width - 1)).join('')}…` : line;
}

/** Rows with aligned columns. Styled cells are measured without their colour. */
export function table(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, i) => Math.max(...rows.map((row) => width(row[i] ?? ''))));
  return rows
    .map((row) =>
      row.map((cell, i) => (i === row.length - 1 ? cell : cell + ' '.repeat(widths[i]! - width(cell)))).join('  '),
    )
    .map((line) => line.trimEnd())
    .join('\n');
}

function width(cell: string): number {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: colour begins with an escape
  return [...cell.replace(/\u001b\[\d+m/g, '')].length;
}

export function columns(io: CommandIo): number {
  return io.stdout.columns ?? 120;
}

/** Shows that work is in progress, on a terminal only. `text` says what has been done so far. */
export async function withSpinner<T>(text: () => string, work: Promise<T>, io: CommandIo): Promise<T> {
  const { stderr } = io;
  if (stderr.isTTY !== true) return work;
  const frames = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];
  let frame = 0;
  const timer = setInterval(() => {
    const shown = brief(text(), (stderr.columns ?? 80) - 3);
    stderr.write(`\r\u001b[K${paint('cyan', frames[frame++ % frames.length]!, io, 'stderr')} ${shown}`);
  }, 80);
  try {
    return await work;
  } finally {
    clearInterval(timer);
    stderr.write('\r\u001b[K');
  }
}

/** A number of milliseconds as people write it. */
export function duration(ms: number | null): string {
  if (ms === null) return '-';
  return ms < 1_000 ? `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms` : `${(ms / 1_000).toFixed(1)} s`;
}

/** Resolves at the first SIGINT or SIGTERM. A second one ends the process at once. */
export function untilSignal(io: CommandIo): Promise<void> {
  return new Promise((resolve) => {
    const stop = () => {
      resolve();
      io.once('SIGINT', () => io.exit(130));
      io.once('SIGTERM', () => io.exit(143));
    };
    io.once('SIGINT', stop);
    io.once('SIGTERM', stop);
  });
}

/** Milliseconds in which a client that is still there has to read something of what is left for it. */
const LAST_READ = 5_000;

/**
 * The end of a command that serves a client: its input and output must not keep us alive. What the client has not read yet is
 * left for it while it reads.
 */
export async function leaveClient(io: CommandIo): Promise<number> {
  io.stdin.destroy();
  let before = unreadBytes(io.stdout);
  let until = Date.now() + LAST_READ;
  for (let left = before; left > 0 && !io.stdout.destroyed; left = unreadBytes(io.stdout)) {
    if (left < before) until = Date.now() + LAST_READ;
    before = left;
    if (Date.now() > until) {
      io.exit(0);
      break;
    }
    await sleep(20);
  }
  return 0;
}

/** Falls with every byte that is read: of a long write in progress only the handle knows what is left. */
function unreadBytes(stream: Screen & { readonly _handle?: { readonly writeQueueSize?: number } | null }): number {
  return stream.writableLength + (stream._handle?.writeQueueSize ?? 0);
}
