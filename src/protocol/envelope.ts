/**
 * The envelope of modern requests: checks the one that a client sent, and writes the one for a server. An envelope
 * describes the two ends of one connection, so the one for a server is always our own.
 */
import { BoundedMap } from '../base/bounded-map.ts';
import { GatewayError } from '../base/errors.ts';
import { getOrMake } from '../base/memo.ts';
import { IDENTITY } from '../base/version.ts';
import { decodeString, findMember, readMembers } from './json.ts';
import { type ClientTraits, readTraits, UNKNOWN_CLIENT } from './known-clients.ts';
import { isLogLevel, LOG_LEVELS, type LogLevel } from './levels.ts';
import { claimsRevision, type Envelope, type Message } from './message.ts';
import { CLIENT_CAPABILITIES, CLIENT_INFO, LOG_LEVEL, PROTOCOL_VERSION, TASKS } from './meta.ts';
import { FORM_MODE, URL_MODE } from './question.ts';
import { ALL_REVISIONS, type Era, MODERN_REVISION } from './revisions.ts';

/** What a server may expect of its caller, in either era. */
export interface ClientAbilities {
  /** The capabilities of the caller that can be passed on, as JSON with one character per byte. */
  readonly capabilities: string;
  /** What it can be asked, as values of `capabilityFor`. */
  readonly asks: ReadonlySet<string>;
  /** The least serious log message that the caller wants; null for none. */
  readonly logLevel: LogLevel | null;
  /** Whether a modern server may answer it with a task. */
  readonly tasks: boolean;
}

/** A caller that cannot be asked anything and wants no log messages. */
export const NO_ABILITIES: ClientAbilities = { capabilities: '{}', asks: new Set(), logLevel: null, tasks: false };

interface EnvelopeContent {
  readonly revision: string;
  readonly abilities: ClientAbilities;
  readonly traits: ClientTraits;
}

/** Messages with equal envelopes share one object, so each is read once. */
const contents = new WeakMap<Envelope, EnvelopeContent>();

function contentOf(message: Message): EnvelopeContent {
  const { envelope } = message;
  if (envelope === null || !claimsRevision(message)) throw invalidEnvelope(PROTOCOL_VERSION, 'it is missing');
  const known = contents.get(envelope);
  if (known !== undefined) return known;
  const content = {
    revision: readRevision(message, envelope),
    abilities: readEnvelope(message, envelope),
    traits: readClientTraits(message, envelope),
  };
  contents.set(envelope, content);
  return content;
}

/** The revision that a message claims to be written in. */
export function claimedRevision(message: Message): string {
  return message.envelope === null
    ? ''
    : (contents.get(message.envelope)?.revision ?? readRevision(message, message.envelope));
}

/** Throws if the envelope is incomplete or malformed. The revision that it names may be one that we do not know. */
export function readAbilities(message: Message): ClientAbilities {
  return contentOf(message).abilities;
}

/** What is known of the client that sent the request. Throws if the envelope is not valid. */
export function traitsIn(message: Message): ClientTraits {
  return contentOf(message).traits;
}

function readClientTraits({ bytes, metaStart }: Message, { clientStart, clientEnd }: Envelope): ClientTraits {
  if (clientStart < 0) return UNKNOWN_CLIENT;
  return readTraits(bytes.toString('latin1', metaStart + clientStart, metaStart + clientEnd), 'modern');
}

function readRevision({ bytes, metaStart }: Message, { versionStart, versionEnd }: Envelope): string {
  if (bytes[metaStart + versionStart] !== QUOTE) throw invalidEnvelope(PROTOCOL_VERSION, 'it must be a string');
  return decodeString(bytes, metaStart + versionStart, metaStart + versionEnd);
}

function readEnvelope({ bytes, metaStart }: Message, envelope: Envelope): ClientAbilities {
  const { capabilitiesStart, capabilitiesEnd, clientStart, clientEnd, levelStart, levelEnd } = envelope;
  const text = (start: number, end: number) => bytes.toString('latin1', metaStart + start, metaStart + end);
  if (capabilitiesStart < 0) throw invalidEnvelope(CLIENT_CAPABILITIES, 'it is missing');
  if (clientStart >= 0 && !isValidClient(text(clientStart, clientEnd)))
    throw invalidEnvelope(CLIENT_INFO, 'it must be an object with the strings "name" and "version"');
  const abilities = readCapabilities(bytes, metaStart + capabilitiesStart, metaStart + capabilitiesEnd, 'modern');
  if (levelStart < 0) return abilities;
  const at = metaStart + levelStart;
  const level = bytes[at] === QUOTE ? decodeString(bytes, at, metaStart + levelEnd) : null;
  if (!isLogLevel(level)) throw invalidEnvelope(LOG_LEVEL, `it must be one of ${LOG_LEVELS.join(', ')}`);
  return { ...abilities, logLevel: level };
}

/** Throws unless we speak that revision. */
export function requireModern(revision: string, spoken: readonly string[] = ALL_REVISIONS): void {
  if (revision === MODERN_REVISION && spoken.includes(revision)) return;
  throw new GatewayError('revision_unsupported', `Toolgate does not speak revision "${revision}" without a session.`, {
    details: { supported: spoken, requested: revision },
  });
}

/** Throws if the request has no valid envelope. For a request whose header announces one. */
export function requireEnvelope(message: Message): void {
  if (message.metaStart < 0) throw invalidEnvelope('_meta', 'it is missing');
  readAbilities(message);
}

