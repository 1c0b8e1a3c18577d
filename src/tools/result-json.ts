/**
 * Prints what a tool returned as the JSON of an MCP result. The JSON is joined by hand: a large object is printed once.
 */
import { isObject } from '../base/objects.ts';
import { type CheckedSchema, issuesText } from './schema.ts';

export interface OutputSchema extends CheckedSchema {
  /** The tool's results are not objects. They are returned in an object, as its member `result`. */
  readonly isWrapped: boolean;
}

const BLOCKS: readonly unknown[] = ['text', 'image', 'audio', 'resource', 'resource_link'];
const MEMBERS: readonly string[] = ['content', 'structuredContent', 'isError', '_meta'];

const NOTHING = '{"content":[{"type":"text","text":""}]}';

/** A promise only if the schema's check returns one. Throws if the value does not fit the schema or has no JSON. */
export function resultJson(value: unknown, output: OutputSchema | null): string | Promise<string> {
  if (isObject(value) && Array.isArray(value.content) && isResult(value, value.content)) return toJson(value);
  if (output === null) {
    if (value === undefined) return NOTHING;
    if (typeof value === 'string') return `{"content":[${textBlock(value)}]}`;
    const json = toJson(value);
    return `{"content":[${textBlock(json)}]${json[0] === '{' ? `,"structuredContent":${json}` : ''}}`;
  }
  const checked = output.check(value);
  return checked instanceof Promise ? checked.then((done) => checkedJson(done, output)) : checkedJson(checked, output);
}

function checkedJson(checked: Awaited<ReturnType<OutputSchema['check']>>, { isWrapped }: OutputSchema): string {
  if (checked.issues !== undefined)
    throw placeless(new TypeError(`The result does not fit the tool's outputSchema: ${issuesText(checked.issues)}`));
  const { value } = checked;
  const json = toJson(value);
  const text = textBlock(typeof value === 'string' ? value : json);
  return `{"content":[${text}],"structuredContent":${isWrapped ? `{"result":${json}}` : json}}`;
}

/** Distinguishes an MCP result from an object of the tool that happens to have a member `content`. */
function isResult(value: Readonly<Record<string, unknown>>, content: readonly unknown[]): boolean {
  if (content.length === 0) return Object.keys(value).every((key) => MEMBERS.includes(key));
  return content.every((block) => isObject(block) && BLOCKS.includes(block.type));
}

function textBlock(text: string): string {
  return `{"type":"text","text":${JSON.stringify(text)}}`;
}

function toJson(value: unknown): string {
  try {
    return JSON.stringify(value) ?? 'null';
  } catch (error) {
    throw placeless(new TypeError(`The result cannot be written as JSON: ${(error as Error).message}`));
  }
}

/** The place of such an error is in this file, which says nothing about the tool. */
function placeless(error: TypeError): TypeError {
  error.stack = `TypeError: ${error.message}`;
  return error;
}
