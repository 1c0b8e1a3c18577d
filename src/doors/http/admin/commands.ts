/** `/admin/commands/NAME`: what a command of the CLI asks of the gateway that runs. For the operator only. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { GatewayError } from '../../../base/errors.ts';
import type { Gateway } from '../../../gateway/gateway.ts';
import { type GatewayCommand, gatewayCommands, readRequest, runInGateway } from '../../commands/commands.ts';
import { decodePart, pathOf } from '../path.ts';
import { readJson } from '../wire/body.ts';
import { requireJson } from '../wire/content-types.ts';
import { sendJson } from '../wire/reply.ts';

export const COMMANDS_PATH = '/admin/commands';

export async function runCommand(
  gateway: Gateway,
  request: IncomingMessage,
  response: ServerResponse,
  headers: readonly string[],
): Promise<void> {
  const written = decodePart(pathOf(request.url ?? '').slice(COMMANDS_PATH.length + 1), 'command');
  if (!Object.hasOwn(gatewayCommands, written))
    throw new GatewayError('path_unknown', `This gateway has no command "${written}". It may be an older version.`);
  const name = written as GatewayCommand;
  requireJson(request.headers);
  const { limits } = gateway.config;
  const asked = readRequest(name, await readJson(request, limits.body, limits.depth));
  await gateway.caughtUp();
  await gateway.opening;
  const answer = await runInGateway(gateway, name, asked);
  sendJson(response, 200, answer, [...headers, 'cache-control', 'no-store']);
}
