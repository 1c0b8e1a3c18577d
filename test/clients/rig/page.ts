/** The entries that docs/clients.md tells users to copy: the clients under test are configured with them. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../../support/docs-page.ts';
import { readBlocks } from '../../support/markdown.ts';
import type { Transport } from './place.ts';

export const page = join(root, 'docs/clients.md');

/** The block for a file, or for a command: the first one with the transport's own word in it. */
export function entryFor(name: string, transport: Transport): string {
  const word = transport === 'http' ? 'http://127.0.0.1:8808/mcp' : 'tools.toml';
  const blocks = readBlocks(readFileSync(page, 'utf8'), 'docs/clients.md');
  const found = blocks.find(
    ({ tags, text }) => (tags[0] === name || text.startsWith(`${name} `)) && text.includes(word),
  );
  if (found === undefined) throw new Error(`docs/clients.md has no entry for ${name} over ${transport}`);
  return found.text;
}
