/** Finds the entry that a caller names, or throws an error that says how to continue. */
import { type ErrorCode, GatewayError } from '../base/errors.ts';
import { didYouMean, shortened } from '../base/text.ts';
import { awayError, awayOwners, awayText, awayWith } from '../catalog/away.ts';
import { type AwaySource, nameIn } from '../catalog/catalog.ts';
import { BUILT_IN, type Entry } from '../catalog/entry.ts';
import type { Kind } from '../catalog/item.ts';
import { skillOf } from '../catalog/skills.ts';
import { hasScheme, LONGEST_URI, literalLength, matchesTemplate } from '../catalog/template.ts';
import { listedUri, readSchemeUri, type SchemeUri } from '../catalog/uris.ts';
import { aliased, byScheme } from './alias.ts';
import { patternOfServer } from './pattern-hint.ts';
import { permits } from './permission.ts';
import { isActive } from './selection.ts';
import type { View } from './view.ts';

export interface FoundResource {
  readonly entry: Entry;
  /** The server's own name or URI, as JSON with one character per byte. */
  readonly upstreamName: string;
}

export function findTool(view: View, name: string): Entry {
  return view.entries.tool.get(name) ?? findControl(view, name) ?? findAliased(view, 'tool', name);
}

/**
 * A tool that the caller may call without switching it on: an active one, and any that it could switch on itself.
 * `isFixed` says that it cannot switch anything.
 */
export function findThrough(view: View, name: string, isFixed: boolean): Entry {
  const { entries, controls, catalog } = view;
  const active = entries.tool.get(name) ?? findControl(view, name);
  if (active?.sourceId === BUILT_IN)
    throw new GatewayError('arguments_invalid', `"${name}" is a tool of Toolgate's own: call it directly.`);
  if (active !== undefined) return active;
  const all = { ...view, entries: { ...entries, tool: catalog.entries.tool } };
  return findTool(!isFixed && controls.switches?.(entries.tool) === true ? all : view, name);
}

function findControl({ controls, permission }: View, name: string): Entry | undefined {
  const control = controls.alias(name);
  return control !== undefined && permits(permission, control) ? control : undefined;
}

export function findPrompt(view: View, name: string): Entry {
  return view.entries.prompt.get(name) ?? findAliased(view, 'prompt', name);
}

function findAliased(view: View, kind: 'tool' | 'prompt', alias: string): Entry {
  const { catalog, entries } = view;
  // An exposed name means only its owner, even if that is inactive or unavailable.
  const isName = catalog.claims[kind].has(alias);
  const owners = (isName ? [] : aliased(catalog, kind, alias)).map((entry) => nameIn(catalog, entry));
  const meant = owners.filter((name) => catalog.entries[kind].has(name));
  const active = meant.filter((name) => entries[kind].has(name));
  const [name, ...more] = active.length > 0 ? active : meant;
  if (more.length > 0) throw ambiguous(kind, alias, [name!, ...more]);
  if (active.length === 0) throw missing(view, kind, alias, name ?? owners[0]);
  return entries[kind].get(name!)!;
}

function ambiguous(kind: Kind, alias: string, meant: readonly string[]): GatewayError {
  const names = meant.map((name) => `"${name}"`).join(', ');
  const text = `Several ${kind}s are called "${shortened(alias)}". Use one of these names: ${names}.`;
  return new GatewayError('item_unknown', text);
}

/**
 * A resource by its exposed URI in either style, by a URI expanded from an exposed template, or by the server's own URI.
 * Results contain such URIs, because results are not changed. `namedBy` is the source whose result had this one, if that
 * is known: no other server can take it over.
 */
export function findResource(view: View, uri: string, namedBy?: number): FoundResource {
  const exact = view.entries.resource.get(uri);
  if (exact !== undefined) return { entry: exact, upstreamName: exact.upstreamName };
  if (view.catalog.entries.resource.has(uri)) throw missing(view, 'resource', uri);

  const meant = byScheme(view.catalog, 'resource', uri);
  if (meant !== undefined) {
    const name = nameIn(view.catalog, meant);
    const entry = view.entries.resource.get(name);
    if (entry === undefined) throw missing(view, 'resource', uri, name);
    return { entry, upstreamName: entry.upstreamName };
  }

  if (uri.length > LONGEST_URI) throw tooLong(uri);
  const expansion = bestExpansion(view, uri);
  if (expansion !== null) return { entry: expansion.template, upstreamName: jsonText(expansion.own.uri) };

  const bare = bareOwners(view, uri, namedBy);
  if (bare.length === 1) return { entry: bare[0]!, upstreamName: jsonText(uri) };
  if (bare.length > 1) {
    const names = bare.map((entry) => `"${listedUri(view, nameIn(view.catalog, entry), entry)}"`);
    const text = `Several servers have "${uri}". Read one of these instead: ${names.join(', ')}.`;
    throw new GatewayError('params_invalid', text);
  }
  throw missing(view, 'resource', uri);
}

