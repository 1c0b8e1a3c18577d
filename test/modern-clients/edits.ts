/** Edits of requests: for each rule about headers and envelopes, one that breaks it and one that does not. */
import fc from 'fast-check';
import {
  type Draft,
  json,
  keyOf,
  type Line,
  type Member,
  membersOf,
  objectOf,
  type Value,
} from '../support/modern-draft.ts';
import { encodeAlways, KEYS } from '../support/modern-offer.ts';

export type Edit = (draft: Draft) => void;
type Edits = fc.Arbitrary<Edit>;
const one = fc.constantFrom;

/** Header values, each valid for one kind or for none. */
const VALUES: readonly string[] = [
  ...['x', '', 'tools/call', 'tools/list', 'TOOLS/CALL', 'plain', 'up_plain', 'Plain', 'other', 'note://a', 'a, a'],
  ...['2026-07-28', '2025-11-25', '2099-01-01', '2026-7-28', 'v999.0.0'],
  ...['42', '42.0', '042', '1e3', 'true', 'TRUE', 'null'],
  ...['=?base64?cGxhaW4=?=', '=?BASE64?cGxhaW4=?=', '=?base64?cGxhaW4?=', '=?base64?cGxh!W4=?='],
  ...['=?base64?/w==?=', '=?base64??=', '=?base64?='],
  ...['gr\xf6\xdfe', Buffer.from('größe ☃').toString('latin1'), '\x80'],
];

interface LinePlace {
  readonly line: Line;
  readonly lines: Line[];
  /** One of the above. */
  readonly other: string;
}

const LINE_EDITS: readonly ((place: LinePlace) => void)[] = [
  ({ line }) => {
    line.name = line.name.toUpperCase();
  },
  ({ line }) => {
    line.name = line.name.toLowerCase();
  },
  ({ line }) => {
    line.value = ` \t${line.value} \t `;
  },
  ({ line }) => {
    line.value = encodeAlways(decoded(line));
  },
  ({ line }) => {
    line.value = encodeAlways(decoded(line)).replace(/=*\?=$/, '?=');
  },
  ({ line }) => {
    line.value = line.value.toUpperCase();
  },
  ({ line }) => {
    line.value = withoutControls(decoded(line));
  },
  ({ line }) => {
    line.value = withoutControls(Buffer.from(decoded(line)).toString('latin1'));
  },
  ({ line }) => {
    line.value = `${line.value}.0`;
  },
  ({ line, other }) => {
    line.value = other;
  },
  ({ line, lines }) => void lines.splice(lines.indexOf(line), 1),
  ({ line, lines }) => void lines.push({ ...line }),
  ({ line, lines, other }) => void lines.push({ name: line.name.toLowerCase(), value: other }),
  ({ line, lines, other }) => void lines.unshift({ name: line.name, value: other }),
];

function decoded({ value }: Line): string {
  const [, encoded] = /^=\?base64\?(.*)\?=$/.exec(value) ?? [];
  return encoded === undefined ? value : Buffer.from(encoded, 'base64').toString();
}

/** Text that can be written one byte per character and does not end the line. */
function withoutControls(text: string): string {
  return text.replace(/[^\x20-\x7e\x80-\xff]/g, '');
}

const editLine: Edits = fc.tuple(fc.nat(), one(...LINE_EDITS), one(...VALUES)).map(([index, edit, other]) => {
  return ({ lines }) => {
    if (lines.length > 0) edit({ line: lines[index % lines.length]!, lines, other });
  };
});

const EXTRA = [
  'Mcp-Session-Id',
  'Last-Event-ID',
  'Mcp-Name',
  'Mcp-Param-Unknown',
  'Mcp-Param-Region',
  'mcp-param-level',
];

const addLine: Edits = fc.tuple(one(...EXTRA), one(...VALUES)).map(([name, value]) => {
  return ({ lines }) => void lines.push({ name, value });
});

const OTHER_JSON: readonly string[] = [
  ...['1', '-1.5', '42.0', '1152921504606846976', '"x"', '""', '"plain"', '"up_other"', 'null', 'true'],
  ...['[]', '["a"]', '{}'],
];
/** Spellings that a parser may mistake for the right one. */
const SPELLINGS: readonly ((key: string) => string)[] = [
  (key) => key.toUpperCase(),
  (key) => key.replace(/[a-z]/, (letter) => letter.toUpperCase()),
  (key) => key.replace('s', '\u017f').replace('k', '\u212a'),
];

