/** Finds the entry that a caller names, or throws an error that says how to continue. */
import { type ErrorCode, GatewayError } from '../base/errors.ts';
import { didYouMean } from '../base/text.ts';
import { nameIn, type StartingSource } from '../catalog/catalog.ts';
import type { Entry } from '../catalog/entry.ts';
import type { Kind } from '../catalog/item.ts';
import { startingText, startingWith } from '../catalog/starting.ts';
import { literalLength, matchesTemplate } from '../catalog/template.ts';
import { aliased } from './alias.ts';
import { permits } from './permission.ts';
import type { View } from './view.ts';

export interface FoundResource {
  readonly entry: Entry;
  /** The server's own name or URI, as JSON with one character per byte. */
  readonly upstreamName: string;
}

export function findTool(view: View, name: string): Entry {
  return view.entries.tool.get(name) ?? findControl(view, name) ?? findAliased(view, 'tool', name);
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
  const meant = (isName ? [] : aliased(catalog, kind, alias))
    .map((entry) => nameIn(catalog, entry))
    .filter((name) => catalog.entries[kind].has(name));
  const active = meant.filter((name) => entries[kind].has(name));
  const [name, ...more] = active.length > 0 ? active : meant;
  if (more.length > 0) throw ambiguous(kind, alias, [name!, ...more]);
  if (active.length === 0) throw missing(view, kind, alias, name);
  return entries[kind].get(name!)!;
}

function ambiguous(kind: Kind, alias: string, meant: readonly string[]): GatewayError {
  const names = meant.map((name) => `"${name}"`).join(', ');
  return new GatewayError('item_unknown', `Several ${kind}s are called "${alias}". Use one of these names: ${names}.`);
}

/**
 * A resource by its exposed URI, by a URI expanded from an exposed template, or by the server's own URI if exactly one
 * visible server has it. Results contain such URIs, because results are not changed.
 */
export function findResource(view: View, uri: string): FoundResource {
  const exact = view.entries.resource.get(uri);
  if (exact !== undefined) return { entry: exact, upstreamName: exact.upstreamName };
  if (view.catalog.entries.resource.has(uri)) throw missing(view, 'resource', uri);

  const template = bestTemplate(view, uri);
  if (template !== null) {
    const [name, entry] = template;
    return { entry, upstreamName: jsonText(withoutPrefix(name, entry, uri)) };
  }

  const bare = bareOwners(view, uri);
  if (bare.length === 1) return { entry: bare[0]!, upstreamName: jsonText(uri) };
  if (bare.length > 1) {
    const names = bare.map((entry) => `"${nameIn(view.catalog, entry)}"`).join(', ');
    throw new GatewayError('params_invalid', `Several servers have "${uri}". Read one of these instead: ${names}.`);
  }
  throw missing(view, 'resource', uri);
}

/**
 * Whether the resource must stay unknown to the caller: its view has no resource of that name, not even an inactive
 * one.
 */
export function isHidden(view: View, uri: string): boolean {
  if (view.permission === null) return false;
  try {
    findResource(view, uri);
    return false;
  } catch (error) {
    return error instanceof GatewayError && error.code === 'resource_unknown';
  }
}

function jsonText(uri: string): string {
  return Buffer.from(JSON.stringify(uri)).toString('latin1');
}

/** `name` is the caller's name for the template. */
function withoutPrefix(name: string, template: Entry, uri: string): string {
  return uri.slice(name.length - template.item.name.length);
}

function bestTemplate(view: View, uri: string): readonly [string, Entry] | null {
  let best: readonly [string, Entry] | null = null;
  for (const [name, entry] of view.entries.template) {
    if (!matchesTemplate(name, uri) || isClosed(view, entry, withoutPrefix(name, entry, uri))) continue;
    if (best === null || literalLength(name) > literalLength(best[0])) best = [name, entry];
  }
  return best;
}

function isClosed({ catalog }: View, template: Entry, uri: string): boolean {
  return catalog.isClosed?.(template, uri) === true;
}

// One entry per server: an exact resource wins over a template of the same server.
function bareOwners(view: View, uri: string): Entry[] {
  const owners = new Map<number, Entry>();
  for (const entry of view.entries.template.values()) {
    if (matchesTemplate(entry.item.name, uri) && !isClosed(view, entry, uri)) owners.set(entry.sourceId, entry);
  }
  const inactive = new Set<number>();
  for (const [name, entry] of view.catalog.entries.resource) {
    if (entry.item.name !== uri) continue;
    if (view.entries.resource.has(name)) owners.set(entry.sourceId, entry);
    else inactive.add(entry.sourceId);
  }
  // A resource that was switched off by name stays off, even if an active template matches it.
  return [...owners.values()].filter((entry) => !inactive.has(entry.sourceId));
}

/** The error for a name that is not in the caller's view: how to activate it, or which names are similar. */
function missing(view: View, kind: Kind, name: string, meant: string = name): GatewayError {
  const inactive = inactiveName(view, kind, meant);
  if (inactive !== null) {
    const advice = view.controls.advice(kind, inactive);
    return new GatewayError('item_inactive', `The ${kind} "${name}" is not active. ${advice}`);
  }
  const code: ErrorCode = kind === 'resource' ? 'resource_unknown' : 'item_unknown';
  const starting = startingWith(view.catalog, name);
  if (starting.length > 0) return notYet(code, kind, name, starting);
  const known = [view.entries[kind], view.catalog.entries[kind]].flatMap((entries) => [...entries.keys()]);
  const templates = kind === 'resource' ? [...view.catalog.entries.template.keys()] : [];
  const hint = view.controls.hint?.(kind, name) || didYouMean(name, new Set([...known, ...templates]));
  const text = `There is no ${kind} "${name}".${hint || ` List the ${kind}s to see their names.`}`;
  return new GatewayError(code, text, kind === 'resource' ? { details: { uri: name } } : undefined);
}

/** No other name is suggested: this one may be right in a moment. */
function notYet(code: ErrorCode, kind: Kind, name: string, starting: readonly StartingSource[]): GatewayError {
  const details = { starting: starting.map(({ key }) => key), ...(kind === 'resource' && { uri: name }) };
  const text = `There is no ${kind} "${name}" yet: ${startingText(starting)}.`;
  return new GatewayError(code, text, { details });
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
  if (matchesTemplate(name, uri)) return !isClosed(view, template, withoutPrefix(name, template, uri));
  return matchesTemplate(template.item.name, uri) && !isClosed(view, template, uri);
}
