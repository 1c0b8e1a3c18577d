/** What happens in a server with toolsets, for those who want it written down. */
import { messageOf } from '../base/errors.ts';
import type { EventMap, EventName, Events } from '../base/events.ts';

/** As pino, winston, Fastify and the console have it. */
export interface Logger {
  info(fields: object, message?: string): void;
  warn(fields: object, message?: string): void;
  error(fields: object, message?: string): void;
}

/** Lines of JSON; standard output belongs to the protocol. */
const TO_STDERR: Logger = { info: line('info'), warn: line('warn'), error: line('error') };

function line(level: string) {
  return (fields: object, message = '') => {
    const record = { time: new Date().toISOString(), level, message, ...fields };
    process.stderr.write(`${JSON.stringify(record)}\n`);
  };
}

export function follow(events: Events, logger: boolean | Logger): () => void {
  if (logger === false) return () => {};
  const log = logger === true ? TO_STDERR : logger;
  return events.listen((name, event) => {
    const [level, message, fields] = WORDS[name]?.(event) ?? ['info', name, event];
    log[level]({ event: name, ...fields }, message);
  });
}

type Words = readonly ['info' | 'warn' | 'error', string, object];

/** Events that need more than their name at level info. */
const WORDS: { readonly [K in EventName]?: (event: EventMap[K]) => Words } = {
  failure: ({ where, error }) => ['error', `${where}: ${messageOf(error)}`, { where }],
  note: ({ source, message }) => ['warn', `${source}: ${message}`, { source }],
  unauthorized: (event) => ['warn', 'unauthorized', event],
  sent_away: (event) => ['warn', 'sent away', event],
};
