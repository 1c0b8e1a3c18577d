/**
 * The lines of a TOML document, which smol-toml does not keep. Only errors need them: parse.ts loads this file, and
 * with it the larger parser, when there is one.
 */
import { type AST, parseTOML } from 'toml-eslint-parser';
import type { Path } from './issues.ts';

/**
 * The 1-based line of every key and list item, by the JSON of its path. Empty if the larger parser refuses the
 * document.
 */
export function tomlLines(text: string): ReadonlyMap<string, number> {
  const lines = new Map<string, number>();
  const record = (path: Path, { loc }: AST.TOMLNode) => {
    const id = JSON.stringify(path);
    if (!lines.has(id)) lines.set(id, loc.start.line);
  };
  const readPair = (table: Path, pair: AST.TOMLKeyValue) => {
    let path = table;
    for (const key of namesOf(pair.key)) {
      path = [...path, key];
      record(path, pair);
    }
    readValue(path, pair.value);
  };
  const readValue = (path: Path, value: AST.TOMLContentNode) => {
    if (value.type === 'TOMLInlineTable') for (const pair of value.body) readPair(path, pair);
    if (value.type !== 'TOMLArray') return;
    for (const [i, item] of value.elements.entries()) {
      record([...path, i], item);
      readValue([...path, i], item);
    }
  };
  for (const node of contentsOf(text)) {
    if (node.type === 'TOMLKeyValue') readPair([], node);
    else {
      for (let length = 1; length <= node.resolvedKey.length; length++) record(node.resolvedKey.slice(0, length), node);
      for (const pair of node.body) readPair(node.resolvedKey, pair);
    }
  }
  return lines;
}

function contentsOf(text: string): AST.TOMLTopLevelTable['body'] {
  try {
    return parseTOML(text.replace(/^\uFEFF/, ''), { tomlVersion: '1.1' }).body[0].body;
  } catch {
    // The two parsers differ in a few cases, such as the 30th of February. Then the error is shown without a line.
    return [];
  }
}

function namesOf({ keys }: AST.TOMLKey): string[] {
  return keys.map((key) => (key.type === 'TOMLBare' ? key.name : key.value));
}
