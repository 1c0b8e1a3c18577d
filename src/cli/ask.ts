/** Asking a person: for something nobody else is to read, or for a yes. */
import { createInterface } from 'node:readline/promises';
import { StringDecoder } from 'node:string_decoder';
import { GatewayError } from '../internal.ts';

export function hasTerminal(): boolean {
  return process.stdin.isTTY === true;
}

/** What was typed beyond the answer: it belongs to the next question. */
let ahead = '';

/** One line, of which nothing is shown. */
export async function askHidden(question: string): Promise<string> {
  const { stdin, stderr } = process;
  const decoder = new StringDecoder('utf8');
  let answer = '';
  stderr.write(question);
  // The terminal would show what is typed, and go on hiding it if we were ended here.
  stdin.setRawMode(true);
  const restore = () => stdin.setRawMode(false);
  const end = (signal: NodeJS.Signals) => {
    restore();
    process.exit(signal === 'SIGHUP' ? 129 : 143);
  };
  process.once('SIGTERM', end).once('SIGHUP', end);
  try {
    return await new Promise<string>((resolve, reject) => {
      const take = (typed: string): boolean => {
        const characters = [...typed];
        for (const [i, char] of characters.entries()) {
          if (char === '\r' || char === '\n') {
            ahead = characters.slice(i + 1).join('');
            resolve(answer);
            return true;
          }
          if (char === '\u0003' || (char === '\u0004' && answer === '')) {
            reject(new GatewayError('cancelled', 'Nothing was changed.'));
            return true;
          }
          if (char === '\u007f' || char === '\b') answer = [...answer].slice(0, -1).join('');
          else if (char === '\u0015') answer = '';
          else if (char >= ' ') answer += char;
        }
        return false;
      };
      const early = ahead;
      ahead = '';
      if (take(early)) return;
      const hear = (chunk: Buffer) => {
        if (take(decoder.write(chunk).replace(KEYS, ''))) stdin.off('data', hear);
      };
      stdin.on('data', hear);
      stdin.resume();
    });
  } finally {
    process.off('SIGTERM', end).off('SIGHUP', end);
    stdin.pause();
    restore();
    stderr.write('\n');
  }
}

/** Arrows and the like, and the marks that terminals put around what is pasted. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they begin with an escape
const KEYS = /\u001b(?:\[[0-9;]*[A-Za-z~]|O[A-Za-z])/g;

/** Asked twice: what cannot be seen is easily mistyped. */
export async function askTwice(question: string, again: string): Promise<string> {
  const first = await askHidden(`${question}: `);
  if (first === '') throw new GatewayError('usage', 'Nothing was typed, and nothing was changed.');
  if ((await askHidden(`${again}: `)) !== first)
    throw new GatewayError('usage', 'The two are not the same. Nothing was changed.');
  return first;
}

/** All of the standard input, less the line break at its end. */
export async function readInput(): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of process.stdin) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks)
    .toString()
    .replace(/\r?\n$/, '');
}

export async function confirm(question: string): Promise<boolean> {
  if (!hasTerminal()) throw new GatewayError('usage', `${question} Add --yes to do it.`);
  const lines = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return /^y(es)?$/i.test((await lines.question(`${question} [y/N] `)).trim());
  } finally {
    lines.close();
  }
}