interface MemberPlace {
  readonly part: Member;
  readonly members: Member[];
  readonly other: string;
  readonly spell: (key: string) => string;
}

const MEMBER_EDITS: readonly ((place: MemberPlace) => void)[] = [
  ({ part, members }) => void members.splice(members.indexOf(part), 1),
  ({ part, members }) => void members.push({ ...part }),
  ({ part, members, other }) => void members.push({ key: part.key, value: other }),
  ({ part, other }) => {
    part.value = other;
  },
  ({ part, spell }) => {
    part.key = json(spell(keyOf(part)));
  },
  ({ part, members, other, spell }) => void members.unshift({ key: json(spell(keyOf(part))), value: other }),
  // The same key with an escape, and in another position.
  ({ part }) => {
    part.key = part.key.replace(/[a-z]/, (letter) => `\\u00${letter.charCodeAt(0).toString(16)}`);
  },
  ({ part, members }) => void members.push(...members.splice(members.indexOf(part), 1)),
];

/** The objects of a body: itself, its parameters, `_meta`, the arguments, and objects inside those. */
function objectsIn(value: Value): Member[][] {
  return typeof value === 'string' ? [] : [value, ...value.flatMap((part) => objectsIn(part.value))];
}

const editMember: Edits = fc
  .tuple(fc.nat(), fc.nat(), one(...MEMBER_EDITS), one(...OTHER_JSON), one(...SPELLINGS))
  .map(([object, index, edit, other, spell]) => {
    return ({ body }) => {
      const objects = objectsIn(body);
      const members = objects[object % objects.length]!;
      // The gateway accepts a message without "jsonrpc", so this member is never edited.
      const parts = members.filter((part) => keyOf(part) !== 'jsonrpc');
      if (parts.length > 0) edit({ part: parts[index % parts.length]!, members, other, spell });
    };
  });

function metaIn({ body }: Draft): Member[] {
  const params = body.find((part) => keyOf(part) === 'params')?.value;
  const meta = membersOf(params).find((part) => keyOf(part) === '_meta')?.value;
  return typeof meta === 'object' ? meta : [];
}

const ENVELOPES: readonly (readonly [key: string, value: unknown])[] = [
  ...['2025-11-25', '2099-01-01', '2026-07-28 ', '', 20260728, null].map((value) => [KEYS.version, value] as const),
  ...[{ name: 'a' }, { name: 1, version: '1' }, 'a', [], { name: '', version: '', title: 1 }].map(
    (value) => [KEYS.client, value] as const,
  ),
  ...[{ sampling: {} }, { sampling: true }, { roots: [] }, { Elicitation: 1 }, [], null, 'x'].map(
    (value) => [KEYS.capabilities, value] as const,
  ),
  ...['debug', 'emergency', 'INFO', 'verbose', 3, null].map((value) => [KEYS.level, value] as const),
  ['progressToken', 1],
  ['traceparent', '00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01'],
];

const editEnvelope: Edits = one(...ENVELOPES).map(([key, value]) => {
  return (draft) => {
    const meta = metaIn(draft);
    const known = meta.find((part) => keyOf(part) === key);
    if (known === undefined) meta.push(...objectOf({ [key]: value }));
    else known.value = json(value);
  };
});

/** Header and body agree on a revision that the gateway does not support. */
const otherRevision: Edits = one('2025-11-25', '2099-01-01', '1900-01-01', 'v999.0.0').map((revision) => {
  return (draft) => {
    for (const line of draft.lines) if (/^mcp-protocol-version$/i.test(line.name)) line.value = revision;
    for (const part of metaIn(draft)) if (keyOf(part) === KEYS.version) part.value = json(revision);
  };
});

function remove(members: Member[], key: string): void {
  members.splice(0, members.length, ...members.filter((part) => keyOf(part) !== key));
}

const reshape: Edits = one<Edit>(
  (draft) => {
    draft.form = 'batch';
  },
  (draft) => {
    draft.form = 'cut';
  },
  // A notification, and a response.
  ({ body }) => remove(body, 'id'),
  ({ body }) => {
    remove(body, 'method');
    body.push(...objectOf({ result: {} }));
  },
);

export const edits: Edits = fc.oneof(
  { weight: 8, arbitrary: editLine },
  { weight: 2, arbitrary: addLine },
  { weight: 6, arbitrary: editMember },
  { weight: 3, arbitrary: editEnvelope },
  { weight: 1, arbitrary: otherRevision },
  { weight: 1, arbitrary: reshape },
);
