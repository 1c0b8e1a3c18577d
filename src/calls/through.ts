/**
 * `toolman_call`, and `call_tool` of the control `search`: they call a tool by its name for a model whose client does not
 * show it. The call becomes one of the tool that it names before anything else looks at it. So policy, limits, approvals,
 * audit and trace treat it as a call of that tool, and its arguments and result stay the bytes that they are.
 */
import { GatewayError } from '../base/errors.ts';
import { memo } from '../base/memo.ts';
import { isObject, toObject } from '../base/objects.ts';
import { quotedList, shortened } from '../base/text.ts';
import { builtInEntry, type Entry } from '../catalog/entry.ts';
import { findMember, type JsonMember, MAX_DEPTH, readMembers, type Span } from '../protocol/json.ts';
import type { Message } from '../protocol/message.ts';
import { readMessage } from '../protocol/read.ts';
import { readArguments } from './arguments.ts';
import type { Call } from './call.ts';

export const CALL = 'toolman_call';

/** Every client that sees it pays for it in tokens, so it is as short as it can be. */
export const CALL_ENTRY = builtInEntry({
  name: CALL,
  description:
    'Calls any tool of the catalog by name, also one that is missing from your list of tools. With describe: true it returns the definition of that tool instead.',
  inputSchema: {
    type: 'object',
    properties: { name: { type: 'string' }, arguments: { type: 'object' }, describe: { type: 'boolean' } },
    required: ['name'],
  },
});

/** The same with the control `search`, where another tool describes. */
export const CALL_TOOL = 'call_tool';

/** The tool of the control `search` that describes tools. */
export const DESCRIBE_TOOLS = 'describe_tools';

export const CALL_TOOL_ENTRY = builtInEntry({
  name: CALL_TOOL,
  description: 'Calls a tool that search_tools found.',
  inputSchema: {
    type: 'object',
    properties: { name: { type: 'string' }, arguments: { type: 'object' } },
    required: ['name'],
  },
});

/** Whether this tool calls the one that is named in its arguments. */
export function isCallThrough(entry: Entry): boolean {
  return entry === CALL_ENTRY || entry === CALL_TOOL_ENTRY;
}

const KEYS = ['name', 'arguments', 'describe'];
const QUOTE = 0x22;
const OPEN = 0x7b;
const TRUE = 0x74;
const NO_ARGUMENTS = Buffer.from('{}');

/** Turns the call into one of the tool that it names. Returns false if it asks for the definition of that tool. */
export function unwrap(call: Call, { name: tool }: Entry): boolean {
  const { message } = call;
  const { name, args } = readInner(message, tool);
  if (name === null) return false;
  const inner = args === null ? NO_ARGUMENTS : message.bytes.subarray(args.start, args.end);
  if (tool === CALL) call.by.calledThrough(call.by.clientOf(message));
  call.message = readMessage(withParts(message, message.bytes.subarray(name.start, name.end), inner));
  call.through = tool;
  // A client repeats arguments in headers if their definition says so. It has not seen this one.
  call.httpHeaders = null;
  return true;
}

const MOST_MEMBERS = 100;
const TOO_MANY: JsonMember[] = [];

/** `TOO_MANY` if there are far more than it takes: reading them would hold up others. The object is valid JSON. */
function firstMembers(bytes: Buffer, start: number, end: number): JsonMember[] | null {
  try {
    return readMembers(bytes, start, end, MAX_DEPTH, MOST_MEMBERS);
  } catch {
    return TOO_MANY;
  }
}

/** A null name means that a definition is asked for. */
function readInner(
  { bytes, argumentsStart, argumentsEnd }: Message,
  tool: string,
): { name: Span | null; args: Span | null } {
  const invalid = (problem: string) => new GatewayError('arguments_invalid', `${tool} ${problem}.`);
  const members = argumentsStart < 0 ? [] : firstMembers(bytes, argumentsStart, argumentsEnd);
  if (members === null) throw invalid('needs an object as its arguments');
  if (members === TOO_MANY) throw invalid(`takes only ${quotedList(KEYS, 'and')}`);
  const keys = tool === CALL ? KEYS : KEYS.slice(0, 2);
  const extra = members.filter(({ key }) => !keys.includes(key)).map(({ key }) => shortened(key));
  if (extra.length > 0)
    throw invalid(`does not take ${quotedList(extra, 'and')}: put what the tool takes into "arguments"`);
  const last = (wanted: string): JsonMember | null => members.findLast(({ key }) => key === wanted) ?? null;
  const name = last('name');
  if (name === null || bytes[name.start] !== QUOTE) throw invalid('needs the name of a tool as the string "name"');
  const describe = last('describe');
  if (describe !== null && bytes[describe.start] === TRUE) return { name: null, args: null };
  const args = last('arguments');
  if (args !== null && bytes[args.start] !== OPEN) throw invalid('needs an object as "arguments"');
  return { name, args };
}

