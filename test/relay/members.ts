/** The members of a JSON object, verbatim. Checks the scanner under test independently, on text instead of bytes. */

export interface Member {
  /** Decoded. */
  readonly key: string;
  /** From the first quote of the key to the end of the value. */
  readonly text: string;
  readonly value: string;
}

export function membersOf(object: string): Member[] {
  return partsOf(object).map((text) => {
    const [colon] = separators(text, ':');
    return { key: JSON.parse(text.slice(0, colon)) as string, text, value: text.slice(colon! + 1).trim() };
  });
}

/** Whether an object in the text, at any depth, has a key twice. */
export function repeatsKey(text: string): boolean {
  if (text.startsWith('[')) return partsOf(text).some(repeatsKey);
  if (!text.startsWith('{')) return false;
  const members = membersOf(text);
  return new Set(members.map(({ key }) => key)).size < members.length || members.some(({ value }) => repeatsKey(value));
}

/** The members of an object, or the elements of an array. */
function partsOf(text: string): string[] {
  const inside = text.slice(1, -1);
  if (inside.trim() === '') return [];
  const commas = separators(inside, ',');
  return [...commas, inside.length].map((end, index) =>
    inside.slice(index === 0 ? 0 : commas[index - 1]! + 1, end).trim(),
  );
}

/** The position of the character outside of strings and brackets. */
function separators(text: string, wanted: string): number[] {
  const found: number[] = [];
  let depth = 0;
  for (let i = 0; i < text.length; i++) {
    const c = text[i]!;
    if (c === '"') i = stringEnd(text, i);
    else if (c === '{' || c === '[') depth++;
    else if (c === '}' || c === ']') depth--;
    else if (c === wanted && depth === 0) found.push(i);
  }
  return found;
}

/** The position of the closing quote. */
function stringEnd(text: string, start: number): number {
  for (let i = start + 1; i < text.length; i++) {
    if (text[i] === '"') return i;
    if (text[i] === '\\') i++;
  }
  throw new Error(`a string without an end in ${text.slice(0, 200)}`);
}
