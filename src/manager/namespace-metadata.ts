/** Writes `tooldock.yaml`. Comments and keys that are not changed stay as they are. */
import { join } from 'node:path';
import { GatewayError } from '../base/errors.ts';
import { replaceFileDurably } from '../base/files.ts';
import type { Config } from '../config/config.ts';
import { type Metadata, readMetadata } from '../workers/metadata.ts';
import { METADATA_FILE } from '../workers/tool-files.ts';
import { findOwn, readFileIn, requirePlainFile, whileLocked } from './managed-namespace.ts';

/** What to change. Absent members stay as they are; an empty list, map or text removes the key. */
export type MetadataChanges = Partial<Pick<Metadata, 'description' | 'version' | 'author' | 'secrets' | 'env'>>;

/** Returns what the file says now. Throws if it would say something wrong; then nothing is written. */
export async function writeMetadata(config: Config, namespace: string, changes: MetadataChanges): Promise<Metadata> {
  const { found } = await findOwn(config, namespace);
  await requirePlainFile(found.folder, METADATA_FILE);
  return whileLocked(config, namespace, async () => {
    const before = (await readFileIn(found.folder, METADATA_FILE)) ?? '';
    const text = await withChanges(before, changes);
    const { metadata, problems } = await readMetadata(text);
    if (problems.length > 0) throw new GatewayError('usage', `Nothing was written: ${problems.join(' ')}`);
    await replaceFileDurably(join(found.folder, METADATA_FILE), text);
    return metadata;
  });
}

async function withChanges(before: string, changes: MetadataChanges): Promise<string> {
  const { isMap, parseDocument } = await import('yaml');
  const document = parseDocument(before);
  const [error] = document.errors;
  if (error !== undefined || (document.contents !== null && !isMap(document.contents)))
    throw new GatewayError(
      'usage',
      `${METADATA_FILE} cannot be read${error === undefined ? '' : `: ${error.message}`}. Correct it yourself first.`,
    );
  if (document.contents === null) document.contents = document.createNode({}) as unknown as typeof document.contents;
  for (const [key, value] of Object.entries(changes)) {
    if (value === undefined) continue;
    if (isEmpty(value)) document.delete(key);
    else document.set(key, document.createNode(value));
  }
  return document.toString();
}

function isEmpty(value: MetadataChanges[keyof MetadataChanges]): boolean {
  return value === '' || (typeof value === 'object' && Object.keys(value).length === 0);
}
