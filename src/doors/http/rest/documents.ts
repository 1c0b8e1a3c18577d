/** The documents of a view for REST. Each is printed once, when it is first requested. */
import type { View } from '../../../access/view.ts';
import { sha256 } from '../../../base/hash.ts';
import { getOrMake, memo } from '../../../base/memo.ts';
import type { JsonObject } from '../../../base/objects.ts';
import type { Entry } from '../../../catalog/entry.ts';
import { findMember, toBytes } from '../../../protocol/json.ts';
import { type OpenApiOptions, openApi } from './openapi.ts';
import { restDefinition } from './unwrap-output.ts';

export interface RestDocument {
  readonly bytes: Buffer;
  readonly etag: string;
}

export interface RestDocuments {
  /** All definitions, as an array. */
  readonly list: Buffer;
  definition(name: string): Buffer;
  openApi(options: OpenApiOptions): RestDocument;
}

export const documentsOf = memo((view: View): RestDocuments => createDocuments(view.entries.tool));

function createDocuments(tools: ReadonlyMap<string, Entry>): RestDocuments {
  let list: Buffer | null = null;
  const documents = new Map<string, RestDocument>();
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
      return getOrMake(documents, JSON.stringify(options), () => {
        const all = [...tools].map(([name, entry]) => ({
          name,
          id: entry.name,
          namespace: entry.namespace,
          definition: JSON.parse(definition(name).toString()) as JsonObject,
        }));
        const bytes = toBytes(openApi(all, options));
        return { bytes, etag: `"${sha256(bytes, 'base64url').slice(0, 27)}"` };
      });
    },
  };
}

/** The schema of a tool's arguments, as its server wrote it. */
export function inputSchemaOf(definition: Buffer): Buffer {
  const { start, end } = findMember(definition, 'inputSchema')!;
  return definition.subarray(start, end);
}
