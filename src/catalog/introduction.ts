/** The instructions of all servers for models, each under a heading with the name of its server. */
import type { Contribution } from './catalog.ts';
import { type Naming, prefixOf } from './names.ts';

/** The most that one server may say: models read all of it in every conversation. */
const MOST = 8_000;

/** `inside` is the namespace whose names have no prefix; null for none. */
export function introduce(
  contributions: readonly Contribution[],
  naming: Naming,
  inside: string | null = null,
): string {
  return contributions
    .filter(({ offer }) => offer.instructions.trim() !== '')
    .map(
      ({ key, namespace, offer }) =>
        `${heading(key, namespace === inside ? '' : prefixOf(namespace, naming))}\n\n${shorten(offer.instructions)}`,
    )
    .join('\n\n');
}

function heading(key: string, prefix: string): string {
  return prefix === '' ? `# Server "${key}"` : `# Server "${key}" (its names begin with "${prefix}")`;
}

function shorten(instructions: string): string {
  const text = instructions.trim();
  return text.length <= MOST ? text : `${text.slice(0, MOST)}…`;
}
