/** The forms in which a secret may appear: as it is, as base64, URL-encoded, and as text in JSON. */

/** Shorter values are not searched for: they are words and numbers that appear everywhere. */
export const SHORTEST = 6;
/** A longer value is searched for in pieces. */
const LONGEST = 256;
/** A text of several lines, such as a PEM key, may also appear line by line. */
const LONG_LINE = 16;
/** How many times JSON text may be nested in JSON text. */
const DEEPEST = 5;

/** Every form that is worth searching for. */
export function formsOf(value: string): string[] {
  const found = new Set<string>();
  for (const part of partsOf(value)) {
    for (const form of [part, ...escaped(part), ...base64Of(part)]) if (form.length >= SHORTEST) found.add(form);
  }
  return [...found];
}

function partsOf(value: string): string[] {
  const text = value.trim();
  const lines = text.split(/[\r\n]+/).map((line) => line.trim());
  const parts = lines.length > 1 ? [text, ...lines.filter((line) => line.length >= LONG_LINE)] : [text];
  return parts.filter((part) => part.length >= SHORTEST).flatMap(piecesOf);
}

function piecesOf(text: string): string[] {
  const pieces: string[] = [];
  // Pieces of equal length, because a short one at the end would not be searched for.
  const size = Math.ceil(text.length / Math.ceil(text.length / LONGEST));
  for (let at = 0; at < text.length; at += size) pieces.push(text.slice(at, at + size));
  return pieces;
}

function escaped(text: string): string[] {
  const json = JSON.stringify(text).slice(1, -1);
  const url = urlForm(text);
  const lower = url.replace(/%[0-9A-F]{2}/g, (code) => code.toLowerCase());
  // As Python prints JSON, and as Go does.
  const ascii = unicoded(json, /[\u0080-\uffff]/g);
  const web = unicoded(json, /[<>&]/g);
  return [...nested(json), ascii, web, url, lower, url.replaceAll('%20', '+')];
}

/** A tool may return JSON as text inside JSON, and the audit writes that as text inside JSON again. */
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
    // Half of a surrogate pair has no encoding.
    return text;
  }
}

/** The base64 of the bytes at each of the three alignments, without the characters that neighbouring bytes share. */
function base64Of(text: string): string[] {
  const bytes = Buffer.from(text);
  return [0, 1, 2].flatMap((before) => {
    const all = Buffer.concat([Buffer.alloc(before), bytes]);
    const [from, to] = [Math.ceil((before * 8) / 6), Math.floor((all.length * 8) / 6)];
    return [all.toString('base64').slice(from, to), all.toString('base64url').slice(from, to)];
  });
}
