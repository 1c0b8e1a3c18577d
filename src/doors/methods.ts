/** Parts that the methods of both eras share. */
import { skillsIn } from '../access/skills.ts';
import { isLastPage } from '../access/view.ts';
import { GatewayError, toGatewayError } from '../base/errors.ts';
import { INSTANCE_KEY } from '../base/version.ts';
import type { Caller } from '../calls/caller.ts';
import { type Kind, kindWords } from '../catalog/item.ts';
import type { Gateway } from '../gateway/gateway.ts';
import { type ClientAbilities, NO_ABILITIES, readCapabilities, TASKS_CAPABILITY } from '../protocol/envelope.ts';
import { decodeString, findMember } from '../protocol/json.ts';
import { type ClientTraits, readTraits, UNKNOWN_CLIENT } from '../protocol/known-clients.ts';
import { type Message, parseParams } from '../protocol/message.ts';
import { SKILLS, TASKS } from '../protocol/meta.ts';
import { UpstreamError } from '../sources/ask.ts';
import type { Answer } from './answer.ts';

const listMethods = new Map<string, Kind>(
  Object.entries(kindWords).map(([kind, words]) => [words.method, kind as Kind]),
);

/** The capabilities that we declare in every revision. */
export const CAPABILITIES = {
  tools: { listChanged: true },
  resources: { listChanged: true, subscribe: true },
  prompts: { listChanged: true },
  completions: {},
  logging: {},
};

/**
 * Declared even if no server has skills at the moment, for the reason below. What is about a directory is passed on.
 */
const SKILLS_CAPABILITY = { [SKILLS]: { directoryRead: true } };

export const LEGACY_CAPABILITIES = {
  ...CAPABILITIES,
  tasks: { list: {}, cancel: {}, requests: { tools: { call: {} } } },
  extensions: SKILLS_CAPABILITY,
};

/**
 * We declare the tasks extension even if no server supports it at the moment. It promises that we understand requests
 * about MCP tasks, not that we start any. Clients keep the capabilities of the handshake while servers come and go.
 */
export const MODERN_CAPABILITIES = {
  ...CAPABILITIES,
  extensions: { ...TASKS_CAPABILITY.extensions, ...SKILLS_CAPABILITY },
};

/** Throws unless the client declares support for MCP tasks. */
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

/** The kind of item that the request lists. Throws if its method is not a list. */
export function requireListed({ method }: Message): Kind {
  const kind = listMethods.get(method);
  if (kind === undefined) throw methodUnknown(method);
  return kind;
}

/** Answers with a page of a list, once all servers have been tried. */
export function sendPage({ opening }: Gateway, caller: Caller, kind: Kind, answer: Answer): void {
  const cursor = readCursor(answer.message);
  after(opening, answer, () => {
    if (answer.place < 0) return;
    const client = caller.clientOf(answer.message);
    const page = caller.page(kind, answer.era, cursor, client);
    answer.own(page);
    if (kind === 'tool' && isLastPage(page)) client.listed();
  });
}

/** Answers `skills/list` and `skills/get`, once all servers have been tried. */
export function sendSkills({ opening }: Gateway, caller: Caller, answer: Answer): void {
  const { message } = answer;
  const uri = message.method === 'skills/get' ? readUri(message) : null;
  if (uri === null && readCursor(message) !== null)
    throw new GatewayError('params_invalid', 'skills/list has a single page: send no "cursor".');
  after(opening, answer, () => {
    if (answer.place < 0) return;
    const skills = skillsIn(caller.reading('template'));
    const skill = uri === null ? null : skills.get(uri);
    if (skill === undefined)
      throw new GatewayError('params_invalid', `There is no skill "${uri}". skills/list has those that there are.`);
    answer.own(skill === null ? printAll('skills', skills.values()) : printOne('skill', skill));
  });
}

function printAll(key: string, all: Iterable<Buffer>): Buffer {
  const parts = [...all].flatMap((one, index) => (index === 0 ? [one] : [Buffer.from(','), one]));
  return Buffer.concat([Buffer.from(`{"${key}":[`), ...parts, Buffer.from(']}')]);
}

function printOne(key: string, one: Buffer): Buffer {
  return Buffer.concat([Buffer.from(`{"${key}":`), one, Buffer.from('}')]);
}

/** The cursor from which to continue a list; null for the first page. */
export function readCursor(message: Message): string | null {
  if (message.paramsStart < 0) return null;
  const { cursor } = parseParams(message);
  if (cursor !== undefined && typeof cursor !== 'string')
    throw new GatewayError('params_invalid', '"cursor" must be the "nextCursor" of an earlier page.');
  return cursor ?? null;
}

/** Refuses a request that this gateway sent to itself: as its own server it would list itself endlessly. */
export function refuseOurselves(message: Message, instance: string): void {
  const { _meta } = parseParams(message);
  if ((_meta as Record<string, unknown> | undefined)?.[INSTANCE_KEY] !== instance) return;
  throw new GatewayError('request_invalid', 'A gateway cannot be its own server: remove this entry from its servers.');
}

export function idInUse(id: string): GatewayError {
  return new GatewayError('request_invalid', `The id ${id} is in use by another request.`);
}

export function methodUnknown(method: string): GatewayError {
  return new GatewayError('method_unknown', `Toolgate does not know the method "${method}".`);
}

/** The abilities that the client declares in `initialize`. */
export function readClient({ bytes, paramsStart, paramsEnd }: Message): ClientAbilities {
  const capabilities = paramsStart < 0 ? null : findMember(bytes, 'capabilities', paramsStart, paramsEnd);
  return capabilities === null ? NO_ABILITIES : readCapabilities(bytes, capabilities.start, capabilities.end, 'legacy');
}

/** What is known of the client by the name that it gives in `initialize`. */
export function readIntroduction({ bytes, paramsStart, paramsEnd }: Message): ClientTraits {
  const client = paramsStart < 0 ? null : findMember(bytes, 'clientInfo', paramsStart, paramsEnd);
  return client === null ? UNKNOWN_CLIENT : readTraits(bytes.toString('latin1', client.start, client.end), 'legacy');
}

/** The `uri` of `resources/subscribe` and `resources/unsubscribe`. */
export function readUri({ bytes, uriStart, uriEnd, method }: Message): string {
  if (uriStart < 0 || bytes[uriStart] !== 0x22)
    throw new GatewayError('params_invalid', `${method} needs a string "uri" in its parameters.`);
  return decodeString(bytes, uriStart, uriEnd);
}

/** Answers a request whose handling threw. */
export function refuseThrown({ events }: Gateway, answer: Answer, error: unknown): void {
  const known = toGatewayError(error);
  if (known.code === 'internal') events.emit('failure', { where: answer.message.method, error });
  answer.refuse(known);
}

/** Answers with an error, from a server or our own. */
export function refuseWith(answer: Answer, error: unknown): void {
  if (error instanceof UpstreamError) answer.error(error.error, 'legacy');
  else answer.refuse(toGatewayError(error));
}

/** Runs `proceed` once `waited` has resolved, or now if it is null. In the first case an error becomes the answer. */
export function after(waited: Promise<void> | null, answer: Answer, proceed: () => void): void {
  if (waited === null) {
    proceed();
    return;
  }
  void waited.then(proceed).catch((error: unknown) => answer.refuse(toGatewayError(error)));
}
