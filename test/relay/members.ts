/** The members of a JSON object, verbatim. Checks the scanner under test independently, on text instead of bytes. */

export interface Member {
  /** Decoded. */
  readonly key: string;
  /** From the first quote of the key to the end of the value. */
  readonly text: string;
  readonly value: string;
}

export function membersOf(object: string): Member[] {
  const inside = object.slice(1, -1);
  if (inside.trim() === '') return [];
  const commas = separators(inside, ',');
  return [...commas, inside.length].map((end, index) => {
    const text = inside.slice(index === 0 ? 0 : commas[index - 1]! + 1, end).trim();
    const [colon] = separators(text, ':');
    return { key: JSON.parse(text.slice(0, colon)) as string, text, value: text.slice(colon! + 1).trim() };
  });
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
