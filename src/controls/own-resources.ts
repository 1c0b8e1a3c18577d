/** The resource in which a client reads what its texts have no room for: all items and instructions. */
import type { View } from '../access/view.ts';
import { builtInResource, type Entry } from '../catalog/entry.ts';
import { CATALOG_URI } from '../catalog/introduction.ts';
import { toBytes } from '../protocol/json.ts';
import { catalogDocument } from './catalog-text.ts';

const MIME_TYPE = 'text/markdown';

export const CATALOG_RESOURCE: Entry = builtInResource({
  uri: CATALOG_URI,
  name: 'catalog',
  description: 'All servers with their instructions, tools and resources. * marks what is active.',
  mimeType: MIME_TYPE,
});

/** The answer to `resources/read`. */
export function readOwnResource({ catalog, selection }: View, { name: uri }: Entry): Buffer {
  return toBytes({ contents: [{ uri, mimeType: MIME_TYPE, text: catalogDocument(catalog, selection) }] });
}
