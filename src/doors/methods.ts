/** What the methods of both eras have in common. */
import { type Kind, kindWords } from '../catalog/item.ts';
import { GatewayError } from '../errors.ts';
import { type Message, parseParams } from '../protocol/message.ts';
import { INSTANCE, INSTANCE_KEY } from '../version.ts';

export const listMethods = new Map<string, Kind>(
  Object.entries(kindWords).map(([kind, words]) => [words.method, kind as Kind]),
);

/** What we say we can do. */
export const CAPABILITIES = {
  tools: { listChanged: true },
  resources: { listChanged: true },
  prompts: { listChanged: true },
  completions: {},
  logging: {},
};

/** Lists come whole, so no cursor can be one of ours. */
export function refuseCursor(message: Message): void {
  if (message.paramsStart < 0) return;
  const { cursor } = parseParams(message);
  if (cursor !== undefined)
    throw new GatewayError('params_invalid', 'The cursor is unknown: Toolgate lists everything on one page.');
}

/** A gateway among its own servers would list itself for ever. */
export function refuseOurselves(message: Message): void {
  const { _meta } = parseParams(message);
  if ((_meta as Record<string, unknown> | undefined)?.[INSTANCE_KEY] !== INSTANCE) return;
  throw new GatewayError('request_invalid', 'A gateway cannot be its own server: remove this entry from its servers.');
}

export function idInUse(id: string): GatewayError {
  return new GatewayError('request_invalid', `The id ${id} is in use by another request.`);
}

export function methodUnknown(method: string): GatewayError {
  return new GatewayError('method_unknown', `Toolgate does not know the method "${method}".`);
}
