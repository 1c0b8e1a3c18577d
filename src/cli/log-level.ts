/** From which level on a command logs. */
import { GatewayError } from '../base/errors.ts';
import type { CommandIo } from './command-io.ts';
import type { Options } from './options.ts';

export const LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const;
export type Verbosity = (typeof LEVELS)[number];

export function readVerbosity(text: string): Verbosity {
  const level = LEVELS.find((one) => one === text);
  if (level === undefined)
    throw new GatewayError(
      'usage',
      `The log level (--log-level or LOG_LEVEL) is one of ${LEVELS.join(', ')}, not "${text}".`,
    );
  return level;
}

export function logLevel(options: Options, io: CommandIo, defaultLevel: string): Verbosity {
  return readVerbosity(options['log-level'] ?? levelOf(io.env.LOG_LEVEL) ?? defaultLevel);
}

/** Python programs write `warning`. */
function levelOf(variable: string | undefined): string | undefined {
  const level = variable?.toLowerCase();
  return level === 'warning' ? 'warn' : level || undefined;
}
