/** Small pieces of messages. */

/** `1 tool`, `3 tools`; pass the plural if it is irregular. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}

/** The text without its last full stop, to go on with. */
export function withoutStop(text: string): string {
  return text.replace(/\.$/, '');
}

/** `"a", "b" or "c"`. */
export function quotedList(names: readonly string[], joint = 'or'): string {
  const quoted = names.map((name) => `"${name}"`);
  const last = quoted.pop();
  if (last === undefined) return '';
  return quoted.length === 0 ? last : `${quoted.join(', ')} ${joint} ${last}`;
}

/**
 * Text on one line in which every character can be seen. Control and formatting characters are written as escapes: they
 * could make a text look like a different one, or a name like another row of a table.
 */
export function escaped(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (char) => {
    const code = char.codePointAt(0)!.toString(16);
    return code.length > 4 ? `\\u{${code}}` : `\\u${code.padStart(4, '0')}`;
  });
}

/** The two ends of a long text, and how much is left out between them. Texts up to `most` characters stay whole. */
export function excerpt(text: string, most: number): string {
  if (text.length <= most) return text;
  const letters = [...text];
  const tail = Math.floor(most / 3);
  const left = letters.length - most;
  if (left <= 0) return text;
  return `${letters.slice(0, most - tail).join('')} … ${left} characters left out … ${letters.slice(-tail).join('')}`;
}

const MAX_COMPARED = 64;

/** The candidates most like `name`, best first. Empty if none is close. */
export function similarNames(name: string, candidates: Iterable<string>, limit = 3): string[] {
  const wanted = name.slice(0, MAX_COMPARED).toLowerCase();
  const scored: { candidate: string; distance: number }[] = [];
  for (const candidate of candidates) {
    const other = candidate.slice(0, MAX_COMPARED).toLowerCase();
    // A part of the name is a common mistake too: `read_file` for `fs_read_file`.
    const within = wanted.length >= 3 && (other.includes(wanted) || (other.length >= 3 && wanted.includes(other)));
    const apart = Math.abs(other.length - wanted.length);
    // Of a short word, two wrong letters leave nothing that is alike.
    const most = Math.max(1, Math.floor(Math.max(wanted.length, other.length) * 0.4));
    if (!within && apart > most) continue;
    const distance = within ? apart / 8 : editDistance(wanted, other);
    if (within || distance <= most) scored.push({ candidate, distance });
  }
  scored.sort((a, b) => a.distance - b.distance || (a.candidate < b.candidate ? -1 : 1));
  return scored.slice(0, limit).map((one) => one.candidate);
}

/** How many letters were left out, added, replaced, or swapped with the next one. */
function editDistance(a: string, b: string): number {
  let before: number[] = [];
  let previous = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const current = [i];
    for (let j = 1; j <= b.length; j++) {
      const cost = a.charCodeAt(i - 1) === b.charCodeAt(j - 1) ? 0 : 1;
      const plain = Math.min(previous[j]! + 1, current[j - 1]! + 1, previous[j - 1]! + cost);
      const swaps = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      current.push(swaps ? Math.min(plain, before[j - 2]! + 1) : plain);
    }
    before = previous;
    previous = current;
  }
  return previous[b.length]!;
}

/** ` Did you mean "x" or "y"?`, or an empty text. */
export function didYouMean(name: string, candidates: Iterable<string>): string {
  const found = similarNames(name, candidates);
  if (found.length === 0) return '';
  return ` Did you mean ${quotedList(found)}?`;
}

/** The text as it is written in HTML, between tags and in quoted attributes. */
export function inHtml(text: string): string {
  return text.replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`);
}

/** The text with its `%XX` decoded; null if it is not encoded correctly. */
export function percentDecoded(text: string): string | null {
  try {
    // Its result must be used: bundlers take the call for one that cannot throw, and would leave it out.
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}
