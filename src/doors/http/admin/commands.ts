/** `/admin/commands/NAME`: what a command of the CLI asks of the gateway that runs. For the operator only. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { GatewayError } from '../../../base/errors.ts';
import { isObject } from '../../../base/objects.ts';
import type { Gateway } from '../../../gateway/gateway.ts';
import { type GatewayCommand, gatewayCommands, runInGateway } from '../../commands/commands.ts';
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
  const name = decodePart(pathOf(request.url ?? '').slice(COMMANDS_PATH.length + 1), 'command');
  if (!Object.hasOwn(gatewayCommands, name))
    throw new GatewayError('path_unknown', `This gateway has no command "${name}". It may be an older version.`);
  requireJson(request.headers);
  const body = await readJson(request, gateway.config.limits.body);
  if (!isObject(body)) throw new GatewayError('params_invalid', 'The body must be a JSON object.');
  await gateway.caughtUp();
  await gateway.opening;
  const answer = await runInGateway(gateway, name as GatewayCommand, body as never);
  sendJson(response, 200, answer, [...headers, 'cache-control', 'no-store']);
}
