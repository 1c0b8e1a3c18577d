/** What a tool returned, as the JSON of a result. Printed once and by hand: a large object is not walked twice. */
import { isObject, issuesText, type Json, type CheckedSchema } from './schema.ts';

export interface OutputShape extends CheckedSchema {
  /** Not an object: it stands in a member of one. */
  readonly isWrapped: boolean;
}

const BLOCKS: readonly unknown[] = ['text', 'image', 'audio', 'resource', 'resource_link'];
const MEMBERS: readonly string[] = ['content', 'structuredContent', 'isError', '_meta'];

const NOTHING = '{"content":[{"type":"text","text":""}]}';

/** A result as JSON; a promise only where a check is one. Throws where the value does not fit or has no JSON. */
export function resultJson(value: unknown, output: OutputShape | null): string | Promise<string> {
  if (isObject(value) && Array.isArray(value.content) && isResult(value, value.content)) return toJson(value);
  if (output === null) {
    if (value === undefined) return NOTHING;
    if (typeof value === 'string') return `{"content":[${textBlock(value)}]}`;
    const json = toJson(value);
    return `{"content":[${textBlock(json)}]${json[0] === '{' ? `,"structuredContent":${json}` : ''}}`;
  }
  const checked = output.check(value);
  return checked instanceof Promise ? checked.then((done) => fitting(done, output)) : fitting(checked, output);
}

function fitting(checked: Awaited<ReturnType<CheckedSchema['check']>>, { isWrapped }: OutputShape): string {
  if (checked.issues !== undefined)
    throw new TypeError(`The result does not fit the tool's outputSchema: ${issuesText(checked.issues)}`);
  const { value } = checked;
  const json = toJson(value);
  const text = textBlock(typeof value === 'string' ? value : json);
  return `{"content":[${text}],"structuredContent":${isWrapped ? `{"result":${json}}` : json}}`;
}

/** An object of the tool's own may have a member `content`, too. */
function isResult(value: Json, content: readonly unknown[]): boolean {
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
    throw new TypeError(`The result cannot be written as JSON: ${(error as Error).message}`);
  }
}
