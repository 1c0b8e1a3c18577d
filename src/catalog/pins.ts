/**
 * Pins: what each server offered when a person last approved it, and what differs from that now. A model reads
 * definitions as instructions, so a server that changes them changes what the model does.
 */
import { canonicalJson } from '../base/hash.ts';
import { memo } from '../base/memo.ts';
import { isObject, type JsonObject, toObject } from '../base/objects.ts';
import { toBytes } from '../protocol/json.ts';
import { EMPTY_OFFER, type Item, KINDS, type Kind, kindWords, type Offer, readItems } from './item.ts';
import { findings, hiddenCharacters } from './suspicious-text.ts';

/** What a server offered when it was approved. */
export interface PinnedServer {
  readonly instructions: string;
  /** The whole definitions, by kind and name. */
  readonly items: Readonly<Record<Kind, Readonly<Record<string, JsonObject>>>>;
}

/** The pinned servers by key. */
export type Pins = Readonly<Record<string, PinnedServer>>;

/**
 * `compatible`: everything that was right before still is. `breaking`: a call that was right may now be wrong.
 * `suspicious`: it gives the model new orders, hides something, or accepts more than before. `new` and `gone`: only one
 * side has it.
 */
export type DeviationKind = 'new' | 'gone' | 'compatible' | 'breaking' | 'suspicious';

/** One thing that differs from the pins. */
export interface Deviation {
  readonly server: string;
  readonly kind: Kind | 'instructions';
  /** Empty for instructions. */
  readonly name: string;
  readonly verdict: DeviationKind;
  /** What differs, in short sentences without a stop. */
  readonly reasons: readonly string[];
  /** Null if there was nothing. */
  readonly before: JsonObject | string | null;
  /** Null if there is nothing any more. */
  readonly after: JsonObject | string | null;
}

/** The pin of a server of which nothing was approved yet. */
export const NO_PIN: PinnedServer = { instructions: '', items: { tool: {}, resource: {}, template: {}, prompt: {} } };

const definitionIn = memo((item: Item): JsonObject => toObject(JSON.parse(item.bytes.toString())));
const canonicalOf = memo((definition: JsonObject): string => canonicalJson(definition));

/** What differs from the pins, in the order of the server; what is gone comes last. Nothing if the server has no pin. */
export function deviationsOf(server: string, offer: Offer, pinned: PinnedServer | undefined): readonly Deviation[] {
  if (pinned === undefined || offer === EMPTY_OFFER) return [];
  return compared(offer, pinned, server);
}

/** Remembered, because a catalog is built after every change of any server. */
const lastCompared = new WeakMap<Offer, { readonly pinned: PinnedServer; readonly found: readonly Deviation[] }>();

function compared(offer: Offer, pinned: PinnedServer, server: string): readonly Deviation[] {
  const last = lastCompared.get(offer);
  if (last?.pinned === pinned) return last.found;
  const found = compare(offer, pinned, server);
  lastCompared.set(offer, { pinned, found });
  return found;
}

function compare({ items, instructions }: Offer, pinned: PinnedServer, server: string): readonly Deviation[] {
  const found: Deviation[] = [];
  if (instructions !== pinned.instructions) found.push(judgedInstructions(server, pinned, instructions));
  for (const item of items) {
    const { kind, name } = item;
    const before = ownValue(pinned.items[kind], name);
    const after = definitionIn(item);
    if (before !== undefined && canonicalOf(before) === canonicalOf(after)) continue;
    const judged = before === undefined ? judgedNew(after) : judge(before, after);
    found.push({ server, kind, name, before: before ?? null, after, ...judged });
  }
  for (const kind of KINDS) {
    const now = new Set(items.flatMap((item) => (item.kind === kind ? item.name : [])));
    for (const [name, before] of Object.entries(pinned.items[kind]))
      if (!now.has(name))
        found.push({
          server,
          kind,
          name,
          verdict: 'gone',
          reasons: ['the server no longer has it'],
          before,
          after: null,
        });
  }
  return found;
}

