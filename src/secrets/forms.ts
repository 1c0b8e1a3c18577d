/** A secret in the other spellings in which it gets around: base64, URL-encoded, and as text in JSON. */

/** Shorter ones are words and numbers that stand in every other line. */
export const SHORTEST = 6;
/** A longer value is looked for in pieces. */
const LONGEST = 256;
/** Text of several lines, such as a key in PEM, gets out a line at a time too. */
const LONG_LINE = 16;
/** How often text is put into text, at most. */
const DEEPEST = 5;

/** Every spelling that is worth looking for. */
export function formsOf(value: string): string[] {
  const found = new Set<string>();
  for (const part of partsOf(value)) {
    for (const form of [part, ...escaped(part), ...base64Of(part)]) if (form.length >= SHORTEST) found.add(form);
  }
  return [...found];
}

function partsOf(value: string): string[] {
  const whole = value.trim();
  const lines = whole.split(/[\r\n]+/).map((line) => line.trim());
  const parts = lines.length > 1 ? [whole, ...lines.filter((line) => line.length >= LONG_LINE)] : [whole];
  return parts.filter((part) => part.length >= SHORTEST).flatMap(piecesOf);
}

function piecesOf(text: string): string[] {
  const pieces: string[] = [];
  // All of about the same length: a short one at the end would not be looked for.
  const size = Math.ceil(text.length / Math.ceil(text.length / LONGEST));
  for (let at = 0; at < text.length; at += size) pieces.push(text.slice(at, at + size));
  return pieces;
}

function escaped(text: string): string[] {
  const json = JSON.stringify(text).slice(1, -1);
  const url = urlForm(text);
  const lower = url.replace(/%[0-9A-F]{2}/g, (code) => code.toLowerCase());
  // As Python prints it, and as Go does.
  const ascii = unicoded(json, /[\u0080-\uffff]/g);
  const web = unicoded(json, /[<>&]/g);
  return [...nested(json), ascii, web, url, lower, url.replaceAll('%20', '+')];
}

/** Tools answer with JSON as text, in JSON, which is text in a line of the audit. */
function nested(json: string): string[] {
  const forms = [json];
  for (let depth = 1; depth < DEEPEST; depth++) forms.push(JSON.stringify(forms.at(-1)).slice(1, -1));
  return forms;
}

function unicoded(json: string, characters: RegExp): string {
  return json.replace(characters, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

function urlForm(text: string): string {
  try {
    return encodeURIComponent(text);
  } catch {
    // Half of a pair of code units has none.
    return text;
  }
}

/** What base64 makes of the bytes wherever they stand in others: three ways, less the characters that the neighbours share. */
function base64Of(text: string): string[] {
  const bytes = Buffer.from(text);
  return [0, 1, 2].flatMap((before) => {
    const all = Buffer.concat([Buffer.alloc(before), bytes]);
    const [from, to] = [Math.ceil((before * 8) / 6), Math.floor((all.length * 8) / 6)];
    return [all.toString('base64').slice(from, to), all.toString('base64url').slice(from, to)];
  });
}
