/** `toolgate macros`: tools that are made of other tools. */
import { categoryOf, didYouMean, type Gateway, GatewayError } from '../internal.ts';
import { call } from './call.ts';
import type { Options } from './commands.ts';
import { withGateway } from './session.ts';
import { brief, columns, jsonText, paint, plain, table } from './terminal.ts';

export async function macros(args: readonly string[], options: Options): Promise<number> {
  const [verb = 'list', ...rest] = args;
  switch (verb) {
    case 'list':
      return withGateway(options, async (gateway) => list(gateway, options), false);
    case 'run':
      if (rest[0] === undefined)
        throw new GatewayError('usage', 'Which macro? toolgate macros run NAME [key=value …].');
      return call(rest, options);
    default:
      throw new GatewayError('usage', `toolgate macros has no "${verb}".${didYouMean(verb, ['list', 'run'])}`);
  }
}

function list({ config, catalog }: Gateway, { json }: Options): number {
  const entries = [...catalog.entries.tool.values()].filter(({ item }) => item.uses !== undefined);
  const rows = config.macros.map((macro) => {
    const entry = entries.find(({ item }) => item.name === macro.name);
    return {
      name: entry?.name ?? macro.name,
      description: macro.description,
      /** False where a tool that it calls is not there. */
      present: entry !== undefined,
      ...(entry !== undefined && { category: categoryOf(entry) }),
      steps: macro.steps.map(({ id, tool }) => ({ id, tool })),
    };
  });
  if (json === true) process.stdout.write(`${jsonText(rows, 2)}\n`);
  else if (rows.length === 0) process.stdout.write('There are no macros.\n');
  else
    process.stdout.write(
      `${table(
        rows.map(({ name, present, steps, description }) => [
          `${present ? paint('green', '✓') : paint('red', '✗')} ${plain(name)}`,
          plain(steps.map(({ tool }) => tool).join(', ')),
          paint('dim', brief(description, Math.max(20, columns() - 60))),
        ]),
      )}\n`,
    );
  return 0;
}
