/** How the CLI looks: colour and movement on a terminal, plain text in a pipe. */
import { styleText } from 'node:util';

type Style = 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'cyan';

interface Screen {
  readonly isTTY?: boolean;
}

function colourful(stream: Screen): boolean {
  const { NO_COLOR, FORCE_COLOR } = process.env;
  if (NO_COLOR !== undefined && NO_COLOR !== '') return false;
  if (FORCE_COLOR !== undefined && FORCE_COLOR !== '0') return true;
  return stream.isTTY === true;
}

export function paint(style: Style, text: string, stream: Screen = process.stdout): string {
  // The stream was looked at already; styleText itself would look again and know less.
  return colourful(stream) ? styleText(style, text, { validateStream: false }) : text;
}

/** Text of a server, made safe to show: no escape sequence of its making reaches the terminal. */
export function plain(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are exactly the characters to take out
  return text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, '?');
}

/** A value as JSON that is safe to show too: JSON itself leaves some control characters as they are. */
export function jsonText(value: unknown, indent?: number): string {
  return JSON.stringify(value, null, indent).replace(
    /[\u007f-\u009f]/g,
    (char) => `\\u00${char.charCodeAt(0).toString(16)}`,
  );
}

/** The first line, cut to what fits. */
export function brief(text: string, width: number): string {
  const line = plain(text).replace(/\s+/g, ' ').trim();
  const letters = [...line];
  return letters.length > width ? `${letters.slice(0, Math.max(1, width - 1)).join('')}…` : line;
}

/** Columns that line up. Styled cells are measured without their colour. */
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

export function columns(): number {
  return process.stdout.columns ?? 120;
}

/** Shows that something is going on, on a terminal only. */
export async function withSpinner<T>(text: string, work: Promise<T>): Promise<T> {
  if (process.stderr.isTTY !== true) return work;
  const frames = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];
  let frame = 0;
  const timer = setInterval(() => {
    process.stderr.write(`\r${paint('cyan', frames[frame++ % frames.length]!, process.stderr)} ${text}`);
  }, 80);
  try {
    return await work;
  } finally {
    clearInterval(timer);
    process.stderr.write('\r\u001b[K');
  }
}

/** Milliseconds, as people say them. */
export function duration(ms: number | null): string {
  if (ms === null) return '-';
  return ms < 1_000 ? `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms` : `${(ms / 1_000).toFixed(1)} s`;
}
