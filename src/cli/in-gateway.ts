/** Runs the commands of a gateway in the one that runs, or in one that is started for this command. */
import {
  type CommandAnswer,
  type CommandRequest,
  type GatewayCommand,
  runInGateway,
} from '../doors/commands/commands.ts';
import { COMMANDS_PATH } from '../doors/http/admin/commands.ts';
import type { CommandIo } from './command-io.ts';
import type { Options } from './options.ts';
import { askRunning, type RunningGateway } from './running.ts';
import { type SessionOptions, withGateway } from './session.ts';

export type RunInGateway = <Name extends GatewayCommand>(
  name: Name,
  request: CommandRequest<Name>,
) => Promise<CommandAnswer<Name>>;

export async function inGateway(
  options: Options,
  io: CommandIo,
  work: (run: RunInGateway) => Promise<number>,
  session: SessionOptions = {},
): Promise<number> {
  const code = await askRunning(options, io, (running) => work((name, request) => askCommand(running, name, request)));
  if (code !== null) return code;
  return withGateway(options, io, (gateway) => work((name, request) => runInGateway(gateway, name, request)), session);
}

export async function askCommand<Name extends GatewayCommand>(
  { ask }: RunningGateway,
  name: Name,
  request: CommandRequest<Name>,
): Promise<CommandAnswer<Name>> {
  const answer = await ask(`${COMMANDS_PATH}/${name}`, { body: request });
  return JSON.parse(answer.toString()) as CommandAnswer<Name>;
}
