/** Small pieces of messages. */

const MOST_LISTED = 50;

/** `1 tool`, `3 tools`; pass the plural if it is irregular. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}

/** The text without its last full stop, to go on with. */
export function withoutStop(text: string): string {
  return text.replace(/\.$/, '');
}

/** The beginning of a text that somebody else has chosen, for a message. */
export function shortened(text: string, most = 200): string {
  return text.length <= most ? text : `${text.slice(0, most)}…`;
}

/** `"a", "b" or "c"`; after the first ones only how many more there are. */
export function quotedList(names: readonly string[], joint = 'or'): string {
  const quoted = names.slice(0, MOST_LISTED).map((name) => `"${name}"`);
  if (names.length > MOST_LISTED) return `${quoted.join(', ')} and ${names.length - MOST_LISTED} more`;
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
    const distance = within ? apart / 8 : editDistance(wanted, other, most);
    if (within || distance <= most) scored.push({ candidate, distance });
  }
  scored.sort((a, b) => a.distance - b.distance || (a.candidate < b.candidate ? -1 : 1));
  return scored.slice(0, limit).map((one) => one.candidate);
}

/** Three rows of the table, which are used again: names are compared with all others of a catalog. */
const ROWS = [0, 1, 2].map(() => new Uint8Array(MAX_COMPARED + 2));

/**
 * How many letters were left out, added, replaced, or swapped with the next one; more than `most` if it is more. Only what
 * can lead to so few is looked at.
 */
function editDistance(a: string, b: string, most: number): number {
  const beyond = most + 1;
  let [before, previous, current] = ROWS as [Uint8Array, Uint8Array, Uint8Array];
  for (let j = 0; j <= b.length; j++) previous[j] = j;
  let leastBefore = 0;
  for (let i = 1; i <= a.length; i++) {
    const from = Math.max(1, i - most);
    const to = Math.min(b.length, i + most);
    const letter = a.charCodeAt(i - 1);
    const letterBefore = i > 1 ? a.charCodeAt(i - 2) : 0;
    current[from - 1] = from === 1 ? Math.min(i, beyond) : beyond;
    let least = beyond;
    for (let j = from; j <= to; j++) {
      let cost = previous[j - 1]! + (letter === b.charCodeAt(j - 1) ? 0 : 1);
      if (previous[j]! < cost) cost = previous[j]! + 1;
      if (current[j - 1]! < cost) cost = current[j - 1]! + 1;
      const isSwap = i > 1 && j > 1 && letterBefore === b.charCodeAt(j - 1) && letter === b.charCodeAt(j - 2);
      if (isSwap && before[j - 2]! < cost) cost = before[j - 2]! + 1;
      current[j] = cost;
      if (cost < least) least = cost;
    }
    current[to + 1] = beyond;
    // A swap leads from one row to the next but one.
    if (least >= beyond && leastBefore >= beyond) return beyond;
    leastBefore = least;
    [before, previous, current] = [previous, current, before];
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