/** A server may call a tool `constructor`. */
function ownValue<Value>(record: Readonly<Record<string, Value>>, key: string): Value | undefined {
  return Object.hasOwn(record, key) ? record[key] : undefined;
}

type Judgement = Pick<Deviation, 'verdict' | 'reasons'>;

function judgedNew(after: JsonObject): Judgement {
  const found = newFindings(null, after);
  return found.length > 0
    ? { verdict: 'suspicious', reasons: ['it is new', ...found.map((what) => `it ${what}`)] }
    : { verdict: 'new', reasons: ['it is new'] };
}

function judgedInstructions(server: string, pinned: PinnedServer, after: string): Deviation {
  const { instructions: before } = pinned;
  const known = findings(before);
  const found = findings(after).filter((what) => !known.includes(what));
  // They are nothing but orders to the model, so a change of them is suspicious in any case.
  const isOrdinary = found.length === 0 && (after === '' || pinned === NO_PIN);
  const verdict = !isOrdinary ? 'suspicious' : after === '' ? 'compatible' : 'new';
  const what = after === '' ? 'there are none any more' : before === '' ? 'they are new' : 'they changed';
  const reasons = [what, ...found.map((one) => `it ${one}`)];
  return { server, kind: 'instructions', name: '', verdict, reasons, before, after };
}

/** What changed between two definitions of one item, and how bad it is. */
export function judge(before: JsonObject, after: JsonObject): Judgement {
  const suspicious = [...newFindings(before, after).map((what) => `it ${what}`), ...widened(before, after)];
  const breaking = broken(before, after);
  const fields = [...new Set([...Object.keys(before), ...Object.keys(after)])]
    .filter((field) => canonicalJson(before[field]) !== canonicalJson(after[field]))
    .sort();
  const reasons = [...suspicious, ...breaking, `changed: ${fields.join(', ')}`];
  return { verdict: suspicious.length > 0 ? 'suspicious' : breaking.length > 0 ? 'breaking' : 'compatible', reasons };
}

/** What is suspicious in the texts of a definition and was not before. */
function newFindings(before: JsonObject | null, after: JsonObject): string[] {
  const known = new Set(before === null ? [] : [...textsIn(before)].flatMap(findings));
  const old = new Set(before === null ? [] : textsIn(before));
  const texts = [...textsIn(after)].filter((text) => !old.has(text));
  return [...new Set(texts.flatMap(findings))].filter((what) => !known.has(what));
}

/** All strings, names of members included: a model reads those, too. */
function* textsIn(value: unknown): Generator<string> {
  if (typeof value === 'string') yield value;
  else if (Array.isArray(value)) for (const one of value) yield* textsIn(one);
  else if (isObject(value))
    for (const [key, one] of Object.entries(value)) {
      yield key;
      yield* textsIn(one);
    }
}

/** Limits of a JSON Schema. Without one, or with a wider one, more is accepted. */
const LOWER = ['minimum', 'exclusiveMinimum', 'minLength', 'minItems', 'minProperties'] as const;
const UPPER = ['maximum', 'exclusiveMaximum', 'maxLength', 'maxItems', 'maxProperties'] as const;
const EXACT = ['pattern', 'format', 'const', 'multipleOf', 'not'] as const;

/** In what respects the tool now accepts more, or claims to do less harm than before. */
function widened(before: JsonObject, after: JsonObject): string[] {
  const found: string[] = [];
  compareSchemas(
    before.inputSchema,
    after.inputSchema,
    'the arguments',
    (what) => found.push(what),
    () => {},
  );
  const [was, is] = [toObject(before.annotations), toObject(after.annotations)];
  for (const [hint, safe] of [
    ['readOnlyHint', true],
    ['destructiveHint', false],
    ['openWorldHint', false],
  ] as const) {
    if (was[hint] === safe && is[hint] !== safe) found.push(`it no longer says ${hint}: ${safe}`);
    else if (was[hint] !== safe && is[hint] === safe) found.push(`it now says ${hint}: ${safe}`);
  }
  return found;
}

