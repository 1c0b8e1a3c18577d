/** Logs the events of a server with toolsets. */
import { messageOf } from '../base/errors.ts';
import type { EventMap, EventName, Events } from '../base/events.ts';

/** A logger. Those of pino, winston and Fastify fit, and so does the console. */
export interface Logger {
  info(fields: object, message?: string): void;
  warn(fields: object, message?: string): void;
  error(fields: object, message?: string): void;
}

/** Writes lines of JSON to standard error, because standard output belongs to the protocol. */
const TO_STDERR: Logger = { info: line('info'), warn: line('warn'), error: line('error') };

function line(level: string) {
  return (fields: object, message = '') => {
    const record = { time: new Date().toISOString(), level, message, ...fields };
    process.stderr.write(`${JSON.stringify(record)}\n`);
  };
}

/** Logs every event. Returns a function that stops it. */
export function logEvents(events: Events, logger: boolean | Logger): () => void {
  if (logger === false) return () => {};
  const log = logger === true ? TO_STDERR : logger;
  return events.listen((name, event) => {
    const [level, message, fields] = RECORDS[name]?.(event) ?? ['info', name, event];
    log[level]({ event: name, ...fields }, message);
  });
}

type LogRecord = readonly ['info' | 'warn' | 'error', string, object];

/** Events that are not logged just by their name at the level info. */
const RECORDS: { readonly [K in EventName]?: (event: EventMap[K]) => LogRecord } = {
  failure: ({ where, error }) => ['error', `${where}: ${messageOf(error)}`, { where }],
  note: ({ source, message }) => ['warn', `${source}: ${message}`, { source }],
  unauthorized: (event) => ['warn', 'unauthorized', event],
  sent_away: (event) => ['warn', 'request refused', event],
};
