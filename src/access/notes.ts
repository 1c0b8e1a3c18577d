/** Notes of the equipped toolset on its tools, shown where models look: at the end of the description. */
import type { Entry } from '../catalog/entry.ts';
import { hashBytes, type Item } from '../catalog/item.ts';
import { findMember, splice, toBytes } from '../protocol/json.ts';
import type { Selection } from './selection.ts';
import { canonicalName } from './toolset.ts';

export function annotate(entry: Entry, { toolset }: Selection): Entry {
  if (toolset === null || toolset.toolNotes.length === 0 || entry.kind !== 'tool') return entry;
  const canonical = canonicalName(entry);
  const notes = toolset.toolNotes
    .filter(({ toolRef }) => toolRef.namespacedName === canonical)
    .flatMap((one) => one.notes);
  if (notes.length === 0) return entry;
  const lines = notes.map(({ name, note }) => `- ${name}: ${note}`);
  return {
    ...entry,
    item: withDescription(entry.item, [entry.item.description, '', 'Notes:', ...lines].join('\n').trim()),
  };
}

function withDescription(item: Item, description: string): Item {
  const text = toBytes(description);
  const member = findMember(item.bytes, 'description');
  const bytes =
    member === null
      ? Buffer.concat([item.bytes.subarray(0, -1), Buffer.from(',"description":'), text, Buffer.from('}')])
      : splice(item.bytes, member, text);
  const nameMember = findMember(bytes, 'name')!;
  return { ...item, description, bytes, hash: hashBytes(bytes), nameSpan: nameMember };
}
