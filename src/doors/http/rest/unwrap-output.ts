/**
 * Structured output is always an object in MCP. What is none stands in a member of one, and the schema says so by a mark of
 * FastMCP's, which our own workers use too. Over REST it stands for itself, in results and in definitions.
 */
import { definitionOf } from '../../../catalog/entry.ts';
import type { Item } from '../../../catalog/item.ts';
import { findMember, toBytes } from '../../../protocol/json.ts';

export type Schema = Readonly<Record<string, unknown>>;

const MARK = 'x-fastmcp-wrap-result';
const MARK_BYTES = Buffer.from(`"${MARK}"`);

const known = new WeakMap<object, boolean>();

/** Whether results of the tool have to be taken out of what stands around them. */
export function unwraps(item: Pick<Item, 'bytes'>): boolean {
  const before = known.get(item);
  if (before !== undefined) return before;
  const wraps = item.bytes.includes(MARK_BYTES) && isMarked(item.bytes);
  known.set(item, wraps);
  return wraps;
}

function isMarked(definition: Buffer): boolean {
  const schema = findMember(definition, 'outputSchema');
  const mark = schema === null ? null : findMember(definition, MARK, schema.start, schema.end);
  return mark !== null && definition.toString('latin1', mark.start, mark.end) === 'true';
}

/** The definition of a tool as it is over REST. */
export function restDefinition(name: string, item: Item): Buffer {
  const definition = definitionOf({ name, item }, 'modern');
  if (!unwraps(item)) return definition;
  const parsed = JSON.parse(definition.toString()) as Record<string, unknown>;
  return toBytes({ ...parsed, outputSchema: unwrapSchema(parsed.outputSchema as Schema) });
}

/** References count from the top, so what they lead to stays there. */
export function unwrapSchema(schema: Schema): Schema {
  const { $defs, definitions, properties } = schema;
  const { result } = Object(properties) as { result?: unknown };
  const inner = typeof result === 'object' && result !== null ? result : {};
  return { ...inner, ...($defs !== undefined && { $defs }), ...(definitions !== undefined && { definitions }) };
}
