/** `toolgate macros`: tools that are made of other tools. */
import { GatewayError } from '../base/errors.ts';
import { categoryOf } from '../catalog/category.ts';
import type { Gateway } from '../gateway/gateway.ts';
import { withVerbs } from './arguments.ts';
import { call } from './call.ts';
import type { CommandIo } from './command-io.ts';
import type { Options } from './options.ts';
import { withGateway } from './session.ts';
import { brief, cell, columns, paint, printResult, table } from './terminal.ts';

export const macros = withVerbs('macros', {
  list: (_, options, io) => withGateway(options, io, async (gateway) => list(gateway, options, io), { audit: false }),
  async run(args, options, io) {
    if (args.length === 0) throw new GatewayError('usage', 'Which macro? toolgate macros run NAME [key=value …].');
    return call(args, options, io);
  },
});

function list({ config, catalog }: Gateway, options: Options, io: CommandIo): number {
  const entries = [...catalog.entries.tool.values()].filter(({ item }) => item.uses !== undefined);
  const rows = config.macros.map((macro) => {
    const entry = entries.find(({ item }) => item.name === macro.name);
    return {
      name: entry?.name ?? macro.name,
      description: macro.description,
      /** False if a tool that it calls is missing. */
      present: entry !== undefined,
      ...(entry !== undefined && { category: categoryOf(entry) }),
      steps: macro.steps.map(({ id, tool }) => ({ id, tool })),
    };
  });
  const cells = rows.map(({ name, present, steps, description }) => [
    `${present ? paint('green', '✓', io) : paint('red', '✗', io)} ${cell(name)}`,
    cell(steps.map(({ tool }) => tool).join(', ')),
    paint('dim', brief(description, Math.max(20, columns(io) - 60)), io),
  ]);
  return printResult(options, rows, rows.length === 0 ? 'There are no macros.' : table(cells), io);
}
