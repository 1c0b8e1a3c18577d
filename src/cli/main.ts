/** The command line: finds the command, runs it, and turns errors into one clear line and an exit code. */
import { GatewayError, messageOf } from '../base/errors.ts';
import { VERSION } from '../base/version.ts';
import { createRedactor } from '../secrets/redact.ts';
import { environmentSecrets } from '../secrets/secret-values.ts';
import type { CommandIo } from './command-io.ts';
import { commandOf, commands, parseCommandLine } from './commands.ts';
import { commandHelp, helpText } from './help.ts';
import { paint, plain, print } from './terminal.ts';

/** Returns the exit code. */
export async function run(argv: readonly string[], io: CommandIo): Promise<number> {
  // A reader that stops early, such as `head`, is not an error.
  io.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
  });
  try {
    return await dispatch(argv, io);
  } catch (error) {
    const isExplained = error instanceof GatewayError || isSystemError(error);
    const text = isExplained ? messageOf(error) : ((error as Error).stack ?? messageOf(error));
    const { redact } = createRedactor(environmentSecrets(io.env));
    io.stderr.write(`${paint('red', 'toolgate:', io, 'stderr')} ${plain(redact(text))}\n`);
    return 2;
  }
}

/** Whether a file or a network failed, and not Toolgate. Where in its code that was helps nobody. */
function isSystemError(error: unknown): boolean {
  return error instanceof Error && 'syscall' in error && 'code' in error;
}

/** `toolgate help list` is `toolgate list --help`. Other words are pages of the documentation. */
async function help([word = '', more, ...rest]: readonly string[], io: CommandIo): Promise<number> {
  const name = commandOf(word);
  if (word.startsWith('-') || (name !== null && more !== 'page')) {
    const code = await dispatch([word, ...(more === undefined ? [] : [more]), ...rest, '--help'], io);
    const { topics } = await import('./help-topics.ts');
    const hasPage = name !== null && topics().includes(name);
    return hasPage ? print(`\nThere is a page about it: toolgate help ${name} page`, io) : code;
  }
  if (word === 'man') return print((await import('./man.ts')).manPage().trimEnd(), io);
  const { topicsText, topicText } = await import('./help-topics.ts');
  return print(word === 'topics' ? topicsText() : topicText(word, Object.keys(commands)), io);
}

async function dispatch(argv: readonly string[], io: CommandIo): Promise<number> {
  if (argv[0] === '--help' || argv[0] === '-h' || (argv[0] === 'help' && argv.length === 1))
    return print(helpText(), io);
  if (argv[0] === 'help') return help(argv.slice(1), io);
  const { command, args, options } = parseCommandLine(argv);
  if (options.version === true) return print(VERSION, io);
  if (options.help === true) return print(commandHelp(command), io);
  const runCommand = await commands[command].load();
  return runCommand(args, options, io);
}