/** The message with another name and other arguments. All other bytes stay. */
function withParts({ bytes, nameStart, nameEnd, argumentsStart, argumentsEnd }: Message, name: Buffer, args: Buffer) {
  const isNameFirst = nameStart < argumentsStart;
  const [first, second] = isNameFirst ? [name, args] : [args, name];
  const [start, end] = isNameFirst ? [nameStart, nameEnd] : [argumentsStart, argumentsEnd];
  const [start2, end2] = isNameFirst ? [argumentsStart, argumentsEnd] : [nameStart, nameEnd];
  return Buffer.concat([bytes.subarray(0, start), first, bytes.subarray(end, start2), second, bytes.subarray(end2)]);
}

/** Bytes of arguments that are compared with a schema. Others would have to wait while longer ones are read. */
const MOST_CHECKED = 256 * 1_024;
/** A longer schema is not put into an error. */
const LONGEST_SCHEMA = 10_000;

/**
 * Throws if the arguments cannot fit the tool, with its input schema, because the model may never have seen it. Only
 * what is certain is refused: the server has the last word.
 */
export function requireFit({ entry, message, through }: Call): void {
  if (message.argumentsEnd - message.argumentsStart > MOST_CHECKED) return;
  const { schema, text } = inputOf(entry.item);
  const problem = misfitOf(schema, toObject(readArguments(message)));
  if (problem === null) return;
  const describing = through === CALL_TOOL ? DESCRIBE_TOOLS : `${CALL} with describe: true`;
  const advice = text.length > LONGEST_SCHEMA ? `Ask for its definition: ${describing}.` : `Its input schema: ${text}`;
  throw new GatewayError('arguments_invalid', `The arguments do not fit "${entry.name}": ${problem}. ${advice}`);
}

const inputOf = memo(({ bytes }: { readonly bytes: Buffer }) => {
  const span = findMember(bytes, 'inputSchema');
  const text = span === null ? '{}' : bytes.toString('utf8', span.start, span.end);
  return { schema: toObject(JSON.parse(text)), text };
});

function misfitOf(schema: Readonly<Record<string, unknown>>, args: Readonly<Record<string, unknown>>): string | null {
  const properties = toObject(schema.properties);
  const required = Array.isArray(schema.required) ? schema.required : [];
  const missing = required.filter((key) => typeof key === 'string' && !Object.hasOwn(args, key));
  if (missing.length > 0) return `${quotedList(missing as string[], 'and')} must be given`;
  if (schema.additionalProperties === false && schema.patternProperties === undefined) {
    const unknown = Object.keys(args).filter((key) => !Object.hasOwn(properties, key));
    if (unknown.length > 0)
      return `it does not take ${quotedList(
        unknown.map((key) => shortened(key)),
        'and',
      )}`;
  }
  for (const [key, value] of Object.entries(args)) {
    const wanted = Object.hasOwn(properties, key) ? toObject(properties[key]).type : undefined;
    const types: readonly unknown[] = Array.isArray(wanted) ? wanted : [wanted];
    if (types.every((type) => typeof type === 'string' && !isOfType(value, type)))
      return `"${shortened(key)}" must be of type ${types.join(' or ')}`;
  }
  return null;
}

function isOfType(value: unknown, type: string): boolean {
  switch (type) {
    case 'object':
      return isObject(value);
    case 'array':
      return Array.isArray(value);
    case 'null':
      return value === null;
    case 'integer':
      return typeof value === 'number' && Number.isInteger(value);
    case 'number':
    case 'string':
    case 'boolean':
      return typeof value === type;
    default:
      // A type that JSON Schema does not have: the server decides.
      return true;
  }
}
