/** The command line: finds the command, runs it, and turns what goes wrong into one clear line and an exit code. */
import { createRedactor, environmentSecrets, GatewayError, messageOf, VERSION } from '../internal.ts';
import { commandHelp, helpText, type Invocation, parseCommandLine } from './commands.ts';
import { paint, plain } from './terminal.ts';

export async function run(argv: readonly string[]): Promise<void> {
  // A reader that has seen enough, such as `head`, is no failure.
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
  const invocation = parseCommandLine(argv);
  if (invocation.options.version === true) return print(VERSION);
  if (invocation.options.help === true) return print(commandHelp(invocation.command));
  return execute(invocation);
}

function print(text: string): number {
  process.stdout.write(`${text}\n`);
  return 0;
}

/** Each command is loaded when it is wanted: start-up is part of every agent's first second. */
async function execute({ command, args, options }: Invocation): Promise<number> {
  switch (command) {
    case 'stdio':
      return (await import('./stdio.ts')).stdio(options);
    case 'serve':
      return (await import('./serve.ts')).serve(options);
    case 'connect':
      return (await import('./connect.ts')).connect(args, options);
    case 'wait':
      return (await import('./connect.ts')).wait(args, options);
    case 'list':
      return (await import('./list.ts')).list(args, options);
    case 'toolsets':
      return (await import('./toolsets.ts')).toolsets(args, options);
    case 'namespaces':
      return (await import('./namespaces.ts')).namespaces(args, options);
    case 'agents':
      return (await import('./agents.ts')).agents(args, options);
    case 'approvals':
      return (await import('./approvals.ts')).approvals(args, options);
    case 'secrets':
      return (await import('./secrets.ts')).secrets(args, options);
    case 'call':
      return (await import('./call.ts')).call(args, options);
    case 'macros':
      return (await import('./macros.ts')).macros(args, options);
    case 'explain':
      return (await import('./explain.ts')).explain(args, options);
    case 'plan':
      return (await import('./plan.ts')).plan(options);
    case 'audit':
      return (await import('./audit.ts')).audit(args, options);
    case 'doctor':
      return (await import('./doctor.ts')).doctor(options);
    case 'schema':
      return (await import('./schema.ts')).schema();
    default:
      return command satisfies never;
  }
}
