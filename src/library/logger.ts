/** Logs the events of a server with toolsets. */
import { GatewayError, messageOf } from '../base/errors.ts';
import type { EventMap, EventName } from '../base/events.ts';
import type { Gateway } from '../gateway/gateway.ts';

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

/**
 * Logs every event. Without a choice of the program only what failed is written, as text to standard error: authors
 * must see their own errors. Returns a function that stops it.
 */
export function logEvents({ events, redact }: Gateway, logger: boolean | Logger | undefined): () => void {
  if (logger === false) return () => {};
  if (logger === undefined)
    return events.on('failure', ({ where, error }) => {
      process.stderr.write(`toolgate: ${redact(`${where}: ${stackOf(error)}`)}\n`);
    });
  const log = logger === true ? TO_STDERR : logger;
  return events.listen((name, event) => {
    const [level, message, fields] = (RECORDS[name] as ToRecord | undefined)?.(event, redact) ?? ['info', name, event];
    log[level]({ event: name, ...fields }, message);
  });
}

type LogRecord = readonly ['info' | 'warn' | 'error', string, object];
type ToRecord = (event: EventMap[EventName], redact: Gateway['redact']) => LogRecord;

/** Events that are not logged just by their name at the level info. */
const RECORDS: { readonly [K in EventName]?: (event: EventMap[K], redact: Gateway['redact']) => LogRecord } = {
  failure: ({ where, error }, redact) => [
    'error',
    redact(`${where}: ${messageOf(error)}`),
    { where, stack: redact(stackOf(error)) },
  ],
  note: ({ source, message }) => ['warn', `${source}: ${message}`, { source }],
  definition: (event) => ['warn', `${event.source}: a definition changed`, event],
  unauthorized: (event) => ['warn', 'unauthorized', event],
  forbidden: (event) => ['warn', 'forbidden', event],
  denied: (event) => ['warn', 'denied', event],
  sent_away: (event) => ['warn', 'request refused', event],
};

const MOST_CAUSES = 5;

/** The stacks of an error and its causes. The place of our own errors says nothing to the author of a program. */
function stackOf(error: unknown): string {
  const stacks: string[] = [];
  for (let one = error; one !== undefined && stacks.length < MOST_CAUSES; one = causeOf(one))
    stacks.push(one instanceof GatewayError ? one.message : ((one as Error | null)?.stack ?? messageOf(one)));
  return stacks.join('\n  caused by: ');
}

function causeOf(error: unknown): unknown {
  return (error as Error | null)?.cause;
}
