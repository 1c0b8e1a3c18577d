/** The text of a configuration file as a plain value, with a way back from a place in the value to its line. */

import { extname } from 'node:path';
import { parse as parseToml, TomlError } from 'smol-toml';
import { GatewayError, messageOf } from '../base/errors.ts';
import type { Path } from './path.ts';
import { type Position, positionsIn } from './positions.ts';
import { tomlOffsets } from './toml-offsets.ts';

export interface Parsed {
  readonly value: unknown;
  /** The 1-based line of the value at `path`, or of the nearest thing around it that has one. */
  lineOf(path: Path): number | undefined;
}

type Parser = (text: string, fail: Fail) => Parsed | Promise<Parsed>;
type Fail = (reason: string, position?: Position) => GatewayError;

const parsers: Readonly<Record<string, { readonly language: string; readonly parse: Parser }>> = {
  '.toml': { language: 'TOML', parse: fromToml },
  '.yaml': { language: 'YAML', parse: fromYaml },
  '.yml': { language: 'YAML', parse: fromYaml },
  '.json': { language: 'JSON', parse: fromJson },
};

/** Reads `text` in the language that the ending of `name` tells. */
export async function parseConfig(text: string, name: string): Promise<Parsed> {
  const parser = parsers[extname(name).toLowerCase()];
  if (!parser) {
    const endings = Object.keys(parsers).join(', ');
    throw new GatewayError('config_invalid', `${name}: cannot tell its language. Use a name that ends in ${endings}.`);
  }
  const fail: Fail = (reason, position) => {
    const [place, what] = position ? [`${name}:${position.line}:${position.column}`, 'line'] : [name, 'file'];
    // The first line says what is wrong; parsers add lines of the file, which may hold secrets.
    const sentence = reason.split('\n', 1)[0]!.replace(/[.:\s]+$/, '');
    return new GatewayError(
      'config_invalid',
      `${place}: not valid ${parser.language}: ${sentence}. Correct this ${what}.`,
    );
  };
  try {
    return await parser.parse(text, fail);
  } catch (error) {
    // The parsers recurse; a stack that runs out is the file's fault, not ours.
    if (error instanceof RangeError) throw fail('it is nested too deeply');
    throw error;
  }
}

function fromToml(text: string, fail: Fail): Parsed {
  let value: unknown;
  try {
    value = parseToml(text);
  } catch (error) {
    if (!(error instanceof TomlError)) throw error;
    throw fail(error.message.replace(/^Invalid TOML document: /, ''), error);
  }
  let offsets: Map<string, number> | undefined;
  const position = positionsIn(text);
  return {
    value,
    lineOf(path) {
      offsets ??= tomlOffsets(text);
      return nearest(path, (part) => offsets?.get(JSON.stringify(part)), position);
    },
  };
}

/** Where the parser speaks to programmers, or of itself. */
const yamlReasons: Readonly<Record<string, string>> = {
  MULTIPLE_DOCS: 'a second document begins here',
  RESOURCE_EXHAUSTION: 'it is nested too deeply',
};

async function fromYaml(text: string, fail: Fail): Promise<Parsed> {
  const { isAlias, isMap, isNode, isScalar, isSeq, parseDocument } = await import('yaml');
  const position = positionsIn(text);
  const document = parseDocument(text, { prettyErrors: false });
  const [error] = document.errors;
  if (error) throw fail(yamlReasons[error.code] ?? error.message, position(error.pos[0]));
  let value: unknown;
  try {
    value = document.toJS();
  } catch (error) {
    // Aliases that lead nowhere, or that multiply into more than memory holds.
    throw fail(messageOf(error));
  }
  /** The node that stands for `path` in the text: the key in a map, the item in a list. */
  const offsetOf = (path: Path): number | undefined => {
    let node: unknown = document.contents;
    let place: unknown = node;
    for (const part of path) {
      if (isAlias(node)) node = node.resolve(document);
      if (isMap(node)) {
        const pair = node.items.find(({ key }) => isScalar(key) && String(key.value) === part);
        place = pair?.key;
        node = pair?.value;
      } else {
        place = isSeq(node) ? node.items[Number(part)] : undefined;
        node = place;
      }
    }
    return isNode(place) ? place.range?.[0] : undefined;
  };
  // An empty document is an empty configuration, as in TOML.
  return { value: value ?? {}, lineOf: (path) => nearest(path, offsetOf, position) };
}

async function fromJson(text: string, fail: Fail): Promise<Parsed> {
  const { findNodeAtLocation, getNodeValue, parseTree, printParseErrorCode } = await import('jsonc-parser');
  const position = positionsIn(text);
  const errors: { error: number; offset: number; length: number }[] = [];
  const root = parseTree(text, errors, { allowTrailingComma: true });
  const [error] = errors;
  if (error || !root) {
    const reason = error ? printParseErrorCode(error.error) : 'ValueExpected';
    throw fail(reason.replace(/\B[A-Z]/g, (letter) => ` ${letter}`).toLowerCase(), position(error?.offset ?? 0));
  }
  const offsetOf = (path: Path): number | undefined => {
    const node = findNodeAtLocation(root, [...path]);
    return node?.parent?.type === 'property' ? node.parent.offset : node?.offset;
  };
  return { value: getNodeValue(root), lineOf: (path) => nearest(path, offsetOf, position) };
}

function nearest(
  path: Path,
  offsetOf: (path: Path) => number | undefined,
  position: (offset: number) => Position,
): number | undefined {
  for (let length = path.length; length > 0; length--) {
    const offset = offsetOf(path.slice(0, length));
    if (offset !== undefined) return position(offset).line;
  }
  return undefined;
}
