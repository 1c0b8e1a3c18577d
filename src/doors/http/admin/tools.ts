/** `/admin/tools/NAME`: one tool, for `toolgate call` at a gateway that runs. For the operator only. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { GatewayError } from '../../../base/errors.ts';
import { toObject } from '../../../base/objects.ts';
import { RelayedError } from '../../../calls/relayed-error.ts';
import type { Gateway } from '../../../gateway/gateway.ts';
import { definitionFor, openCallDoor } from '../../local.ts';
import { decodePart, pathOf } from '../path.ts';
import { readJson } from '../wire/body.ts';
import { requireJson } from '../wire/content-types.ts';
import { sendJson, sendReply } from '../wire/reply.ts';

export const TOOLS_PATH = '/admin/tools';

/** GET answers with the definition. POST calls the tool with `arguments`. Both act as `X-Agent-Id`, if it is sent. */
export async function useTool(
  gateway: Gateway,
  request: IncomingMessage,
  response: ServerResponse,
  headers: readonly string[],
): Promise<void> {
  const name = decodePart(pathOf(request.url ?? '').slice(TOOLS_PATH.length + 1), 'tool');
  const agent = request.headers['x-agent-id'];
  await gateway.caughtUp();
  await gateway.opening;
  const door = openCallDoor(gateway, name, typeof agent === 'string' ? agent : null);
  try {
    const fresh = [...headers, 'cache-control', 'no-store'];
    if (request.method !== 'POST') {
      const body = definitionFor(gateway, door, name);
      sendReply(response, 200, { head: '', body, tail: '' }, fresh);
      return;
    }
    requireJson(request.headers);
    const { body: most, depth } = gateway.config.limits;
    const { arguments: given = {}, dry_run: dryRun = false } = toObject(await readJson(request, most, depth));
    if (typeof dryRun !== 'boolean') throw new GatewayError('params_invalid', '"dry_run" must be true or false.');
    const gone = new AbortController();
    response.once('close', () => gone.abort());
    const result = await door.callTool(name, given, { signal: gone.signal, ...(dryRun && { dryRun }) });
    sendReply(response, 200, { head: '{"result":', body: result, tail: '}' }, fresh);
  } catch (error) {
    // An error of the server is relayed as it came.
    if (!(error instanceof RelayedError)) throw error;
    sendJson(response, 200, { error: error.error }, headers);
  } finally {
    door.close();
  }
}
