/**
 * Which server named which URI in a result. A client reads such a URI as it is, and only the server that named it knows
 * what it means: another one with the same URI, or with a template for it, must not get the request.
 */
import { BoundedMap } from '../base/bounded-map.ts';
import { memo } from '../base/memo.ts';
import { toObject } from '../base/objects.ts';
import type { Catalog } from '../catalog/catalog.ts';
import { join, type Parts, sizeOf } from '../protocol/parts.ts';

/** The most URIs that are remembered for a caller. */
const MOST = 1_000;
/** Longer results are not searched. */
const LONGEST = 256 * 1024;

/** A caller, or whatever else gets results. */
interface Reader {
  view(): { readonly catalog: Catalog };
}

const named = memo((_: Reader) => new BoundedMap<string, number>(MOST));

/** The sources that have resources or templates. The URIs in results of others cannot be read. */
const sourcesWith = memo(({ entries, unlisted }: Catalog) => {
  const all = [...entries.resource.values(), ...entries.template.values(), ...unlisted];
  return new Set(all.map(({ sourceId }) => sourceId));
});

/** Remembers the links and embedded resources in a result of this source. */
export function noteUris(reader: Reader, sourceId: number, result: Parts): void {
  const sources = sourcesWith(reader.view().catalog);
  if (!sources.has(sourceId) || sizeOf(result) > LONGEST) return;
  const bytes = join(result);
  if (!bytes.includes('"uri"')) return;
  const known = named(reader);
  for (const uri of urisIn(bytes)) {
    // The newest result counts, and is forgotten last.
    known.delete(uri);
    known.set(uri, sourceId);
  }
}

/** The source that named the URI last; undefined if none has. */
export function sourceNaming(reader: Reader, uri: string): number | undefined {
  return named(reader).get(uri);
}

function urisIn(bytes: Buffer): string[] {
  const { content, messages } = parsed(bytes);
  const blocks = [...listOf(content), ...listOf(messages).map((message) => toObject(message).content)].map(toObject);
  return blocks.flatMap(({ uri, resource }) => [uri, toObject(resource).uri]).filter((uri) => typeof uri === 'string');
}

function parsed(bytes: Buffer): Readonly<Record<string, unknown>> {
  try {
    return toObject(JSON.parse(bytes.toString()));
  } catch {
    // The insides of long results are not checked on their way.
    return {};
  }
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
