/** Reads the arguments of control tools one by one, so that each error tells the model what to correct. */
import type { ToolReference } from '../access/toolset.ts';
import { GatewayError } from '../base/errors.ts';
import { isObject } from '../base/objects.ts';
import { shortened } from '../base/text.ts';
import { TOOLSET_NAME } from '../store/toolsets.ts';
import type { ControlContext } from './control.ts';

export type Arguments = Readonly<Record<string, unknown>>;

export function invalid(text: string): GatewayError {
  return new GatewayError('arguments_invalid', text);
}

/** How many texts of a caller an error repeats. */
const MOST_REPEATED = 50;

/** Texts of a caller, as an error repeats them. */
export function firstOf(texts: readonly string[], joint = ', '): string {
  const first = texts.slice(0, MOST_REPEATED).map((text) => shortened(text, 1_000));
  const more = texts.length - first.length;
  return first.join(joint) + (more > 0 ? `${joint}and ${more} more` : '');
}

/** The arguments as an object. Throws if it has any other keys. */
export function readArguments(args: unknown, known: readonly string[]): Arguments {
  if (args === undefined) return {};
  if (!isObject(args)) throw invalid('The arguments must be an object.');
  const extra = Object.keys(args).filter((key) => !known.includes(key));
  if (extra.length > 0) {
    const takes = known.length === 0 ? 'This tool takes none.' : `Known arguments: ${known.join(', ')}.`;
    throw invalid(`Unknown argument ${firstOf(extra)}. ${takes}`);
  }
  return args;
}

export function readText(args: Arguments, key: string, most: number): string {
  const value = args[key];
  if (typeof value !== 'string' || value === '' || value.length > most)
    throw invalid(`"${key}" must be a string of 1 to ${most} characters.`);
  return value;
}

export function readToolsetName(args: Arguments, key = 'name'): string {
  const name = args[key];
  if (typeof name !== 'string' || !TOOLSET_NAME.test(name))
    throw invalid(`"${key}" must have 2 to 50 lower-case letters, digits and hyphens.`);
  return name;
}

export function readFlag(args: Arguments, key: string): boolean {
  const value = args[key] ?? false;
  if (typeof value !== 'boolean') throw invalid(`"${key}" must be true or false.`);
  return value;
}

export function readList(args: Arguments, key: string, most: number): readonly unknown[] {
  const list = args[key];
  if (!Array.isArray(list) || list.length === 0 || list.length > most)
    throw invalid(`"${key}" must be a list of 1 to ${most} elements.`);
  return list;
}

/** A whole number, or undefined if it is absent. */
export function readNumber(args: Arguments, key: string, least: number): number | undefined {
  const value = args[key];
  if (value === undefined) return undefined;
  if (!Number.isInteger(value) || (value as number) < least)
    throw invalid(`"${key}" must be a whole number, at least ${least}.`);
  return value as number;
}

/** How much an answer says. The short form is enough to choose and to call tools. */
export function readDetail(args: Arguments): 'short' | 'full' {
  const detail = args.detail ?? 'short';
  if (detail !== 'short' && detail !== 'full') throw invalid('"detail" must be "short" or "full".');
  return detail;
}

/** A list of tool references. */
export function readReferences(args: Arguments, key: string): Partial<ToolReference>[] {
  return readList(args, key, 100).map((one, index) => readReference(one, `Tool ${index + 1} of "${key}"`));
}

/** A tool reference: by name or by `refId`. A string is a name. */
export function readReference(value: unknown, where: string): Partial<ToolReference> {
  if (typeof value === 'string') return { namespacedName: readText({ name: value }, 'name', 1_000) };
  if (!isObject(value)) throw invalid(`${where} must be an object such as {"namespacedName": "git.status"}.`);
  // Models copy what discover-all-tools says, which has a description.
  const given = readArguments(value, ['namespacedName', 'refId', 'description']);
  const { namespacedName, refId } = given;
  if ((namespacedName === undefined) === (refId === undefined))
    throw invalid(`${where} needs either "namespacedName" or "refId".`);
  if (namespacedName !== undefined) return { namespacedName: readText(given, 'namespacedName', 1_000) };
  return { refId: readText(given, 'refId', 1_000) };
}

/** Throws if the connection's toolset is fixed. Call it before anything is changed or saved. */
export function requireChoice({ isFixed }: ControlContext): void {
  if (isFixed)
    throw invalid('The URL of this connection fixes its toolset. Connect to /mcp without a toolset to choose one.');
}
