/** What is printed of a view for REST: made at the first question, the same bytes ever after. */
import { createHash } from 'node:crypto';
import type { View } from '../../../access/view.ts';
import type { Entry } from '../../../catalog/entry.ts';
import { findMember, toBytes } from '../../../protocol/json.ts';
import { type OpenApiOptions, openApi } from './openapi.ts';
import type { Json } from './schema.ts';
import { restDefinition } from './unwrap-output.ts';

export interface Document {
  readonly bytes: Buffer;
  readonly etag: string;
}

export interface RestDocuments {
  /** All definitions, as a list. */
  readonly list: Buffer;
  definition(name: string): Buffer;
  openApi(options: OpenApiOptions): Document;
}

const made = new WeakMap<View, RestDocuments>();

export function documentsOf(view: View): RestDocuments {
  const known = made.get(view);
  if (known !== undefined) return known;
  const documents = print(view.entries.tool);
  made.set(view, documents);
  return documents;
}

function print(tools: ReadonlyMap<string, Entry>): RestDocuments {
  let list: Buffer | null = null;
  const documents = new Map<string, Document>();
  const definition = (name: string) => restDefinition(name, tools.get(name)!.item);
  return {
    get list() {
      list ??= Buffer.from(
        `[${[...tools.keys()].map((name) => definition(name).toString('latin1')).join(',')}]`,
        'latin1',
      );
      return list;
    },
    definition,
    openApi(options) {
      const key = JSON.stringify(options);
      const known = documents.get(key);
      if (known !== undefined) return known;
      const all = [...tools].map(([name, entry]) => ({
        name,
        id: entry.name,
        namespace: entry.namespace,
        definition: JSON.parse(definition(name).toString()) as Json,
      }));
      const bytes = toBytes(openApi(all, options));
      const document = { bytes, etag: `"${createHash('sha256').update(bytes).digest('base64url').slice(0, 27)}"` };
      documents.set(key, document);
      return document;
    },
  };
}

/** The schema of its arguments, as its server wrote it. */
export function inputSchemaOf(definition: Buffer): Buffer {
  const { start, end } = findMember(definition, 'inputSchema')!;
  return definition.subarray(start, end);
}
