/**
 * Removes the secrets that a server was given from its messages, before they are read. Works on the bytes of JSON and
 * changes only what is inside strings.
 */
import { formsOf } from './forms.ts';
import { createSearch, type Search, searchFor } from './redact.ts';

export type Clean = (message: Buffer) => Buffer;

/** Null if there is nothing to search for. */
export function createClean(values: Iterable<string>): Clean | null {
  // One character per byte, in the text and in the forms.
  const forms = new Set([...values].flatMap(formsOf).map((form) => Buffer.from(form).toString('latin1')));
  if (forms.size === 0) return null;
  const search = createSearch([...forms]);
  return (message) => {
    const text = message.toString('latin1');
    if (searchFor(text, search, true) === text) return message;
    return Buffer.from(inStrings(text, search), 'latin1');
  };
}

function inStrings(text: string, search: Search): string {
  let clean = '';
  let at = 0;
  for (let open = text.indexOf('"'); open >= 0; open = text.indexOf('"', at)) {
    let close = open + 1;
    while (close < text.length && text[close] !== '"') close += text[close] === '\\' ? 2 : 1;
    clean += text.slice(at, open + 1) + searchFor(text.slice(open + 1, close), search, true);
    at = close;
    if (at >= text.length) break;
    clean += '"';
    at++;
  }
  return clean + text.slice(at);
}
