/** The log: events of the gateway on stderr, as text on a terminal and as JSON lines otherwise. */

import { GatewayError } from '../base/errors.ts';
import type { EventMap, EventName } from '../base/events.ts';
import type { Gateway } from '../gateway/gateway.ts';
import { logCalls } from '../observe/log-calls.ts';
import type { CommandIo } from './command-io.ts';
import { jsonText, paint, plain } from './terminal.ts';

const LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const;
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

interface LogLine {
  readonly level: Exclude<Verbosity, 'silent'>;
  readonly source?: string;
  readonly message: string;
}

/** Lines that are shown although the usual level is `warn`: who edits a file wants to see that it was taken. */
function isWanted({ level, message }: LogLine, least: number): boolean {
  const isEdit = level === 'info' && message.startsWith(APPLIED);
  return LEVELS.indexOf(isEdit ? 'warn' : level) >= least;
}

const APPLIED = 'configuration: applied';

/** The server states that need attention. */
const WARNED: readonly string[] = ['down', 'crash_loop', 'locked', 'broken'];

const marks = { debug: 'dim', info: 'cyan', warn: 'yellow', error: 'red' } as const;

export function startLog(gateway: Gateway, level: Verbosity, io: CommandIo): void {
  const least = LEVELS.indexOf(level);
  if (level === 'debug')
    gateway.use(logCalls((message) => writeLog({ level: 'debug', message: gateway.redact(message) }, io)));
  let known = new Set<string>();
  /** What was last logged of each server. */
  const last = new Map<string, string>();
  gateway.events.listen((name, event) => {
    let lines = LINES[name](event);
    if (name === 'catalog') {
      // A problem is logged when it appears, not with every catalog that still has it.
      const now = new Set(lines.map((line) => `${line.source} ${line.message}`));
      lines = lines.filter((line) => !known.has(`${line.source} ${line.message}`));
      known = now;
    }
    // A server that cannot be started is tried again and again. Until something else happens, that is only for debugging.
    if (name === 'source') {
      const { source, state, detail } = event as EventMap['source'];
      const text = `${state} ${detail}`;
      if (last.get(source) === text) lines = lines.map((line) => ({ ...line, level: 'debug' }));
      last.set(source, text);
    }
    for (const line of lines) if (isWanted(line, least)) writeLog(line, io);
  });
}

const LINES: { readonly [K in EventName]: (event: EventMap[K]) => LogLine[] } = {
  source({ source, state, detail }) {
    // A start that takes its time says what it is doing.
    const isNews = state === 'up' || (state === 'starting' && detail !== '');
    const level = WARNED.includes(state) ? 'warn' : isNews ? 'info' : 'debug';
    return [{ level, source, message: detail === '' ? state : `${state}: ${detail}` }];
  },
  note: ({ source, message }) => [{ level: 'warn', source, message }],
  catalog: ({ problems }) => problems.map(({ source, message }) => ({ level: 'warn', source, message })),
  config: ({ ok, message }) => [{ level: ok ? 'info' : 'error', message: `configuration: ${message}` }],
  admin: ({ act, agent, detail }) => [
    { level: 'info', message: [act, agent, detail].filter((part) => part !== '').join(' ') },
  ],
  approval({ id, state, agent, tool, by }) {
    const message =
      state === 'asked'
        ? `${agent} wants to use ${tool}: toolgate approvals approve ${id}, or deny`
        : `${tool} of ${agent} (${id}): ${state} by ${by}`;
    return [{ level: state === 'asked' ? 'warn' : 'info', message }];
  },
  unauthorized: ({ reason, remote }) => [{ level: 'warn', message: `a client at ${remote} was refused: ${reason}` }],
  audit: ({ ok, message }) => [{ level: ok ? 'info' : 'error', message: `the audit ${message}` }],
  cut: ({ bytes }) => [
    { level: 'warn', message: `a client was cut off: it left ${bytes} bytes unread (limits.unread)` },
  ],
  sent_away: ({ code }) => [{ level: 'debug', message: `http: a request was refused (${code})` }],
  failure: ({ where, error }) => [
    {
      level: 'error',
      message: `${where}: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`,
    },
  ],
};

export function writeLog(line: LogLine, io: CommandIo): void {
  if (io.stderr.isTTY === true) {
    const source = line.source === undefined ? '' : `${plain(line.source)}: `;
    io.stderr.write(
      `${paint(marks[line.level], line.level.padEnd(5), io, 'stderr')} ${source}${plain(line.message)}\n`,
    );
  } else {
    io.stderr.write(`${jsonText({ time: new Date().toISOString(), ...line })}\n`);
  }
}