function tooLong({ length }: string): GatewayError {
  const text = `The URI has ${length} characters. Only a listed resource may have more than ${LONGEST_URI}.`;
  return new GatewayError('too_large', text);
}

/** An active template by its exposed name in either style. */
export function findTemplate(view: View, name: string): Entry | undefined {
  const exact = view.entries.template.get(name);
  const meant = exact === undefined ? byScheme(view.catalog, 'template', name) : undefined;
  return meant === undefined ? exact : view.entries.template.get(nameIn(view.catalog, meant));
}

/**
 * Whether the resource must stay unknown to the caller: its view has no resource of that name, not even an inactive
 * one.
 */
export function isHidden(view: View, uri: string, namedBy?: number): boolean {
  if (view.permission === null) return false;
  try {
    findResource(view, uri, namedBy);
    return false;
  } catch (error) {
    return error instanceof GatewayError && error.code === 'resource_unknown';
  }
}

function jsonText(uri: string): string {
  return Buffer.from(JSON.stringify(uri)).toString('latin1');
}

/** A URI as the server of a template knows it. */
interface OwnUri {
  readonly uri: string;
  /** Whether the caller used the style `scheme`. */
  readonly isScheme: boolean;
}

/** Null if the URI does not come from the template. `name` is the caller's name for the template. */
function ownUri(name: string, { namespace, item }: Entry, uri: string, scheme: SchemeUri | null): OwnUri | null {
  if (matchesTemplate(name, uri)) return { uri: uri.slice(name.length - item.name.length), isScheme: false };
  if (scheme === null || scheme.namespace !== namespace || !matchesTemplate(item.name, scheme.written)) return null;
  return { uri: scheme.written, isScheme: true };
}

interface ExpandedTemplate {
  readonly template: Entry;
  readonly own: OwnUri;
  readonly literal: number;
}

/** The template with the most fixed text. Of two with the same amount, the one whose exposed name matches. */
function bestExpansion(view: View, uri: string): ExpandedTemplate | null {
  const scheme = readSchemeUri(uri);
  let best: ExpandedTemplate | null = null;
  for (const [name, template] of usableTemplates(view)) {
    const own = ownUri(name, template, uri, scheme);
    if (own === null || isClosed(view, template, own.uri)) continue;
    const found = { template, own, literal: literalLength(name) };
    if (best === null || isBetter(found, best)) best = found;
  }
  return best;
}

function isBetter(one: ExpandedTemplate, other: ExpandedTemplate): boolean {
  if (one.literal !== other.literal) return one.literal > other.literal;
  return other.own.isScheme && !one.own.isScheme;
}

function isClosed({ catalog }: View, template: Entry, uri: string): boolean {
  return catalog.isClosed?.(template, uri) === true;
}

/** The templates by name: those of the view, and those of which only some URIs are open. */
export function* usableTemplates({ entries, catalog, selection }: View): Generator<readonly [string, Entry]> {
  yield* entries.template;
  for (const entry of catalog.unlisted) if (isActive(selection, entry)) yield [nameIn(catalog, entry), entry];
}

/**
 * The entries that a server's own URI may mean, one per server: of the server whose result named it; or else of those
 * that list it; or else of those with a template for it. So a server cannot take over what another one named or lists.
 */
function bareOwners(view: View, uri: string, namedBy: number | undefined): Entry[] {
  const listing = new Map<number, Entry>();
  const inactive = new Set<number>();
  for (const [name, entry] of view.catalog.entries.resource) {
    if (entry.item.name !== uri) continue;
    if (view.entries.resource.has(name)) listing.set(entry.sourceId, entry);
    else inactive.add(entry.sourceId);
  }
  const making = new Map<number, Entry>();
  for (const [, entry] of usableTemplates(view)) {
    const { sourceId, item } = entry;
    // A resource that was switched off by name stays off, even if an active template matches it.
    if (inactive.has(sourceId) || !(sourceId === namedBy || hasScheme(item.name))) continue;
    if (!matchesTemplate(item.name, uri) || isClosed(view, entry, uri)) continue;
    // A skill is listed with its files, and many servers have one template for every skill that there could be.
    if (skillOf(item) !== null && !listing.has(sourceId)) listing.set(sourceId, entry);
    else making.set(sourceId, entry);
  }
  const named = namedBy === undefined ? undefined : (listing.get(namedBy) ?? making.get(namedBy));
  if (named !== undefined) return [named];
  return [...(listing.size > 0 ? listing : making).values()];
}