/** In what respects a call that was right before may now be wrong. */
function broken(before: JsonObject, after: JsonObject): string[] {
  const found: string[] = [];
  const add = (what: string) => void found.push(what);
  compareSchemas(before.inputSchema, after.inputSchema, 'the arguments', () => {}, add);
  compareResults(before.outputSchema, after.outputSchema, 'the result', add);
  const argumentsOf = ({ arguments: list }: JsonObject) => (Array.isArray(list) ? list.map(toObject) : []);
  const known = new Map(argumentsOf(before).map((one) => [one.name, one]));
  for (const one of argumentsOf(after))
    if (one.required === true && known.get(one.name)?.required !== true)
      add(`the argument "${String(one.name)}" is now required`);
  for (const name of known.keys())
    if (!argumentsOf(after).some((one) => one.name === name)) add(`the argument "${String(name)}" is gone`);
  if (before.mimeType !== after.mimeType && before.mimeType !== undefined) add('it has another MIME type');
  return found;
}

const DEEPEST = 32;

/** Reports where `after` accepts more than `before`, and where it accepts less. */
function compareSchemas(
  before: unknown,
  after: unknown,
  where: string,
  wider: (what: string) => void,
  narrower: (what: string) => void,
  depth = 0,
): void {
  if (depth > DEEPEST || canonicalJson(before ?? null) === canonicalJson(after ?? null)) return;
  const [was, is] = [toObject(before), toObject(after)];
  const [types, newTypes] = [typesOf(was), typesOf(is)];
  if (types !== null && (newTypes === null || newTypes.some((type) => !types.includes(type))))
    wider(`${where}: another type is accepted`);
  if (
    newTypes !== null &&
    (types === null ? Object.keys(was).length > 0 : types.some((type) => !newTypes.includes(type)))
  )
    narrower(`${where}: a type is no longer accepted`);
  const [values, newValues] = [was.enum, is.enum];
  if (Array.isArray(values)) {
    const isIn = (list: unknown, value: unknown) =>
      !Array.isArray(list) || list.some((one) => canonicalJson(one) === canonicalJson(value));
    if (!Array.isArray(newValues) || newValues.some((value) => !isIn(values, value)))
      wider(`${where}: further values are accepted`);
    if (values.some((value) => !isIn(newValues, value))) narrower(`${where}: a value is no longer accepted`);
  } else if (Array.isArray(newValues)) narrower(`${where}: only certain values are accepted`);
  compareLimits(was, is, where, wider, narrower);
  if (was.additionalProperties === false && is.additionalProperties !== false)
    wider(`${where}: properties that it does not name are accepted`);
  if (was.additionalProperties !== false && is.additionalProperties === false)
    narrower(`${where}: properties that it does not name are no longer accepted`);
  const [required, newRequired] = [was.required, is.required].map((list) =>
    Array.isArray(list) ? list.map(String) : [],
  );
  for (const name of newRequired!) if (!required!.includes(name)) narrower(`${where}: "${name}" is now required`);
  const [properties, newProperties] = [toObject(was.properties), toObject(is.properties)];
  for (const name of Object.keys(properties)) {
    const now = ownValue(newProperties, name);
    if (now === undefined) narrower(`${where}: "${name}" is gone`);
    else compareSchemas(properties[name], now, `${where}: "${name}"`, wider, narrower, depth + 1);
  }
  if (was.items !== undefined || is.items !== undefined)
    compareSchemas(was.items, is.items, `${where}: the items`, wider, narrower, depth + 1);
  for (const word of ['anyOf', 'oneOf', 'allOf', '$ref', '$defs', 'definitions'] as const)
    if (canonicalJson(was[word] ?? null) !== canonicalJson(is[word] ?? null)) {
      wider(`${where}: "${word}" changed`);
      narrower(`${where}: "${word}" changed`);
    }
}

