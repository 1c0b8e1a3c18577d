/** Reads configuration files: the text, its value, and the way back from a value to its line. */
import { readFile, stat } from 'node:fs/promises';
import { extname } from 'node:path';
import { parse as parseToml, TomlError } from 'smol-toml';
import { type ErrorCode, GatewayError, messageOf } from '../base/errors.ts';
import { type ConfigDocument, InvalidConfig, type LineOf } from './issues.ts';

/** More than any configuration needs. A larger file is probably the wrong one. */
const MAX_FILE_BYTES = 1024 * 1024;

/** Reads `file`. Errors call it `name`. */
export async function readConfigText(file: string, name: string): Promise<string> {
  const fail = (problem: string, code: ErrorCode = 'config_invalid', cause?: unknown) =>
    new GatewayError(code, `${name}: ${problem}.`, { cause });
  const unreadable = (error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT')
      return fail('there is no such file. Create it, or name another', 'config_missing', error);
    if (error.code === 'EACCES')
      return fail('cannot be read: permission denied. Give this user permission to read it', undefined, error);
    return fail(`cannot be read (${error.code ?? error.message})`, undefined, error);
  };
  const stats = await stat(file).catch((error) => Promise.reject(unreadable(error)));
  if (stats.isDirectory()) throw fail('is a folder. Name the file in it');
  if (!stats.isFile()) throw fail('is not a regular file. Name one');
  if (stats.size > MAX_FILE_BYTES) throw fail('is larger than 1 MiB. Make sure that it is the right file');
  const bytes = await readFile(file).catch((error) => Promise.reject(unreadable(error)));
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw fail('is not UTF-8 text. Save it in that encoding');
  }
}

/** A document that was read as TOML, YAML or JSON. */
export interface ParsedText extends ConfigDocument {
  readonly value: unknown;
  /** Works out the lines, which only errors need. */
  lines(): Promise<LineOf>;
}

interface Position {
  readonly line: number;
  readonly column: number;
}

type Parser = (text: string, fail: ParseFailure) => Content | Promise<Content>;
type Content = Omit<ParsedText, 'name'>;
type ParseFailure = (reason: string, position?: Position) => GatewayError;

const parsers: Readonly<Record<string, { readonly language: string; readonly parse: Parser }>> = {
  '.toml': { language: 'TOML', parse: fromToml },
  '.yaml': { language: 'YAML', parse: fromYaml },
  '.yml': { language: 'YAML', parse: fromYaml },
  '.json': { language: 'JSON', parse: fromJson },
  '.jsonc': { language: 'JSON', parse: fromJson },
};

/** Reads `text` in the language that the ending of `name` indicates. */
export async function parseConfig(text: string, name: string): Promise<ParsedText> {
  const parser = parsers[extname(name).toLowerCase()];
  if (!parser) {
    const endings = Object.keys(parsers).join(', ');
    throw new GatewayError('config_invalid', `${name}: cannot tell its language. Use a name that ends in ${endings}.`);
  }
  const fail: ParseFailure = (reason, position) => {
    const [where, what] = position ? [`${name}:${position.line}:${position.column}`, 'line'] : [name, 'file'];
    // The first line says what is wrong. Parsers add lines of the file, which may hold secrets.
    const sentence = reason.split('\n', 1)[0]!.replace(/[.:\s]+$/, '');
    return new GatewayError(
      'config_invalid',
      `${where}: not valid ${parser.language}: ${sentence}. Correct this ${what}.`,
    );
  };
  try {
    return { name, ...(await parser.parse(text, fail)) };
  } catch (error) {
    // The parsers recurse, and the stack ran out: the file is at fault.
    if (error instanceof RangeError) throw fail('it is nested too deeply');
    throw error;
  }
}

/** Runs `work`. If that finds issues in `document`, the error gets their line numbers. */
export async function withLines<Result>(document: ParsedText, work: () => Result | Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof InvalidConfig) || error.document !== document) throw error;
    throw new InvalidConfig(document, error.issues, await document.lines());
  }
}

