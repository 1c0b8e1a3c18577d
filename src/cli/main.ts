/** The command line: finds the command, runs it, and turns errors into one clear line and an exit code. */
import { GatewayError, messageOf } from '../base/errors.ts';
import { VERSION } from '../base/version.ts';
import { createRedactor } from '../secrets/redact.ts';
import { environmentSecrets } from '../secrets/secret-values.ts';
import { commandHelp, commands, helpText, parseCommandLine } from './commands.ts';
import type { Program } from './program.ts';
import { paint, plain, print } from './terminal.ts';

/** Returns the exit code. */
export async function run(argv: readonly string[], program: Program): Promise<number> {
  // A reader that stops early, such as `head`, is not an error.
  program.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
  });
  try {
    return await dispatch(argv, program);
  } catch (error) {
    const text = error instanceof GatewayError ? error.message : ((error as Error).stack ?? messageOf(error));
    const { redact } = createRedactor(environmentSecrets(program.env));
    program.stderr.write(`${paint('red', 'toolgate:', program, 'stderr')} ${plain(redact(text))}\n`);
    return 2;
  }
}

async function dispatch(argv: readonly string[], program: Program): Promise<number> {
  if (argv[0] === '--help' || argv[0] === '-h' || argv[0] === 'help') return print(helpText(), program);
  const { command, args, options } = parseCommandLine(argv);
  if (options.version === true) return print(VERSION, program);
  if (options.help === true) return print(commandHelp(command), program);
  const runCommand = await commands[command].load();
  return runCommand(args, options, program);
}
