/** What the methods of both eras have in common. */

import { GatewayError, toGatewayError } from '../base/errors.ts';
import { INSTANCE, INSTANCE_KEY } from '../base/version.ts';
import { type Kind, kindWords } from '../catalog/item.ts';
import { type ClientAbilities, NO_ABILITIES, readCapabilities, TASKS_CAPABILITY } from '../protocol/envelope.ts';
import { decodeString, findMember } from '../protocol/json.ts';
import { type Message, parseParams } from '../protocol/message.ts';
import { TASKS } from '../protocol/meta.ts';
import { UpstreamError } from '../sources/ask.ts';
import type { Answer } from './answer.ts';

export const listMethods = new Map<string, Kind>(
  Object.entries(kindWords).map(([kind, words]) => [words.method, kind as Kind]),
);

/** What we say we can do, in any revision. */
export const CAPABILITIES = {
  tools: { listChanged: true },
  resources: { listChanged: true, subscribe: true },
  prompts: { listChanged: true },
  completions: {},
  logging: {},
};

export const LEGACY_CAPABILITIES = {
  ...CAPABILITIES,
  tasks: { list: {}, cancel: {}, requests: { tools: { call: {} } } },
};

/**
 * The extension is declared whether or not a server has it at present: it promises to know what is asked about tasks, not
 * to start any, and clients keep what they were told while servers come and go.
 */
export const MODERN_CAPABILITIES = { ...CAPABILITIES, ...TASKS_CAPABILITY };

/** Throws unless the client declares that it takes tasks. */
export function requireTasks({ tasks, message }: Answer): void {
  if (tasks) return;
  throw new GatewayError(
    'capability_missing',
    `${message.method} needs a client that declares the extension "${TASKS}".`,
    {
      details: { requiredCapabilities: TASKS_CAPABILITY },
    },
  );
}

/** Where a list is to go on; null for its start. */
export function readCursor(message: Message): string | null {
  if (message.paramsStart < 0) return null;
  const { cursor } = parseParams(message);
  if (cursor !== undefined && typeof cursor !== 'string')
    throw new GatewayError('params_invalid', '"cursor" must be the "nextCursor" of an earlier page.');
  return cursor ?? null;
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

/** What the client says in `initialize` that it can be asked. */
export function readClient({ bytes, paramsStart, paramsEnd }: Message): ClientAbilities {
  const capabilities = paramsStart < 0 ? null : findMember(bytes, 'capabilities', paramsStart, paramsEnd);
  return capabilities === null ? NO_ABILITIES : readCapabilities(bytes, capabilities.start, capabilities.end, 'legacy');
}

/** The `uri` that `resources/subscribe` and its opposite are about. */
export function readUri({ bytes, uriStart, uriEnd, method }: Message): string {
  if (uriStart < 0 || bytes[uriStart] !== 0x22)
    throw new GatewayError('params_invalid', `${method} needs a string "uri" in its parameters.`);
  return decodeString(bytes, uriStart, uriEnd);
}

/** An error of a server, or of ours, for whoever asked. */
export function refuseWith(answer: Answer, error: unknown): void {
  if (error instanceof UpstreamError) answer.error(error.error, 'legacy');
  else answer.refuse(toGatewayError(error));
}

/** Answers now, or after what is waited for; what goes wrong is the answer then. */
export function after(waited: Promise<void> | null, answer: Answer, go: () => void): void {
  if (waited === null) {
    go();
    return;
  }
  void waited.then(go).catch((error: unknown) => answer.refuse(toGatewayError(error)));
}