function invalidEnvelope(key: string, problem: string): GatewayError {
  return new GatewayError(
    'envelope_invalid',
    `The envelope of the request is not valid: in params._meta, "${key}": ${problem}.`,
  );
}

const QUOTE = 0x22;

// Clients send the same text with every request, so each text is read once.
const MOST_TEXTS = 200;
const clientTexts = new BoundedMap<string, boolean>(MOST_TEXTS);
const abilitiesByText = {
  legacy: new BoundedMap<string, ClientAbilities>(MOST_TEXTS),
  modern: new BoundedMap<string, ClientAbilities>(MOST_TEXTS),
};

function isValidClient(text: string): boolean {
  return getOrMake(clientTexts, text, () => {
    const bytes = Buffer.from(text, 'latin1');
    const members = readMembers(bytes);
    return ['name', 'version'].every((wanted) => {
      const member = members?.findLast(({ key }) => key === wanted);
      return member !== undefined && bytes[member.start] === QUOTE;
    });
  });
}

/** The capabilities that are passed on to servers. */
export const PASSED_ON: readonly string[] = ['elicitation', 'sampling', 'roots'];

/** The extension that is passed on. */
export const TASKS_CAPABILITY = { extensions: { [TASKS]: {} } };
const TASKS_TEXT = JSON.stringify(TASKS_CAPABILITY).slice(1, -1);

/** Any object under the name of the extension declares it. In the legacy era it means nothing. */
function declaresTasks(capabilities: Buffer): boolean {
  const extensions = findMember(capabilities, 'extensions');
  const tasks = extensions === null ? null : findMember(capabilities, TASKS, extensions.start, extensions.end);
  return tasks !== null && capabilities[tasks.start] === 0x7b;
}

/** What the capabilities from `start` to `end` declare. Throws if they are malformed. */
export function readCapabilities(message: Buffer, start: number, end: number, era: Era): ClientAbilities {
  return getOrMake(abilitiesByText[era], message.toString('latin1', start, end), (text) => {
    const bytes = Buffer.from(text, 'latin1');
    const members = readMembers(bytes);
    if (members === null) throw invalidEnvelope(CLIENT_CAPABILITIES, 'it must be an object');
    const kept = members.filter(({ key }) => PASSED_ON.includes(key));
    if (new Set(kept.map(({ key }) => key)).size < kept.length)
      throw invalidEnvelope(CLIENT_CAPABILITIES, 'it has a capability twice');
    if (kept.some(({ start }) => bytes[start] !== 0x7b))
      throw invalidEnvelope(CLIENT_CAPABILITIES, 'each capability must be an object');
    const capabilities = kept.map(({ key, start, end }) => `"${key}":${bytes.toString('latin1', start, end)}`);
    const asks = new Set(
      kept.flatMap(({ key, start, end }) => (key === 'elicitation' ? modesOf(bytes, start, end) : [key])),
    );
    const tasks = era === 'modern' && declaresTasks(bytes);
    if (tasks) capabilities.push(TASKS_TEXT);
    return { capabilities: `{${capabilities.join(',')}}`, asks, logLevel: null, tasks };
  });
}

/** Elicitation without modes means forms. */
function modesOf(bytes: Buffer, start: number, end: number): string[] {
  const keys = readMembers(bytes, start, end)?.map(({ key }) => key) ?? [];
  const isUrl = keys.includes('url');
  return [...(isUrl ? [URL_MODE] : []), ...(keys.includes('form') || !isUrl ? [FORM_MODE] : [])];
}

const HEAD =
  `{${JSON.stringify(PROTOCOL_VERSION)}:${JSON.stringify(MODERN_REVISION)},` +
  `${JSON.stringify(CLIENT_INFO)}:${JSON.stringify(IDENTITY)},${JSON.stringify(CLIENT_CAPABILITIES)}:`;
const LEVEL = `,${JSON.stringify(LOG_LEVEL)}:`;

/** The `_meta` of a request of our own. */
export const OWN_META = {
  [PROTOCOL_VERSION]: MODERN_REVISION,
  [CLIENT_INFO]: IDENTITY,
  [CLIENT_CAPABILITIES]: {},
};

/** The `_meta` of a caller's request for a modern server: our envelope and progress token, and its other members. */
export function modernMeta(message: Message, abilities: ClientAbilities, id: number): string {
  const level = abilities.logLevel === null ? '' : `${LEVEL}"${abilities.logLevel}"`;
  const token = message.tokenStart < 0 ? '' : `,"progressToken":${id}`;
  const others = otherMembers(message);
  return `${HEAD}${abilities.capabilities}${level}${token}${others === '' ? '' : `,${others}`}}`;
}

/** The same for a legacy server, without an envelope: the server could mistake the request for a modern one. */
export function legacyMeta(message: Message, id: number): string {
  const token = message.tokenStart < 0 ? '' : `"progressToken":${id}`;
  const others = otherMembers(message);
  return `{${token}${token !== '' && others !== '' ? ',' : ''}${others}}`;
}

const ENVELOPE_KEYS = ['progressToken', PROTOCOL_VERSION, CLIENT_INFO, CLIENT_CAPABILITIES, LOG_LEVEL];

function otherMembers({ bytes, metaStart, metaEnd, metaOthers }: Message): string {
  if (metaOthers === 0) return '';
  const members = readMembers(bytes, metaStart, metaEnd) ?? [];
  return members
    .filter(({ key }) => !ENVELOPE_KEYS.includes(key))
    .map(({ keyStart, end }) => bytes.toString('latin1', keyStart, end))
    .join(',');
}
