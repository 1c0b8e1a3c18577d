/**
 * A command as typed in a terminal. A line of plain words is split here by the quoting rules of POSIX and started
 * without a shell, which saves a process and lets signals reach the server itself. A line with anything special to a
 * shell goes to the shell unchanged, and so does any line in doubt.
 */
import { GatewayError } from '../base/errors.ts';

export interface CommandLine {
  readonly file: string;
  readonly args: readonly string[];
}

/** The program to start for `line`. */
export function parseCommandLine(line: string, platform: NodeJS.Platform = process.platform): CommandLine {
  // On Windows programs such as npx are scripts, which only cmd.exe can start.
  if (platform === 'win32') return { file: 'cmd.exe', args: ['/d', '/s', '/c', line] };
  const { commands, need } = scanCommandLine(line);
  const [file, ...args] = commands[0] ?? [];
  switch (need) {
    case 'nothing':
      if (!file) throw new GatewayError('config_invalid', 'The command names no program. Name the one to start.');
      return { file, args };
    case 'expansion':
      return { file: '/bin/sh', args: ['-c', `exec ${line}`] };
    case 'shell':
      return { file: '/bin/sh', args: ['-c', line] };
  }
}

interface CommandScan {
  /** The words of each simple command, as far as they are known; exact if `need` is `nothing`. */
  readonly commands: readonly (readonly string[])[];
  /**
   * What is needed to run the line: nothing, a shell that expands the words of one simple command and then `exec`s it,
   * or a shell that keeps running.
   */
  readonly need: 'nothing' | 'expansion' | 'shell';
  /** The end of the line, where only a shell knows what quotes mean; mostly empty. */
  readonly unread: string;
}

/** Reads a line as a POSIX shell would, up to the point where only a shell knows. */
export function scanCommandLine(line: string): CommandScan {
  const commands: string[][] = [[]];
  let word: string | null = null;
  let need: CommandScan['need'] = 'nothing';
  let at = 0;

  const add = (text: string, length = text.length) => {
    word = (word ?? '') + text;
    at += length;
  };
  const endWord = () => {
    if (word !== null) commands.at(-1)!.push(word);
    word = null;
  };
  const expand = (text: string) => {
    // The program may expand to a builtin, which `exec` cannot start.
    if (commands.at(-1)!.length === 0) need = 'shell';
    else if (need === 'nothing') need = 'expansion';
    add(text);
  };
  const leaveToShell = (): CommandScan => {
    endWord();
    return { commands, need: 'shell', unread: line.slice(at) };
  };

  /** Takes the variable at `$`; false if something other than a plain variable begins there. */
  const takeVariable = (): boolean => {
    VARIABLE.lastIndex = at;
    const [variable] = VARIABLE.exec(line) ?? [];
    if (variable) {
      expand(variable);
      return true;
    }
    if (/[({'"`]/.test(line[at + 1] ?? '')) return false;
    need = 'shell';
    add('$');
    return true;
  };

  while (at < line.length) {
    const char = line[at]!;
    const next = line[at + 1];
    if (char === ' ' || char === '\t') {
      endWord();
      at++;
    } else if (char === "'") {
      const close = line.indexOf("'", at + 1);
      if (close < 0) throw unclosed(char, at);
      add(line.slice(at + 1, close), close + 1 - at);
    } else if (char === '"') {
      const open = at;
      add('', 1);
      while (line[at] !== '"') {
        const inner = line[at];
        if (inner === undefined) throw unclosed(char, open);
        if (inner === '`') return leaveToShell();
        if (inner === '$') {
          if (line[at + 1] === '"') add('$');
          else if (!takeVariable()) return leaveToShell();
        } else if (inner === '\\' && /[$`"\\\n]/.test(line[at + 1] ?? '')) {
          add(line[at + 1] === '\n' ? '' : line[at + 1]!, 2);
        } else add(inner);
      }
      at++;
    } else if (char === '\\') {
      if (next === undefined) return leaveToShell();
      if (next === '\n') at += 2;
      else add(next, 2);
    } else if (char === '$') {
      if (!takeVariable()) return leaveToShell();
    } else if (char === '`' || (char === '<' && next === '<')) {
      return leaveToShell();
    } else if (char === '#' && word === null) {
      // A comment goes to the end of its line, and quotes in it mean nothing.
      need = 'shell';
      const end = line.indexOf('\n', at);
      at = end < 0 ? line.length : end;
    } else if (OPERATOR.test(char)) {
      endWord();
      commands.push([]);
      need = 'shell';
      at++;
    } else if (EXPANDED.test(char)) {
      expand(char);
    } else if (char < ' ' || char === '\x7f') {
      need = 'shell';
      add(char);
    } else add(char);
  }
  endWord();
  const program = commands[0]?.[0] ?? '';
  return { commands, need: mustBeShell(program) ? 'shell' : need, unread: '' };
}

function unclosed(quote: string, offset: number): GatewayError {
  return new GatewayError(
    'config_invalid',
    `The quote ${quote} at character ${offset + 1} of the command is never closed. Close it, or write \\${quote} for the character itself.`,
  );
}

const VARIABLE = /\$(?:[A-Za-z_]\w*|\{[A-Za-z_]\w*(?::-[\w./:=@%+,-]*)?\})/y;
const OPERATOR = /[;&|<>()\n]/;
const EXPANDED = /[*?[\]~{}!^]/;

/**
 * Whether only a shell understands this first word: an assignment, a part of its grammar, or a builtin that is not a
 * program.
 */
function mustBeShell(program: string): boolean {
  return /^(?:-|\w+\+?=)/.test(program) || SHELL_WORDS.has(program);
}

const SHELL_WORDS = new Set(
  (
    '! { } if then else elif fi do done case esac while until for in function select time coproc ' +
    '. : alias bg break builtin cd command continue declare eval exec exit export fc fg getopts hash jobs let local read ' +
    'readonly return set shift source trap type typeset ulimit umask unalias unset wait'
  ).split(' '),
);
