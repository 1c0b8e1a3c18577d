/** Detects a server that is Toolgate itself, because it would start itself again and again. */
import { basename } from 'node:path';
import { scanCommandLine } from './shell.ts';

const SHELLS = new Set(['sh', 'bash', 'dash', 'zsh', 'ksh', 'cmd']);
const LAUNCHERS = new Set(['node', 'tsx', 'npx', 'bunx', 'pnpx', 'npm', 'pnpm', 'yarn', 'bun']);
const LAUNCHER_WORDS = new Set(['dlx', 'exec', 'x', 'run']);
/** Options of launchers, of `env` and of Toolgate whose value is the next word. */
const VALUED = new Set(
  '-p --package -r --require --import --loader --env-file -C --dir --prefix -u --unset --config --log-level'.split(' '),
);

/** Whether these words start Toolgate as a gateway. `toolgate connect` only forwards, and may be a server. */
export function startsToolgate(words: readonly string[]): boolean {
  const [program = '', ...args] = withoutPrefixes(words);
  const name = programName(program);
  if (SHELLS.has(name)) {
    const option = args.findIndex((arg) => /^(?:-\w*c|\/c)$/.test(arg));
    return option >= 0 && lineStartsToolgate(args[option + 1] ?? '');
  }
  const rest = positionals(args);
  if (name === 'toolgate') return rest[0] !== 'connect';
  if (!LAUNCHERS.has(name)) return false;
  if (LAUNCHER_WORDS.has(rest[0] ?? '')) rest.shift();
  return programName(rest[0] ?? '') === 'toolgate' && rest[1] !== 'connect';
}

function lineStartsToolgate(line: string): boolean {
  try {
    const { commands, unread } = scanCommandLine(line);
    // The part that only a shell can read is searched roughly. Leaving out a server by mistake is better than an
    // endless start.
    const rough = unread.split(/[\s;&|()<>`"']+/);
    return commands.some(startsToolgate) || rough.some((_, i) => startsToolgate(rough.slice(i)));
  } catch {
    // No shell can run this line, so it starts nothing.
    return false;
  }
}

/** Drops what may precede a program: `NAME=value`, `exec`, `env`. */
function withoutPrefixes(words: readonly string[]): readonly string[] {
  const [first, ...rest] = words;
  if (first === undefined) return [];
  if (/^\w+=/.test(first) || first === 'exec') return withoutPrefixes(rest);
  if (programName(first) === 'env') return withoutPrefixes(positionals(rest));
  return words;
}

/** The words that are neither options nor values of options. */
function positionals(args: readonly string[]): string[] {
  return args.filter((arg, i) => !arg.startsWith('-') && !VALUED.has(args[i - 1] ?? ''));
}

/** `toolgate` for `/opt/bin/toolgate.mjs`, `toolgate.cmd` and `toolgate@latest`, not for `@acme/toolgate`. */
function programName(word: string): string {
  if (word.startsWith('@')) return word;
  return basename(word.replaceAll('\\', '/'))
    .toLowerCase()
    .replace(/@.*$/, '')
    .replace(/\.(?:m?js|cmd|exe|ps1)$/, '');
}
