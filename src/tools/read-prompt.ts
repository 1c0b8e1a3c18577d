/** Reads a prompt from an object that looks like one, and prints what it returns as an MCP result. */
import { isObject } from '../base/objects.ts';
import type { Completer } from './define-prompt.ts';
import { textOf } from './fault.ts';
import { checkName, checkTimeout, type ItemObject, metaOf, type RunnableItem } from './read-tool.ts';
import { type CheckedSchema, readSchema } from './schema.ts';

export function isPromptLike(value: unknown): value is ItemObject {
  return isObject(value) && typeof value.render === 'function' && typeof value.description === 'string';
}

/** Throws an error that says what is wrong with the prompt. */
export async function readPrompt(given: ItemObject, name: string, file: string): Promise<RunnableItem> {
  checkName(name, 'prompt');
  const schema = await readArguments(given.arguments);
  const properties = isObject(schema?.json.properties) ? schema.json.properties : {};
  const required: readonly unknown[] = Array.isArray(schema?.json.required) ? schema.json.required : [];
  const definition: ItemObject = {
    name,
    ...(typeof given.title === 'string' && { title: given.title }),
    description: given.description,
    arguments: Object.entries(properties).map(([argument, one]) => ({
      name: argument,
      ...(isObject(one) && typeof one.description === 'string' && { description: one.description }),
      required: required.includes(argument),
    })),
    ...(given.icons !== undefined && { icons: given.icons }),
    ...metaOf(given, file),
  };
  const render = given.render as (...args: unknown[]) => unknown;
  return {
    kind: 'prompt',
    name,
    file,
    definition,
    input: schema,
    timeoutMs: checkTimeout(given.timeoutMs),
    self: { execute: (input, context) => render.call(given, input, context) },
    render: promptJson,
    complete: { ...choicesIn(properties), ...readCompleters(given.complete) },
  };
}

async function readArguments(given: unknown): Promise<CheckedSchema | null> {
  if (given === undefined || given === null) return null;
  try {
    return await readSchema(given, 'input');
  } catch (error) {
    throw new Error(`its arguments ${textOf(error)}.`);
  }
}

/** The choices of enumerations, as proposals. */
function choicesIn(properties: ItemObject): Record<string, Completer> {
  const choices = Object.entries(properties).flatMap(([name, one]): [string, Completer][] => {
    const values =
      isObject(one) && Array.isArray(one.enum) ? one.enum.filter((value) => typeof value === 'string') : [];
    return values.length === 0 ? [] : [[name, (typed) => values.filter((value) => value.startsWith(typed))]];
  });
  return Object.fromEntries(choices);
}

export function readCompleters(given: unknown): Record<string, Completer> {
  if (given === undefined) return {};
  if (!isObject(given) || Object.values(given).some((one) => typeof one !== 'function'))
    throw new Error('its `complete` is not an object of functions.');
  return given as Record<string, Completer>;
}

function promptJson(value: unknown): string {
  if (isObject(value) && Array.isArray(value.messages))
    return JSON.stringify({ ...value, messages: value.messages.map(messageOf) });
  const messages: readonly unknown[] = Array.isArray(value) ? value : [value];
  return JSON.stringify({ messages: messages.map(messageOf) });
}

function messageOf(given: unknown): object {
  if (typeof given === 'string') return { role: 'user', content: { type: 'text', text: given } };
  if (!isObject(given) || (given.role !== 'user' && given.role !== 'assistant'))
    throw new TypeError('A prompt returns a text, or messages with a role ("user" or "assistant") and a content.');
  const { content } = given;
  return { ...given, content: typeof content === 'string' ? { type: 'text', text: content } : content };
}
