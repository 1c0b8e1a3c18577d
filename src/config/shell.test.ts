import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { runs } from '../../test/support/wide.ts';
import { parseCommandLine, scanCommandLine } from './shell.ts';

describe('a line that needs no shell', () => {
  it.each<[line: string, argv: string[]]>([
    ['uvx mcp-server-git --repository .', ['uvx', 'mcp-server-git', '--repository', '.']],
    ['  node\t server.js  ', ['node', 'server.js']],
    [`node "my server.js" 'and "this"' it\\'s`, ['node', 'my server.js', 'and "this"', "it's"]],
    ['a b""c \'\' ""', ['a', 'bc', '', '']],
    ['a "x\\"y\\\\z\\n"', ['a', 'x"y\\z\\n']],
    ['a "\\$HOME" \'$HOME\' \\$HOME', ['a', '$HOME', '$HOME', '$HOME']],
    ['a "one\ntwo" b\\\nc', ['a', 'one\ntwo', 'bc']],
    ['a "b\\\nc" \\\nd', ['a', 'bc', 'd']],
    ['a --flag=x@1.2 git+https://h/p#part %d x,y', ['a', '--flag=x@1.2', 'git+https://h/p#part', '%d', 'x,y']],
    ["a ';' '|' \\& \"*\"", ['a', ';', '|', '&', '*']],
    ['node naïve ✓ 日本', ['node', 'naïve', '✓', '日本']],
    ['a "cost 5$"', ['a', 'cost 5$']],
  ])('is split as a shell would: %j', (line, [file, ...args]) => {
    expect(parseCommandLine(line, 'linux')).toEqual({ file, args });
  });
});

describe('a line with something special to a shell', () => {
  it.each([
    'a | b',
    'a > log',
    'a 2>&1',
    'a < in',
    'a; b',
    'a && b',
    'a &',
    'a\nb',
    'a `b`',
    'a "`b`"',
    'a $(b)',
    'a "$(b)"',
    'a $((1+1))',
    'a ${X#y}',
    "a $'x'",
    'a $1',
    "a # a remark, isn't it",
    'NAME=value a',
    'NAME= a',
    '(a)',
    '{ a; }',
    '! a',
    'exec a',
    'cd x',
    'if true',
    '$PROGRAM x',
    '~/bin/a',
    './a* x',
    'cat <<END',
    'a \\',
  ])('goes to the shell unchanged: %j', (line) => {
    expect(parseCommandLine(line, 'linux')).toEqual({ file: '/bin/sh', args: ['-c', line] });
  });

  it.each(['a $X', 'a "$X/y"', 'a ${X}', 'a ${X:-y}', 'a *.js', 'a ?', 'a [xy]', 'a ~/x', 'a {x,y}', '"a b" $X'])(
    'replaces the shell if it is one command whose words are expanded: %j',
    (line) => {
      expect(parseCommandLine(line, 'linux')).toEqual({ file: '/bin/sh', args: ['-c', `exec ${line}`] });
    },
  );

  it('always goes to cmd.exe on Windows', () => {
    expect(parseCommandLine('npx -y x', 'win32')).toEqual({ file: 'cmd.exe', args: ['/d', '/s', '/c', 'npx -y x'] });
  });
});

it('a line break ends a command, and a comment', () => {
  expect(scanCommandLine('a b\nc d')).toMatchObject({
    commands: [
      ['a', 'b'],
      ['c', 'd'],
    ],
    need: 'shell',
  });
  expect(scanCommandLine("a # isn't it\nc")).toMatchObject({ commands: [['a'], ['c']], need: 'shell' });
});

describe('a line that cannot be run', () => {
  it.each<[line: string, message: string]>([
    [
      'a "b',
      `The quote " at character 3 of the command is never closed. Close it, or write \\" for the character itself.`,
    ],
    [
      "it's a",
      `The quote ' at character 3 of the command is never closed. Close it, or write \\' for the character itself.`,
    ],
    [
      'a | b "',
      `The quote " at character 7 of the command is never closed. Close it, or write \\" for the character itself.`,
    ],
    [' ', 'The command names no program. Name the one to start.'],
    ['"" x', 'The command names no program. Name the one to start.'],
  ])('says why: %j', (line, message) => {
    expect(() => parseCommandLine(line, 'linux')).toThrow(message);
  });
});

// Everything that has a meaning in some shell, and a few things without one.
const piece = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.constantFrom('a', 'b', 'x1', ' ', ' ', '\t', "'", '"', '\\', '\\\n', '\n', '=', '-', '--f='),
  },
  { weight: 2, arbitrary: fc.constantFrom(...'$`*?[]~{}!^#;&|<>()@%+,:./_0é\r\v\x01\x7f\xa0'.split(''), '✓', '😀') },
  {
    weight: 2,
    arbitrary: fc.constantFrom(`'a b'`, `"a b"`, `'"'`, `"'"`, `\\"`, `"\\""`, `"\\a"`, `"$"`, '$X', '${X}', '"$X"'),
  },
  {
    weight: 1,
    arbitrary: fc.string({ unit: 'grapheme', maxLength: 3 }).filter((text) => !text.includes('\0')),
  },
);
const lines = fc.array(
  fc.array(piece, { maxLength: 12 }).map((parts) => `cmd ${parts.join('')}`),
  {
    minLength: 150,
    maxLength: 200,
  },
);

const shells = [['/bin/sh'], ['/bin/bash', '--posix']].filter(([file]) => existsSync(file!));

describe.each(shells)('%s', (shell, ...options) => {
  /** The words into which the shell itself splits each line. */
  function wordsOf(lines: string[]): string[][] {
    const script = lines.map((line) => `set -- ${line}\nprintf '%s\\0' "$#" "$@"`).join('\n');
    const output = execFileSync(shell!, options, { input: script, env: {}, maxBuffer: 1e8 }).toString();
    const fields = output.split('\0');
    return lines.map(() => fields.splice(0, 1 + Number(fields[0])).slice(1));
  }

  it('splits every line that we split ourselves into the same words', () => {
    let compared = 0;
    fc.assert(
      fc.property(lines, (lines) => {
        const plain = lines.filter((line) => need(line) === 'nothing');
        compared += plain.length;
        expect(plain.map((line) => scanCommandLine(line).commands[0])).toEqual(wordsOf(plain));
      }),
      { numRuns: runs(100) },
    );
    expect(compared).toBeGreaterThan(500);
  });

  it('runs a line with `exec` in front as it runs the line itself', () => {
    // A program, because `exec` cannot start the builtin of that name.
    const print = `/usr/bin/printf '<%s>'`;
    const run = (line: string) => {
      const { stdout, status } = spawnSync(shell!, [...options, '-c', line], {
        env: { X: 'a  b;c', HOME: '/h' },
        cwd: import.meta.dirname,
      });
      return [stdout.toString(), status];
    };
    for (const words of ['$X', '"$X" *.nothing', 'sh*.ts', '~/x y', '${Y:-z}"${X}"', '{a,b} [s]elf.ts', "'$X' ${X}"]) {
      const line = `${print} ${words}`;
      const launch = parseCommandLine(line, 'linux');
      expect(launch.args[1]).toBe(`exec ${line}`);
      expect(run(`exec ${line}`)).toEqual(run(line));
    }
  });
});

/** What is needed to run a line. Lines that no shell can read are not part of this test. */
function need(line: string): string {
  try {
    return scanCommandLine(line).need;
  } catch {
    return 'unreadable';
  }
}
