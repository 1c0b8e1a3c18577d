/**
 * Tool definitions in the form of each era. In legacy revisions structured output is always an object, and a client
 * rejects the whole list if one tool has another output schema. So such output is wrapped in an object for them. Legacy
 * definitions also say whether a tool may run as an MCP task (`execution`), which has another meaning in the modern
 * era.
 */
import { isObject, type JsonObject } from '../base/objects.ts';
import { mapSchemaChildren } from '../base/schema-children.ts';
import { findMember, readMembers, splice, writeObject } from './json.ts';
import type { Era } from './revisions.ts';

/** How a definition differs between the eras. */
export interface EraTraits {
  /** Its output may be something other than an object, so it is wrapped for legacy clients. */
  readonly wrapsOutput: boolean;
  readonly hasExecution: boolean;
  /** It may run as an MCP task of the legacy era. */
  readonly runsAsTask: boolean;
}

export const NO_TRAITS: EraTraits = { wrapsOutput: false, hasExecution: false, runsAsTask: false };

/** The member that holds a wrapped output. */
export const WRAPPER = 'result';

/** Whether the schema from `start` to `end` allows anything but objects. */
export function allowsNonObjects(bytes: Buffer, start: number, end: number): boolean {
  const type = findMember(bytes, 'type', start, end);
  return type === null || bytes.toString('latin1', type.start, type.end) !== '"object"';
}

/** A definition in the form of an era. */
export function definitionFor(definition: Buffer, { wrapsOutput, hasExecution }: EraTraits, era: Era): Buffer {
  if (era === 'legacy') return wrapsOutput ? legacyDefinition(definition) : definition;
  return hasExecution ? modernDefinition(definition) : definition;
}

export function legacyDefinition(definition: Buffer): Buffer {
  const schema = findMember(definition, 'outputSchema');
  if (schema === null) return definition;
  try {
    const wrapped = wrapSchema(JSON.parse(definition.toString('utf8', schema.start, schema.end)) as JsonObject);
    return splice(definition, schema, Buffer.from(JSON.stringify(wrapped)));
  } catch {
    // Nested too deeply. A tool can do without an output schema, and one tool must not make the whole list fail.
    return withoutMember(definition, 'outputSchema');
  }
}

export function modernDefinition(definition: Buffer): Buffer {
  return withoutMember(definition, 'execution');
}

const TASK_SUPPORT = ['"optional"', '"required"'];

/** Whether the definition says that the tool may run as a task. */
export function runsAsTask(definition: Buffer): boolean {
  const execution = findMember(definition, 'execution');
  const support = execution === null ? null : findMember(definition, 'taskSupport', execution.start, execution.end);
  return support !== null && TASK_SUPPORT.includes(definition.toString('latin1', support.start, support.end));
}

/** For a tool whose server cannot run tasks, even if the definition says so. */
export function withoutTaskSupport(definition: Buffer): Buffer {
  return runsAsTask(definition) ? withoutMember(definition, 'execution') : definition;
}

function withoutMember(definition: Buffer, unwanted: string): Buffer {
  const kept = (readMembers(definition) ?? []).filter(({ key }) => key !== unwanted);
  return writeObject(kept.map(({ keyStart, end }) => [definition.subarray(keyStart, end)]));
}

function wrapSchema(schema: JsonObject): JsonObject {
  const { $schema } = schema;
  return {
    ...($schema !== undefined && { $schema }),
    type: 'object',
    properties: { [WRAPPER]: moveReferences(schema) },
    required: [WRAPPER],
  };
}

/** The same schema one level deeper: references to its root have to follow it there. */
function moveReferences(schema: unknown): unknown {
  if (!isObject(schema)) return schema;
  // A schema with an `$id` of its own is the root of the references below it.
  if (typeof schema.$id === 'string' && !schema.$id.startsWith('#')) return schema;
  return mapSchemaChildren(schema, (child, keyword) =>
    POINTERS.has(keyword) && typeof child === 'string'
      ? child.replace(/^#(?=\/|$)/, `#/properties/${WRAPPER}`)
      : moveReferences(child),
  );
}

const POINTERS = new Set(['$ref', '$dynamicRef']);
