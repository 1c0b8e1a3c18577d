/** Reads what was given on the command line: verbs, names, durations, addresses. */
import { GatewayError } from '../base/errors.ts';
import { didYouMean } from '../base/text.ts';
import { toLifetime } from '../config/units.ts';
import type { RunCommand } from './options.ts';

/**
 * A command whose first argument is a verb, such as `toolgate agents add NAME`. The first verb of the table is the
 * default.
 */
export function withVerbs(command: string, verbs: Readonly<Record<string, RunCommand>>): RunCommand {
  const names = Object.keys(verbs);
  return async (args, options, io) => {
    const [verb = names[0]!, ...rest] = args;
    if (!Object.hasOwn(verbs, verb))
      throw new GatewayError(
        'usage',
        `toolgate ${command} has no "${verb}".${didYouMean(verb, names)} Choose from ${names.join(', ')}.`,
      );
    return verbs[verb]!(rest, options, io);
  };
}

/** The only argument of a command. `example` is the command with a valid one. */
export function onlyName(args: readonly string[], example: string): string {
  const [name = '', ...more] = args;
  if (name === '' || more.length > 0)
    throw new GatewayError('usage', `${example.slice(0, example.lastIndexOf(' '))} needs one name: ${example}`);
  return name;
}

/** Milliseconds; null if the option was not given. */
export function readDuration(option: string, text: string | undefined): number | null {
  if (text === undefined) return null;
  const duration = toLifetime(text);
  if (duration === null)
    throw new GatewayError('usage', `${option} is a time such as 90s, 5m, 12h or 30d, not "${text}".`);
  return duration;
}

export function readUrl(what: string, text: string): URL {
  if (!URL.canParse(text) || !/^https?:$/.test(new URL(text).protocol))
    throw new GatewayError('usage', `${what} is an address such as http://127.0.0.1:8808, not "${text}".`);
  return new URL(text);
}

export function readPort(text: string): number {
  const port = Number(text);
  if (!/^\d{1,5}$/.test(text) || port > 65_535)
    throw new GatewayError('usage', `--port is a number from 0 to 65535, not "${text}".`);
  return port;
}
