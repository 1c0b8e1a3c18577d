/** `toolgate macros`: tools that are made of other tools. */
import { GatewayError } from '../base/errors.ts';
import type { ListedMacro } from '../doors/commands/list-macros.ts';
import { withVerbs } from './arguments.ts';
import { call } from './call.ts';
import type { CommandIo } from './command-io.ts';
import { inGateway } from './in-gateway.ts';
import type { Options } from './options.ts';
import { brief, cell, columns, paint, printResult, table } from './terminal.ts';

export const macros = withVerbs('macros', {
  list: (_, options, io) =>
    inGateway(options, io, async (run) => list(await run('macros', {}), options, io), { audit: false }),
  async run(args, options, io) {
    if (args.length === 0) throw new GatewayError('usage', 'Which macro? toolgate macros run NAME [key=value …].');
    return call(args, options, io);
  },
});

function list(rows: readonly ListedMacro[], options: Options, io: CommandIo): number {
  const cells = rows.map(({ name, present, steps, description }) => [
    `${present ? paint('green', '✓', io) : paint('red', '✗', io)} ${cell(name)}`,
    cell(steps.map(({ tool }) => tool).join(', ')),
    paint('dim', brief(description, Math.max(20, columns(io) - 60)), io),
  ]);
  return printResult(options, rows, rows.length === 0 ? 'There are no macros.' : table(cells), io);
}
