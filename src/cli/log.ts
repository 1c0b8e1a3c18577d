/** The log: what happens in the gateway, on standard error; JSON lines when nobody is watching a terminal. */
import type { EventMap, EventName, Gateway } from '../internal.ts';
import { GatewayError, logCalls } from '../internal.ts';
import { jsonText, paint, plain } from './terminal.ts';

const LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const;
export type LogLevel = (typeof LEVELS)[number];

export function readLogLevel(text: string): LogLevel {
  const level = LEVELS.find((one) => one === text);
  if (level === undefined)
    throw new GatewayError(
      'usage',
      `The log level (--log-level or LOG_LEVEL) is one of ${LEVELS.join(', ')}, not "${text}".`,
    );
  return level;
}

interface Line {
  readonly level: Exclude<LogLevel, 'silent'>;
  readonly source?: string;
  readonly message: string;
}

/** States of servers in which somebody has to do something. */
const WARNED: readonly string[] = ['down', 'crash_loop', 'locked'];

const marks = { debug: 'dim', info: 'cyan', warn: 'yellow', error: 'red' } as const;

export function startLog(gateway: Gateway, level: LogLevel): void {
  const least = LEVELS.indexOf(level);
  if (level === 'debug')
    gateway.use(logCalls((message) => write({ level: 'debug', message: gateway.redact(message) })));
  let known = new Set<string>();
  gateway.events.listen((name, event) => {
    let lines = toLines(name, event);
    if (name === 'catalog') {
      // A problem is told when it appears, not with every catalog that still has it.
      const now = new Set(lines.map((line) => `${line.source} ${line.message}`));
      lines = lines.filter((line) => !known.has(`${line.source} ${line.message}`));
      known = now;
    }
    for (const line of lines) if (LEVELS.indexOf(line.level) >= least) write(line);
  });
}

function toLines<K extends EventName>(name: K, event: EventMap[K]): Line[] {
  switch (name) {
    case 'source': {
      const { source, state, detail } = event as EventMap['source'];
      const level = WARNED.includes(state) ? 'warn' : state === 'up' ? 'info' : 'debug';
      return [{ level, source, message: detail === '' ? state : `${state}: ${detail}` }];
    }
    case 'note': {
      const { source, message } = event as EventMap['note'];
      return [{ level: 'warn', source, message }];
    }
    case 'catalog':
      return (event as EventMap['catalog']).problems.map(({ source, message }) => ({ level: 'warn', source, message }));
    case 'config': {
      const { ok, message } = event as EventMap['config'];
      return [{ level: ok ? 'info' : 'error', message: `configuration: ${message}` }];
    }
    case 'admin': {
      const { act, agent, detail } = event as EventMap['admin'];
      return [{ level: 'info', message: [act, agent, detail].filter((part) => part !== '').join(' ') }];
    }
    case 'approval': {
      const { id, state, agent, tool, by } = event as EventMap['approval'];
      const message =
        state === 'asked'
          ? `${agent} wants to use ${tool}: toolgate approvals approve ${id}, or deny`
          : `${tool} of ${agent} (${id}): ${state} by ${by}`;
      return [{ level: state === 'asked' ? 'warn' : 'info', message }];
    }
    case 'unauthorized': {
      const { reason, remote } = event as EventMap['unauthorized'];
      return [{ level: 'warn', message: `a client at ${remote} was refused: ${reason}` }];
    }
    case 'audit': {
      const { ok, message } = event as EventMap['audit'];
      return [{ level: ok ? 'info' : 'error', message: `the audit ${message}` }];
    }
    case 'cut': {
      const { bytes } = event as EventMap['cut'];
      return [{ level: 'warn', message: `a client was cut off: it left ${bytes} bytes unread (limits.unread)` }];
    }
    case 'sent_away':
      return [{ level: 'debug', message: `http: a request was sent away (${(event as EventMap['sent_away']).code})` }];
    case 'failure': {
      const { where, error } = event as EventMap['failure'];
      return [
        {
          level: 'error',
          message: `${where}: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`,
        },
      ];
    }
    default:
      return name satisfies never;
  }
}

function write(line: Line): void {
  if (process.stderr.isTTY === true) {
    const source = line.source === undefined ? '' : `${plain(line.source)}: `;
    process.stderr.write(
      `${paint(marks[line.level], line.level.padEnd(5), process.stderr)} ${source}${plain(line.message)}\n`,
    );
  } else {
    process.stderr.write(`${jsonText({ time: new Date().toISOString(), ...line })}\n`);
  }
}
