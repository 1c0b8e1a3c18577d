/** An item of a server as the search reads it. */
import { toObject } from '../../base/objects.ts';
import type { Entry } from '../entry.ts';
import type { SearchDocument } from './bag.ts';

/** The most parameters inside of other parameters, and the most words of a choice. */
const MOST_INSIDE = 40;
const MOST_CHOICES = 20;

export function documentOf({ kind, name, sourceKey, namespace, item }: Entry, purpose: string): SearchDocument {
  const definition = readDefinition(item.bytes);
  const annotations = toObject(definition.annotations);
  const named = kind === 'resource' || kind === 'template' ? [definition.name] : [];
  const titles = [definition.title, annotations.title, ...named].filter((one) => typeof one === 'string');
  return {
    name: item.name,
    titles: [...new Set(titles)],
    server: sourceKey === namespace || namespace === '' ? sourceKey : `${sourceKey} ${namespace}`,
    purpose,
    description: item.description === '' ? name : item.description,
    parameters: kind === 'prompt' ? argumentsOf(definition.arguments) : parametersOf(toObject(definition.inputSchema)),
  };
}

/** What cannot be read as a whole is found by its name and its description. */
function readDefinition(bytes: Buffer): Readonly<Record<string, unknown>> {
  try {
    return toObject(JSON.parse(bytes.toString()));
  } catch {
    return {};
  }
}

type Parameter = SearchDocument['parameters'][number];

function parametersOf(schema: Readonly<Record<string, unknown>>): Parameter[] {
  const outer = Object.entries(toObject(schema.properties));
  const inner = outer.flatMap(([, value]) => innerNames(toObject(value))).slice(0, MOST_INSIDE);
  return [
    ...outer.map(([name, value]) => ({ name, description: textOf(toObject(value)) })),
    // What is inside of a parameter says less.
    ...(inner.length === 0 ? [] : [{ name: '', description: inner.join(' ') }]),
  ];
}

function innerNames(schema: Readonly<Record<string, unknown>>): string[] {
  return Object.keys({ ...toObject(schema.properties), ...toObject(toObject(schema.items).properties) });
}

/** Its description, and the words that it takes. */
function textOf(schema: Readonly<Record<string, unknown>>): string {
  const choices = Array.isArray(schema.enum) ? schema.enum.filter((one) => typeof one === 'string') : [];
  const description = typeof schema.description === 'string' ? schema.description : '';
  return [...choices.slice(0, MOST_CHOICES), description].join(' ');
}

function argumentsOf(list: unknown): Parameter[] {
  return (Array.isArray(list) ? list : []).map(toObject).map(({ name, description }) => ({
    name: typeof name === 'string' ? name : '',
    description: typeof description === 'string' ? description : '',
  }));
}
