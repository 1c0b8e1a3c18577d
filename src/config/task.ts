/** A task as it is given: in a file, in a URL, in a header, or in code. */
import { basename, extname, resolve } from 'node:path';
import { type ErrorCode, GatewayError } from '../base/errors.ts';
import { isObject } from '../base/objects.ts';
import { didYouMean, quotedList } from '../base/text.ts';
import { parseConfig, readConfigText } from './parse.ts';

/** What an agent is going to work on. Parts that are not given are empty. */
export interface Task {
  /** The service that it is about. */
  readonly service: string;
  /** What kind of service or work: `api`, `frontend`, `research`. */
  readonly type: string;
  readonly description: string;
  /** The profile that it begins with; empty if its type decides. */
  readonly profile: string;
}

const KEYS = ['service', 'type', 'description', 'profile'] as const;
const MAX_LENGTH = 100_000;

/** The task in a value; errors name `where` it was given. */
export function taskFromValue(value: unknown, where = 'The task', code: ErrorCode = 'usage'): Task {
  const fail = (problem: string) => new GatewayError(code, `${where} ${problem}`);
  if (!isObject(value)) throw fail(`is not a map. It has ${quotedList(KEYS, 'and')}, each a text.`);
  for (const [key, given] of Object.entries(value)) {
    if (!(KEYS as readonly string[]).includes(key))
      throw fail(`has an unknown key "${key}".${didYouMean(key, KEYS) || ` It may have ${KEYS.join(', ')}.`}`);
    if (typeof given !== 'string') throw fail(`has a "${key}" that is not a text.`);
    if (given.length > MAX_LENGTH) throw fail(`has a "${key}" of more than ${MAX_LENGTH} characters.`);
  }
  const text = (key: (typeof KEYS)[number]) => String(value[key] ?? '').trim();
  const task = {
    service: text('service'),
    type: text('type'),
    description: text('description'),
    profile: text('profile'),
  };
  if (KEYS.every((key) => task[key] === ''))
    throw fail('says nothing. Give at least one of service, type, description and profile.');
  return task;
}

/**
 * The tasks that a credential is bound to: one or a list, each a description or a map of its parts. Null if there are
 * none.
 */
export function tasksFromValue(value: unknown, where: string, code: ErrorCode = 'usage'): Task[] | null {
  if (value === undefined || value === null) return null;
  const all: readonly unknown[] = Array.isArray(value) ? value : [value];
  if (all.length === 0) throw new GatewayError(code, `${where} is an empty list. Name a task, or leave it out.`);
  return all.map((one) => taskFromValue(typeof one === 'string' ? { description: one } : one, where, code));
}

/** The task in a URL or a header: a JSON object, or else a description. */
export function taskFromText(text: string, where: string): Task {
  const trimmed = text.trim();
  if (!trimmed.startsWith('{')) return taskFromValue({ description: trimmed }, where, 'request_invalid');
  let value: unknown;
  try {
    value = JSON.parse(trimmed);
  } catch {
    throw new GatewayError('request_invalid', `${where} begins with a brace but is not valid JSON.`);
  }
  return taskFromValue(value, where, 'request_invalid');
}

/** The task in a file: TOML, YAML or JSON with its parts, or a text that describes it. */
export async function loadTask(path: string, cwd: string): Promise<Task> {
  const file = resolve(cwd, path);
  const text = await readConfigText(file, path);
  if (['.md', '.txt', ''].includes(extname(basename(file)).toLowerCase()))
    return taskFromValue({ description: text }, path, 'config_invalid');
  const { value } = await parseConfig(text, path);
  return taskFromValue(value, path, 'config_invalid');
}
