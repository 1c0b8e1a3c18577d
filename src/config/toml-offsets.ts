/**
 * Where each key of a TOML document stands: the parser does not tell. Reads only documents that have been parsed
 * already, so nothing is checked here.
 */

import type { Path } from './path.ts';

/** Offsets by the JSON of the path that leads there. */
export function tomlOffsets(text: string): Map<string, number> {
  const offsets = new Map<string, number>();
  const tables = new Map<string, number>();
  let at = 0;

  const record = (path: Path, offset: number) => {
    const id = JSON.stringify(path);
    if (!offsets.has(id)) offsets.set(id, offset);
  };

  const skip = (pattern: RegExp) => {
    pattern.lastIndex = at;
    at += pattern.exec(text)?.[0].length ?? 0;
  };

  /** `a."b c".d`, up to the `=` or `]` after it. */
  const readKey = (): string[] => {
    const parts: string[] = [];
    for (;;) {
      skip(BLANK);
      const start = at;
      const quote = text[at];
      if (quote === '"' || quote === "'") {
        skipString();
        parts.push(text.slice(start + 1, at - 1));
      } else {
        skip(BARE_KEY);
        parts.push(text.slice(start, at));
      }
      skip(BLANK);
      if (text[at] !== '.') return parts;
      at++;
    }
  };

  const skipString = () => {
    const quote = text[at]!;
    const long = quote.repeat(3);
    const end = text.startsWith(long, at) ? long : quote;
    at += end.length;
    while (at < text.length && !text.startsWith(end, at)) at += quote === '"' && text[at] === '\\' ? 2 : 1;
    at += end.length;
    // A long string may end in up to two quotes of its own.
    if (end === long) while (text[at] === quote) at++;
  };

  const readPair = (table: Path) => {
    const start = at;
    const key = readKey();
    for (let i = 1; i <= key.length; i++) record([...table, ...key.slice(0, i)], start);
    at++;
    readValue([...table, ...key]);
  };

  const readValue = (path: Path) => {
    skip(BLANK);
    const first = text[at];
    if (first === '"' || first === "'") skipString();
    else if (first === '[' || first === '{') {
      const end = first === '[' ? ']' : '}';
      at++;
      for (let i = 0; ; i++) {
        skip(VOID);
        if (at >= text.length || text[at] === end) break;
        if (first === '{') readPair(path);
        else {
          record([...path, i], at);
          readValue([...path, i]);
        }
        skip(VOID);
        if (text[at] === ',') at++;
      }
      at++;
    } else skip(SCALAR);
  };

  /** The path of `[a.b]` or `[[a.b]]`, with positions where `a` or `b` is a list of tables. */
  const readHeader = (): Path => {
    const start = at;
    const isList = text[at + 1] === '[';
    at += isList ? 2 : 1;
    const key = readKey();
    at += isList ? 2 : 1;
    const path: (string | number)[] = [];
    key.forEach((part, i) => {
      path.push(part);
      record(path, start);
      const id = JSON.stringify(path);
      if (isList && i === key.length - 1) tables.set(id, (tables.get(id) ?? 0) + 1);
      const count = tables.get(id);
      if (count !== undefined) path.push(count - 1);
    });
    record(path, start);
    return path;
  };

  let table: Path = [];
  for (skip(VOID); at < text.length; skip(VOID)) {
    if (text[at] === '[') table = readHeader();
    else readPair(table);
  }
  return offsets;
}

const BLANK = /[ \t]*/y;
const BARE_KEY = /[^\s.="'\]]*/y;
const VOID = /(?:\s|\uFEFF|#[^\n]*)*/y;
const SCALAR = /[^,\]}\n#]*/y;