function fromToml(text: string, fail: ParseFailure): Content {
  let value: unknown;
  try {
    value = parseToml(text);
  } catch (error) {
    if (!(error instanceof TomlError)) throw error;
    throw fail(error.message.replace(/^Invalid TOML document: /, ''), error);
  }
  const lines = async () => {
    const { tomlLines } = await import('./toml-lines.ts');
    const all = tomlLines(text);
    return nearest((path) => all.get(JSON.stringify(path)));
  };
  return { value, lines };
}

/** Replacements for messages that address programmers, or that are about the parser itself. */
const yamlReasons: Readonly<Record<string, string>> = {
  MULTIPLE_DOCS: 'a second document begins here',
  RESOURCE_EXHAUSTION: 'it is nested too deeply',
};

async function fromYaml(text: string, fail: ParseFailure): Promise<Content> {
  const { isAlias, isMap, isNode, isScalar, isSeq, parseDocument } = await import('yaml');
  const position = positionsIn(text);
  const document = parseDocument(text, { prettyErrors: false });
  const [error] = document.errors;
  if (error) throw fail(yamlReasons[error.code] ?? error.message, position(error.pos[0]));
  let value: unknown;
  try {
    value = document.toJS();
  } catch (error) {
    // An alias has no anchor, or aliases multiply beyond what fits in memory.
    throw fail(messageOf(error));
  }
  /** Where the key of a map, or the item of a list, begins. */
  const lineOf: LineOf = (path) => {
    let node: unknown = document.contents;
    let start: unknown = node;
    for (const part of path) {
      if (isAlias(node)) node = node.resolve(document);
      if (isMap(node)) {
        const pair = node.items.find(({ key }) => isScalar(key) && String(key.value) === part);
        start = pair?.key;
        node = pair?.value;
      } else {
        start = isSeq(node) ? node.items[Number(part)] : undefined;
        node = start;
      }
    }
    return isNode(start) && start.range ? position(start.range[0]).line : undefined;
  };
  // An empty document is an empty configuration, as in TOML.
  return { value: value ?? {}, lines: async () => nearest(lineOf) };
}

async function fromJson(text: string, fail: ParseFailure): Promise<Content> {
  const { findNodeAtLocation, getNodeValue, parseTree, printParseErrorCode } = await import('jsonc-parser');
  const position = positionsIn(text);
  const errors: { error: number; offset: number; length: number }[] = [];
  const root = parseTree(text, errors, { allowTrailingComma: true });
  const [error] = errors;
  if (error || !root) {
    const reason = error ? printParseErrorCode(error.error) : 'ValueExpected';
    throw fail(reason.replace(/\B[A-Z]/g, (letter) => ` ${letter}`).toLowerCase(), position(error?.offset ?? 0));
  }
  const lineOf: LineOf = (path) => {
    const node = findNodeAtLocation(root, [...path]);
    const start = node?.parent?.type === 'property' ? node.parent : node;
    return start && position(start.offset).line;
  };
  return { value: getNodeValue(root), lines: async () => nearest(lineOf) };
}

/** If a path has no line, the line of the nearest value around it. */
function nearest(lineOf: LineOf): LineOf {
  return (path) => {
    for (let length = path.length; length > 0; length--) {
      const line = lineOf(path.slice(0, length));
      if (line !== undefined) return line;
    }
    return undefined;
  };
}

/** Turns offsets in `text` into lines and columns, both counted from 1. */
function positionsIn(text: string): (offset: number) => Position {
  const starts = [0];
  for (let i = text.indexOf('\n'); i >= 0; i = text.indexOf('\n', i + 1)) starts.push(i + 1);
  return (offset) => {
    let low = 0;
    let high = starts.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (starts[middle]! <= offset) low = middle;
      else high = middle - 1;
    }
    return { line: low + 1, column: offset - starts[low]! + 1 };
  };
}