/** A result is read, not written: what a caller relies on must still be there, and be what it was. */
function compareResults(before: unknown, after: unknown, where: string, add: (what: string) => void, depth = 0): void {
  if (before === undefined || depth > DEEPEST || canonicalJson(before) === canonicalJson(after ?? null)) return;
  if (after === undefined) {
    add(`${where} is no longer described`);
    return;
  }
  const [was, is] = [toObject(before), toObject(after)];
  const [types, newTypes] = [typesOf(was), typesOf(is)];
  if (types !== null && (newTypes === null || newTypes.some((type) => !types.includes(type))))
    add(`${where} may have another type`);
  const names = (list: unknown) => (Array.isArray(list) ? list.map(String) : []);
  for (const name of names(was.required))
    if (!names(is.required).includes(name)) add(`${where}: "${name}" may be missing`);
  const [properties, newProperties] = [toObject(was.properties), toObject(is.properties)];
  for (const name of Object.keys(properties)) {
    const now = ownValue(newProperties, name);
    if (now === undefined) add(`${where}: "${name}" is gone`);
    else compareResults(properties[name], now, `${where}: "${name}"`, add, depth + 1);
  }
  compareResults(was.items, is.items, `${where}: the items`, add, depth + 1);
}

function compareLimits(
  was: JsonObject,
  is: JsonObject,
  where: string,
  wider: (what: string) => void,
  narrower: (what: string) => void,
): void {
  const compareNumbers = (word: string, isWider: (old: number, now: number) => boolean) => {
    const [old, now] = [was[word], is[word]];
    if (old === now) return;
    const isLess = typeof now === 'number' && (typeof old !== 'number' || !isWider(old, now));
    if (isLess) narrower(`${where}: "${word}" is stricter`);
    else wider(`${where}: "${word}" is less strict`);
  };
  for (const word of LOWER) compareNumbers(word, (old, now) => now < old);
  for (const word of UPPER) compareNumbers(word, (old, now) => now > old);
  for (const word of EXACT) {
    if (canonicalJson(was[word] ?? null) === canonicalJson(is[word] ?? null)) continue;
    if (was[word] !== undefined) wider(`${where}: "${word}" changed`);
    if (is[word] !== undefined) narrower(`${where}: "${word}" changed`);
  }
}

function typesOf({ type }: JsonObject): readonly string[] | null {
  if (typeof type === 'string') return [type];
  return Array.isArray(type) ? type.map(String) : null;
}

/**
 * The offer with everything as it was approved: what changed has its old definition and cannot be called, what is new is
 * left out. `found` are the deviations of this offer.
 */
function heldOffer(offer: Offer, pinned: PinnedServer, found: readonly Deviation[]): Offer {
  if (found.every(({ verdict }) => verdict === 'gone')) return offer;
  const last = lastHeld.get(offer);
  if (last?.pinned === pinned) return last.held;
  const changed = new Map(found.map((one) => [`${one.kind} ${one.name}`, one]));
  const items = offer.items.flatMap((item): Item[] => {
    const deviation = changed.get(`${item.kind} ${item.name}`);
    if (deviation === undefined) return [item];
    return deviation.before === null ? [] : [heldItem(item.kind, deviation)];
  });
  const held = { ...offer, items, instructions: pinned.instructions };
  lastHeld.set(offer, { pinned, held });
  return held;
}

const lastHeld = new WeakMap<Offer, { readonly pinned: PinnedServer; readonly held: Offer }>();

function heldItem(kind: Kind, { server, name, before, verdict }: Deviation): Item {
  const [item] = readItems(kind, toBytes({ [kindWords[kind].list]: [before] })).items;
  const text = `The definition of ${kind} "${name}" of server "${server}" has changed since it was approved (${verdict}), so it is held. The operator can look at the change and approve it: toolgate lock diff, toolgate lock approve.`;
  return { ...item!, held: text };
}

