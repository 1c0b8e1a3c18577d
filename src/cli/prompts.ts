/**
 * Asks the person at the terminal. Prompts are drawn on stderr: stdout belongs to the result of the command.
 * The library behind them is loaded when one is shown, because most commands show none.
 */
import { constants } from 'node:os';
import { GatewayError } from '../base/errors.ts';
import type { CommandIo, Signal } from './command-io.ts';
import type { Choice } from './pick.ts';
import { paint } from './terminal.ts';

/** Whether a person can answer a question. */
export function hasTerminal(io: CommandIo): boolean {
  return io.stdin.isTTY === true;
}

/** Whether a person can also see a list to pick from. */
export function canPick(io: CommandIo): boolean {
  return hasTerminal(io) && io.stderr.isTTY === true;
}

export async function confirm(question: string, io: CommandIo): Promise<boolean> {
  if (!hasTerminal(io)) throw new GatewayError('usage', `${question} Add --yes to do it.`);
  const { default: prompt } = await import('@inquirer/confirm');
  const theme = themeOf(io);
  return show((context) => prompt({ message: question, default: false, theme }, context), io);
}

/** A value that is not shown while it is typed. It is asked for twice, because a typing mistake cannot be seen. */
export async function askTwice(question: string, again: string, io: CommandIo): Promise<string> {
  const first = await askHidden(`${question}:`, io);
  if (first === '') throw new GatewayError('usage', 'Nothing was typed, and nothing was changed.');
  if ((await askHidden(`${again}:`, io)) !== first)
    throw new GatewayError('usage', 'The two values differ. Nothing was changed.');
  return first;
}

async function askHidden(question: string, io: CommandIo): Promise<string> {
  const { default: prompt } = await import('@inquirer/password');
  let isCut = false;
  // The prompt ends at the first line break and drops what follows. Part of a pasted key must not be taken for the key.
  const check = (chunk: Buffer) => {
    isCut ||= /[\r\n]\s*\S/.test(chunk.toString());
  };
  io.stdin.on('data', check);
  try {
    const theme = themeOf(io);
    const answer = await show((context) => prompt({ message: question, theme }, context), io);
    if (isCut)
      throw new GatewayError('usage', 'A value of several lines cannot be typed. Nothing was changed. Use --stdin.');
    return answer;
  } finally {
    io.stdin.off('data', check);
  }
}

/** The values that were picked, in the order of the list. */
export async function pick(choices: readonly Choice[], chosen: Iterable<string>, io: CommandIo): Promise<string[]> {
  const { pickPrompt } = await import('./pick.ts');
  const config = {
    choices,
    chosen: [...chosen],
    rows: io.stderr.rows || 24,
    columns: io.stderr.columns || 80,
  };
  // A picker is shown while servers are running. A signal closes them first; the process ends after that.
  const prompt = (context: PromptContext) => pickPrompt(config, { ...context, clearPromptOnDone: true });
  const picked = await show(prompt, io, false);
  if (picked === null) throw cancelled();
  return picked;
}

/** All of standard input, without the line break at its end. */
export async function readInput(io: CommandIo): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of io.stdin) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks)
    .toString()
    .replace(/\r?\n$/, '');
}

const SIGNALS: readonly Signal[] = ['SIGINT', 'SIGTERM', 'SIGHUP'];

interface PromptContext {
  readonly input: NodeJS.ReadableStream;
  readonly output: NodeJS.WritableStream;
  readonly signal: AbortSignal;
}

/**
 * Shows a prompt, and always restores the terminal. Ctrl-C, Ctrl-D and the end of input cancel the command. A signal
 * ends the process, unless `exits` is false.
 */
async function show<Value>(
  prompt: (context: PromptContext) => Promise<Value>,
  io: CommandIo,
  exits = true,
): Promise<Value> {
  const { stdin, stderr } = io;
  const ending = new AbortController();
  let endedBy: NodeJS.Signals | null = null;
  const end = (signal: NodeJS.Signals) => {
    endedBy = signal;
    ending.abort();
  };
  // At Ctrl-D and at the end of input readline closes and pauses stdin, and the prompt would wait forever.
  const leave = () => ending.abort();
  for (const signal of SIGNALS) io.on(signal, end);
  stdin.on('pause', leave);
  try {
    return await prompt({ input: stdin, output: stderr, signal: ending.signal });
  } catch (error) {
    if (endedBy !== null && exits) io.exit(128 + constants.signals[endedBy]);
    if (error instanceof Error && ['ExitPromptError', 'AbortPromptError'].includes(error.name)) throw cancelled();
    throw error;
  } finally {
    stdin.off('pause', leave);
    for (const signal of SIGNALS) io.off(signal, end);
  }
}

function cancelled(): GatewayError {
  return new GatewayError('cancelled', 'Cancelled. Nothing was changed.');
}

/** Replaces the library's own styles, which decide by stdout, and on Node 20 always use colour. */
function themeOf(io: CommandIo) {
  const styled = (style: Parameters<typeof paint>[0]) => (text: string) => paint(style, text, io, 'stderr');
  return {
    prefix: { idle: styled('cyan')('?'), done: styled('green')('✔') },
    style: {
      message: styled('bold'),
      answer: styled('cyan'),
      help: styled('dim'),
      defaultAnswer: (text: string) => styled('dim')(`(${text})`),
      maskedText: 'not shown',
    },
  };
}
