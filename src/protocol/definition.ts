/**
 * Definitions of tools as each era wants them. The earlier revisions know only objects as structured output, and refuse a
 * whole list for one tool that promises something else: such output travels in an object of its own there. They also say
 * how a tool may be run as a task, which means something else since.
 */
import { isObject, type JsonObject } from '../base/objects.ts';
import { mapSchemaChildren } from '../base/schema-children.ts';
import { findMember, readMembers, splice } from './json.ts';
import type { Era } from './revisions.ts';

/** In what a definition differs from era to era. */
export interface EraTraits {
  /** Its output may be no object, so that it is wrapped for clients of the earlier revisions. */
  readonly wrapsOutput: boolean;
  readonly hasExecution: boolean;
  /** It may be run as a task, as the last revision with sessions has them. */
  readonly runsAsTask: boolean;
}

export const NO_TRAITS: EraTraits = { wrapsOutput: false, hasExecution: false, runsAsTask: false };

/** The member that a wrapped output stands under. */
export const WRAPPER = 'result';

/** Whether the schema at this place leaves room for something else than objects. */
export function allowsNonObjects(bytes: Buffer, start: number, end: number): boolean {
  const type = findMember(bytes, 'type', start, end);
  return type === null || bytes.toString('latin1', type.start, type.end) !== '"object"';
}

/** A definition as clients of an era know it. */
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
    // Nested too deeply to be looked into. A tool may do without one; a list must not fail for one.
    return withoutMember(definition, 'outputSchema');
  }
}

export function modernDefinition(definition: Buffer): Buffer {
  return withoutMember(definition, 'execution');
}

const TASK_SUPPORT = ['"optional"', '"required"'];

/** Whether it may be run as a task, by its own word. */
export function runsAsTask(definition: Buffer): boolean {
  const execution = findMember(definition, 'execution');
  const support = execution === null ? null : findMember(definition, 'taskSupport', execution.start, execution.end);
  return support !== null && TASK_SUPPORT.includes(definition.toString('latin1', support.start, support.end));
}

/** For a tool whose server does not run tasks, whatever it says of the tool. */
export function withoutTaskSupport(definition: Buffer): Buffer {
  return runsAsTask(definition) ? withoutMember(definition, 'execution') : definition;
}

function withoutMember(definition: Buffer, unwanted: string): Buffer {
  const kept = (readMembers(definition) ?? [])
    .filter(({ key }) => key !== unwanted)
    .map(({ keyStart, end }) => definition.subarray(keyStart, end));
  const separated = kept.flatMap((member, index) => (index === 0 ? [member] : [Buffer.from(','), member]));
  return Buffer.concat([Buffer.from('{'), ...separated, Buffer.from('}')]);
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
  // A schema with an address of its own is the root of the references below it.
  if (typeof schema.$id === 'string' && !schema.$id.startsWith('#')) return schema;
  return mapSchemaChildren(schema, (child, keyword) =>
    POINTERS.has(keyword) && typeof child === 'string'
      ? child.replace(/^#(?=\/|$)/, `#/properties/${WRAPPER}`)
      : moveReferences(child),
  );
}

const POINTERS = new Set(['$ref', '$dynamicRef']);