/** An offer as callers get it, with what the operator should know about it. */
export function pinnedOffer(
  server: string,
  offer: Offer,
  { mode, servers }: { readonly mode: 'warn' | 'hold' | 'off'; readonly servers: Pins },
): Offer {
  const pinned = mode === 'off' ? undefined : ownValue(servers, server);
  const found = deviationsOf(server, offer, pinned);
  const isHeld = mode === 'hold';
  const problems = [...hiddenIn(offer), ...deviationTexts(found, isHeld)];
  if (problems.length === 0) return offer;
  const shown = pinned !== undefined && isHeld ? heldOffer(offer, pinned, found) : offer;
  return { ...shown, problems: [...offer.problems, ...problems] };
}

/** Invisible characters are reported with or without pins: one sentence for a server, however many items have some. */
const hiddenIn = memo(({ items, instructions }: Offer): string[] => {
  const found = items.flatMap((item) => {
    const hidden = hiddenInItem(item);
    return hidden === '' ? [] : `${item.kind} "${item.name}" (${hidden})`;
  });
  const own = hiddenCharacters(instructions).join(', ');
  const all = own === '' ? found : [`the instructions (${own})`, ...found];
  return all.length === 0 ? [] : [`invisible characters in ${shortened(all, (count) => `and ${count} more`)}`];
});

/** The first ones, and how many there are besides. */
function shortened(texts: readonly string[], rest: (count: number) => string): string {
  const shown = texts.slice(0, MOST_NAMED);
  return [...shown, ...(texts.length > MOST_NAMED ? [rest(texts.length - MOST_NAMED)] : [])].join(', ');
}

/** A server that changes everything must not flood the log. */
const MOST_NAMED = 5;

function deviationTexts(found: readonly Deviation[], isHeld: boolean): string[] {
  const shown = found.slice(0, MOST_NAMED).map((one) => deviationText(one, isHeld));
  const more = found.length - shown.length;
  return more === 0 ? shown : [...shown, `${more} more differences from tools.lock; to see them: toolgate lock status`];
}

/** A definition without escapes and with ASCII only has none. That is nearly every one, so it is looked at first. */
const hiddenInItem = memo((item: Item): string => {
  const text = item.bytes.toString();
  if (/^[\u0020-\u007e\t\n\r]*$/.test(text) && !/\\u/i.test(text)) return '';
  return [...new Set([...textsIn(definitionIn(item))].flatMap(hiddenCharacters))].join(', ');
});

function deviationText({ kind, name, verdict, reasons, before }: Deviation, isHeld: boolean): string {
  const what = kind === 'instructions' ? 'the instructions' : `${kind} "${name}"`;
  const held = !isHeld || verdict === 'gone' ? '' : before === null ? ', left out' : ', held';
  return `${what} ${kind === 'instructions' ? 'differ' : 'differs'} from tools.lock (${verdict}${held}): ${reasons.join('; ')}`;
}

/** The pins without those of these servers and items. */
export function withoutPins(
  pins: Pins,
  servers: readonly string[],
  items: readonly Pick<Deviation, 'server' | 'kind' | 'name'>[],
): Pins {
  const kept = Object.entries(pins).filter(([key]) => !servers.includes(key));
  return Object.fromEntries(
    kept.map(([key, pinned]) => {
      const isGone = (kind: Kind, name: string) =>
        items.some((one) => one.server === key && one.kind === kind && one.name === name);
      const lists = KINDS.map((kind) => [
        kind,
        Object.fromEntries(Object.entries(pinned.items[kind]).filter(([name]) => !isGone(kind, name))),
      ]);
      return [key, { ...pinned, items: Object.fromEntries(lists) as PinnedServer['items'] }];
    }),
  );
}