/** The error for a name that is not in the caller's view: how to activate it, or which names are similar. */
function missing(view: View, kind: Kind, name: string, meant: string = name): GatewayError {
  const inactive = inactiveName(view, kind, meant);
  if (inactive !== null) {
    const { resource, template } = view.catalog.entries;
    const entry = view.catalog.entries[kind].get(inactive) ?? resource.get(inactive) ?? template.get(inactive)!;
    const advice = view.controls.advice(kind, inactive, entry);
    return new GatewayError('item_inactive', `The ${kind} "${name}" is not active. ${advice}`);
  }
  const code: ErrorCode = kind === 'resource' ? 'resource_unknown' : 'item_unknown';
  const away = awaySources(view, kind, meant);
  if (away.length > 0) return notNow(code, kind, name, away);
  const hint = view.controls.hint?.(kind, name) || serverHint(view, name) || didYouMean(name, knownNames(view, kind));
  const text = `There is no ${kind} "${shownName(kind, name)}".${hint || ` List the ${kind}s to see their names.`}`;
  return new GatewayError(code, text, kind === 'resource' ? { details: { uri: name } } : undefined);
}

/** The sources that are not up and have this name, or may turn out to have it. */
function awaySources(view: View, kind: Kind, name: string): readonly AwaySource[] {
  const { catalog } = view;
  if (catalog.away.length === 0) return [];
  if (kind !== 'resource') return awayWith(catalog, [kind], name);
  // A URI may be the server's own, or come from a template.
  const { resource, template } = catalog.claims;
  const bare = [...resource].filter(
    ([known, entry]) => !catalog.entries.resource.has(known) && entry?.item.name === name,
  );
  const expanded = [...template].filter(
    ([known, entry]) =>
      entry !== null && !catalog.entries.template.has(known) && coversOpenly(view, known, entry, name),
  );
  const owners = awayOwners(
    catalog,
    [...bare, ...expanded].map(([, entry]) => entry),
  );
  return owners.length > 0 ? owners : awayWith(catalog, ['resource', 'template'], name);
}

/** For the name of a server in place of one of its tools. */
function serverHint({ catalog }: View, name: string): string {
  const pattern = patternOfServer(name, catalog);
  return pattern === null ? '' : ` It is the name of a server, whose items are called "${pattern}".`;
}

/** Names may have as many characters as a message. URIs are limited already, and are repeated as they are. */
const shownName = (kind: Kind, name: string) => (kind === 'resource' ? name : shortened(name));

/** No other name is suggested: this one may be right in a moment. */
function notNow(code: ErrorCode, kind: Kind, name: string, away: readonly AwaySource[]): GatewayError {
  const more = kind === 'resource' ? { uri: name } : {};
  if (away.every(({ isListed }) => isListed))
    return awayError(away, `There is no ${kind} "${shownName(kind, name)}" yet: ${awayText(away)}.`, code, more);
  return awayError(away, `The ${kind} "${shownName(kind, name)}" cannot be used now: ${awayText(away)}.`, null, more);
}

/** The names that a caller may have meant, as they are listed for it. */
function knownNames(view: View, kind: Kind): Set<string> {
  const { entries, catalog } = view;
  const known = [entries[kind], catalog.entries[kind], ...(kind === 'resource' ? [catalog.entries.template] : [])];
  const names = known.flatMap((all) => [...all].map(([name, entry]) => listedUri(view, name, entry)));
  return new Set(names.filter((name) => name !== null));
}

function inactiveName(view: View, kind: Kind, name: string): string | null {
  const { catalog } = view;
  if (catalog.entries[kind].has(name)) return name;
  if (kind !== 'resource') return null;
  const resources = [...catalog.entries.resource];
  const templates = [...catalog.entries.template].filter(([known]) => !view.entries.template.has(known));
  return (
    resources.find(([, entry]) => entry.item.name === name)?.[0] ??
    templates.find(([known, entry]) => coversOpenly(view, known, entry, name))?.[0] ??
    null
  );
}

function coversOpenly(view: View, name: string, template: Entry, uri: string): boolean {
  const own = ownUri(name, template, uri, readSchemeUri(uri))?.uri ?? uri;
  return (own !== uri || matchesTemplate(template.item.name, uri)) && !isClosed(view, template, own);
}
