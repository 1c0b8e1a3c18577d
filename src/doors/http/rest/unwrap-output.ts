/**
 * Structured output is always an object in MCP. FastMCP and our own workers wrap any other output in the member
 * `result` and mark its schema. Over REST the output is unwrapped, in results and in definitions.
 */
import { memo } from '../../../base/memo.ts';
import { type JsonObject, toObject } from '../../../base/objects.ts';
import { definitionOf } from '../../../catalog/entry.ts';
import type { Item } from '../../../catalog/item.ts';
import { findMember, toBytes } from '../../../protocol/json.ts';

const MARK = 'x-fastmcp-wrap-result';
const MARK_BYTES = Buffer.from(`"${MARK}"`);

/** Whether the output of a tool is wrapped. */
export const isWrapped = memo(({ bytes }: Pick<Item, 'bytes'>) => bytes.includes(MARK_BYTES) && isMarked(bytes));

function isMarked(definition: Buffer): boolean {
  const schema = findMember(definition, 'outputSchema');
  const mark = schema === null ? null : findMember(definition, MARK, schema.start, schema.end);
  return mark !== null && definition.toString('latin1', mark.start, mark.end) === 'true';
}

/** The definition of a tool over REST. */
export function restDefinition(name: string, item: Item): Buffer {
  const definition = definitionOf({ name, item }, 'modern');
  if (!isWrapped(item)) return definition;
  const parsed = JSON.parse(definition.toString()) as Record<string, unknown>;
  return toBytes({ ...parsed, outputSchema: unwrapSchema(parsed.outputSchema as JsonObject) });
}

/** References start at the top of the schema, so the definitions stay there. */
export function unwrapSchema(schema: JsonObject): JsonObject {
  const { $defs, definitions, properties } = schema;
  return {
    ...toObject(toObject(properties).result),
    ...($defs !== undefined && { $defs }),
    ...(definitions !== undefined && { definitions }),
  };
}
