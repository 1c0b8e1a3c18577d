/** Reads a resource, or a template of resources, from an object that looks like one, and prints what it returns. */
import { isObject } from '../base/objects.ts';
import { textOf } from './fault.ts';
import { readCompleters } from './read-prompt.ts';
import { checkTimeout, type ItemObject, metaOf, type RunnableItem } from './read-tool.ts';
import { parseUriTemplate, variablesIn } from './uri-template.ts';

/** Copied to the definition as they are. */
const COPIED = ['title', 'description', 'mimeType', 'annotations', 'icons', 'size'] as const;

export function isResourceLike(value: unknown): value is ItemObject {
  if (!isObject(value) || typeof value.read !== 'function') return false;
  return typeof value.uri === 'string' || typeof value.uriTemplate === 'string';
}

/** Throws an error that says what is wrong with the resource. `name` is for people: the URI identifies it. */
export function readResource(given: ItemObject, name: string, file: string): RunnableItem {
  const { uri, uriTemplate, mimeType } = given;
  if (uri !== undefined && uriTemplate !== undefined) throw new Error('has both a `uri` and a `uriTemplate`; use one.');
  const isTemplate = uri === undefined;
  const address = (isTemplate ? uriTemplate : uri) as string;
  if (!/^[A-Za-z][A-Za-z0-9+.-]*:/.test(address))
    throw new Error(`its ${isTemplate ? 'uriTemplate' : 'uri'} does not begin with a scheme, such as "notes://".`);
  const definition: ItemObject = { [isTemplate ? 'uriTemplate' : 'uri']: address, name };
  for (const key of COPIED) if (given[key] !== undefined) definition[key] = given[key];
  const read = given.read as (...args: unknown[]) => unknown;
  const parts = isTemplate ? readTemplate(address) : null;
  return {
    kind: isTemplate ? 'template' : 'resource',
    name: address,
    file,
    definition: { ...definition, ...metaOf(given, file) },
    input: null,
    timeoutMs: checkTimeout(given.timeoutMs),
    self: { execute: (input, context) => read.call(given, input, context) },
    render: (value, input) => resourceJson(value, (input as { uri: string }).uri, mimeType),
    complete: readCompleters(given.complete),
    match: (asked) => (parts === null ? (asked === address ? {} : null) : variablesIn(parts, asked)),
  };
}

function readTemplate(template: string): ReturnType<typeof parseUriTemplate> {
  try {
    return parseUriTemplate(template);
  } catch (error) {
    throw new Error(`its uriTemplate ${textOf(error)}.`);
  }
}

function resourceJson(value: unknown, uri: string, mimeType: unknown): string {
  if (isObject(value) && Array.isArray(value.contents)) return JSON.stringify(value);
  const type = (usual: string) => (typeof mimeType === 'string' ? mimeType : usual);
  if (typeof value === 'string')
    return JSON.stringify({ contents: [{ uri, mimeType: type('text/plain'), text: value }] });
  if (ArrayBuffer.isView(value)) {
    const blob = Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('base64');
    return JSON.stringify({ contents: [{ uri, mimeType: type('application/octet-stream'), blob }] });
  }
  if (value === undefined) throw new TypeError('The resource returned nothing. Return a text, bytes or a value.');
  return JSON.stringify({ contents: [{ uri, mimeType: type('application/json'), text: JSON.stringify(value) }] });
}
