/**
 * Takes the secrets that a server was given out of what it says, before anybody reads it. Works on the bytes of JSON, and
 * changes what is inside of strings only: everything else stays as it came.
 */
import { formsOf } from './forms.ts';
import { createSearch, type Search, searchFor } from './redact.ts';

export type Clean = (message: Buffer) => Buffer;

/** Null where there is nothing to look for. */
export function createClean(values: Iterable<string>): Clean | null {
  // Bytes are looked at one by one, as characters: so is what is looked for.
  const forms = new Set([...values].flatMap(formsOf).map((form) => Buffer.from(form).toString('latin1')));
  if (forms.size === 0) return null;
  const search = createSearch([...forms]);
  return (message) => {
    const text = message.toString('latin1');
    if (searchFor(text, search) === text) return message;
    return Buffer.from(inStrings(text, search), 'latin1');
  };
}

function inStrings(text: string, search: Search): string {
  let clean = '';
  let at = 0;
  for (let open = text.indexOf('"'); open >= 0; open = text.indexOf('"', at)) {
    let close = open + 1;
    while (close < text.length && text[close] !== '"') close += text[close] === '\\' ? 2 : 1;
    clean += text.slice(at, open + 1) + searchFor(text.slice(open + 1, close), search);
    at = close;
    if (at >= text.length) break;
    clean += '"';
    at++;
  }
  return clean + text.slice(at);
}
