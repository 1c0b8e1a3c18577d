/** The log: events of the gateway on stderr, as text on a terminal and as JSON lines otherwise. */
import type { EventMap, EventName } from '../base/events.ts';
import type { Gateway } from '../gateway/gateway.ts';
import { logCalls } from '../observe/log-calls.ts';
import type { CommandIo } from './command-io.ts';
import { LEVELS, type Verbosity } from './log-level.ts';
import { jsonText, paint, plain } from './terminal.ts';

export interface LogLine {
  readonly level: Exclude<Verbosity, 'silent'>;
  readonly source?: string;
  readonly message: string;
  /** Whether it is shown although the usual level is `warn`, because somebody waits for it. */
  readonly isAwaited?: boolean;
}

function isWanted({ level, isAwaited = false }: LogLine, least: number): boolean {
  return LEVELS.indexOf(isAwaited && level === 'info' ? 'warn' : level) >= least;
}

/** The server states that need attention. */
const WARNED: readonly string[] = ['down', 'crash_loop', 'locked', 'broken', 'untrusted'];

/**
 * The first start of a package may take minutes. So one line says that its download has begun, or that its runner takes
 * long, and one says when it is over.
 */
const INSTALL = /^(installing|waiting for) .*\((\d+) s\)$/;
/** In seconds. */
const LONG_INSTALL = 10;

const marks = { debug: 'dim', info: 'cyan', warn: 'yellow', error: 'red' } as const;

export function startLog(gateway: Gateway, level: Verbosity, io: CommandIo): void {
  followLog(gateway, level, (line) => writeLog(line, io));
}

/** Writes a line for each event from now on. Returns the function that ends this. */
export function followLog(gateway: Gateway, level: Verbosity, write: (line: LogLine) => void): () => void {
  const least = LEVELS.indexOf(level);
  const stopCalls =
    level === 'debug'
      ? gateway.use(logCalls((message) => write({ level: 'debug', message: gateway.redact(message) })))
      : () => {};
  let known = new Set<string>();
  /** What was last logged of each server. */
  const last = new Map<string, string>();
  /** The servers of which a line said that their packages are being installed. */
  const installing = new Set<string>();
  const stopEvents = gateway.events.listen((name, event) => {
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
      const text = `${state} ${withoutNumbers(detail)}`;
      if (last.get(source) === text) lines = lines.map((line) => ({ ...line, level: 'debug' }));
      last.set(source, text);
      const [, what, seconds] = INSTALL.exec(detail) ?? [];
      const begins = what === 'installing' || Number(seconds) >= LONG_INSTALL;
      const isNews = what === undefined ? installing.delete(source) : begins && !installing.has(source);
      if (begins) installing.add(source);
      if (isNews) lines = lines.map((line) => ({ ...line, isAwaited: true }));
    }
    for (const line of lines) if (isWanted(line, least)) write(line);
  });
  return () => {
    stopCalls();
    stopEvents();
  };
}

/** What a log would have said so far about servers and names that need attention. */
export function problemLines(gateway: Gateway, level: Verbosity): LogLine[] {
  const lines = [
    ...gateway.statuses().flatMap(({ key, history, ...now }) => {
      // One that is tried again is still a problem.
      const failure = history.findLast(({ state }) => state === 'up' || WARNED.includes(state));
      const { state, detail } = now.state === 'starting' ? (failure ?? now) : now;
      return LINES.source({ source: key, state, detail });
    }),
    ...LINES.catalog(gateway.catalog),
    ...gateway.config.notices.flatMap((message) => LINES.note({ source: 'configuration', message })),
  ];
  return lines.filter((line) => line.level === 'warn' && isWanted(line, LEVELS.indexOf(level)));
}

/** What a server printed may have the time in it, so its numbers do not count. */
function withoutNumbers(detail: string): string {
  return detail.replace(/\(it said: .*/s, (said) => said.replace(/\d+/g, '0'));
}

const LINES: { readonly [K in EventName]: (event: EventMap[K]) => LogLine[] } = {
  source({ source, state, detail }) {
    // A start that takes its time says what it is doing.
    const isNews = state === 'up' || (state === 'starting' && detail !== '');
    const level = WARNED.includes(state) ? 'warn' : isNews ? 'info' : 'debug';
    return [{ level, source, message: detail === '' ? state : `${state}: ${detail}` }];
  },
  note: ({ source, message }) => [{ level: 'warn', source, message }],
  definition: ({ source, kind, name, fields }) => [
    {
      level: 'warn',
      source,
      message:
        name === ''
          ? 'its instructions changed'
          : `the definition of the ${kind} ${JSON.stringify(name)} changed: ${fields.join(', ')}`,
    },
  ],
  catalog: ({ problems }) => problems.map(({ source, message }) => ({ level: 'warn', source, message })),
  // Somebody who edits a file wants to see that it was taken.
  config: ({ ok, message }) => [
    { level: ok ? 'info' : 'error', message: `configuration: ${message}`, isAwaited: message.startsWith('applied') },
  ],
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
  forbidden: ({ rule, remote }) => [{ level: 'warn', message: `a client at ${remote} was refused: ${rule}` }],
  denied: ({ agent, name, namespace, method, detail, code }) => [
    { level: 'debug', message: `${agent} was denied ${name ?? namespace ?? ''} (${method || detail}): ${code}` },
  ],
  audit: ({ ok, message }) => [{ level: ok ? 'info' : 'error', message: `the audit ${message}` }],
  cut: ({ bytes }) => [
    { level: 'warn', message: `a client was cut off: it left ${bytes} bytes unread (limits.unread)` },
  ],
  sent_away: ({ code }) => [{ level: 'debug', message: `http: a request was refused (${code})` }],
  failure: ({ where, error }) => [
    {
      level: 'error',
      message: `${where}: ${traceOf(error)}`,
    },
  ],
};

/** The stack of an error, and of what caused it: an error that may be shown says nothing of that. */
function traceOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const own = error.stack ?? error.message;
  return error.cause === undefined ? own : `${own}\nCaused by: ${traceOf(error.cause)}`;
}

/** A line for programs. */
export function logText({ isAwaited: _, ...line }: LogLine): string {
  return jsonText({ time: new Date().toISOString(), ...line });
}

export function writeLog(line: LogLine, io: CommandIo): void {
  if (io.stderr.isTTY === true) {
    const source = line.source === undefined ? '' : `${plain(line.source)}: `;
    io.stderr.write(
      `${paint(marks[line.level], line.level.padEnd(5), io, 'stderr')} ${source}${plain(line.message)}\n`,
    );
  } else {
    io.stderr.write(`${logText(line)}\n`);
  }
}
