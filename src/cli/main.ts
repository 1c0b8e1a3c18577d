/** The command line: finds the command, runs it, and turns errors into one clear line and an exit code. */
import { GatewayError, messageOf } from '../base/errors.ts';
import { VERSION } from '../base/version.ts';
import { createRedactor } from '../secrets/redact.ts';
import { environmentSecrets } from '../secrets/secret-values.ts';
import { commandHelp, commands, helpText, parseCommandLine } from './commands.ts';
import { paint, plain, print } from './terminal.ts';

export async function run(argv: readonly string[]): Promise<void> {
  // A reader that stops early, such as `head`, is not an error.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
  });
  try {
    process.exitCode = await dispatch(argv);
  } catch (error) {
    const text = error instanceof GatewayError ? error.message : ((error as Error).stack ?? messageOf(error));
    const { redact } = createRedactor(environmentSecrets(process.env));
    process.stderr.write(`${paint('red', 'toolgate:', process.stderr)} ${plain(redact(text))}\n`);
    process.exitCode = 2;
  }
}

async function dispatch(argv: readonly string[]): Promise<number> {
  if (argv[0] === '--help' || argv[0] === '-h' || argv[0] === 'help') return print(helpText());
  const { command, args, options } = parseCommandLine(argv);
  if (options.version === true) return print(VERSION);
  if (options.help === true) return print(commandHelp(command));
  const runCommand = await commands[command].load();
  return runCommand(args, options);
}
