/** Servers as lines of a table: state, since when, why, and how often they were restarted. */
import { counted } from '../base/text.ts';
import { tokensText } from '../catalog/tokens.ts';
import type { ServerLine } from '../gateway/status.ts';
import type { ServerStatus } from '../sources/fleet.ts';
import { problemText } from '../sources/last-good.ts';
import type { CommandIo } from './command-io.ts';
import { brief, cell, columns, paint, plain, table } from './terminal.ts';

/** A status; the tools are known of a server in a running gateway. */
type ServerRow = ServerStatus & Partial<Pick<ServerLine, 'tools' | 'tokens'>>;

/**
 * One line for each server, and what a folder of tools that ended wrote last. `isWhole`: with the number of tools, and with
 * whole reasons.
 */
export function serverRows(statuses: readonly ServerRow[], io: CommandIo, isWhole = false): string {
  const rows = statuses.map((status) => [
    paint('bold', cell(status.key), io),
    status.isolation === undefined ? status.kind : `${status.kind} (${status.isolation})`,
    paint(status.present ? 'green' : 'red', status.state, io),
    `since ${timeText(status.since)}`,
    ...(isWhole ? [status.revision === null ? '' : `protocol ${status.revision}`] : []),
    ...(status.tools === undefined || !isWhole
      ? []
      : [`${counted(status.tools, 'tool')}, ${tokensText(status.tokens ?? 0)}`]),
    brief(
      `${status.detail}${loginOf(status)}${restartsOf(status)}`,
      isWhole ? Number.POSITIVE_INFINITY : columns(io) - 55,
    ),
  ]);
  const lines = table(rows).split('\n');
  return statuses
    .flatMap((status, i) => [lines[i]!, ...problemLines(status, io), ...lastErrors(status, io)])
    .join('\n');
}

/** What it cannot serve although it is up, such as tool files that did not load. */
function problemLines({ problems }: ServerRow, io: CommandIo): string[] {
  return problems.map((problem) => `    ${paint('yellow', '!', io)} ${plain(problemText(problem))}`);
}

/** The last lines that a folder of tools wrote to its standard error before it ended. */
function lastErrors({ kind, state, stderr }: ServerRow, io: CommandIo): string[] {
  if (kind !== 'folder' || (state !== 'crash_loop' && state !== 'down') || stderr === '') return [];
  const lines = plain(stderr.trimEnd()).split('\n').slice(-5);
  return lines.map((line) => paint('dim', `    ${line}`, io));
}

/** The time of day; with the date if that is not today. */
export function timeText(time: string): string {
  const [day, clock] = new Date(time).toLocaleString('sv-SE').split(' ');
  return day === new Date().toLocaleDateString('sv-SE') ? clock! : `${day} ${clock}`;
}

function loginOf({ login, agentLogins, detail }: ServerRow): string {
  const texts = [...(login === undefined ? [] : [loginText(login)]), ...agentsText(agentLogins)];
  return texts.length === 0 ? '' : `${detail === '' ? '' : ', '}${texts.join('; ')}`;
}

/** How many agents are named. `--json` names all. */
const MOST_AGENTS = 3;

/** `agents: ada as ada@example.com, bob`; nothing for a server with one login for all. */
export function agentsText(logins: ServerStatus['agentLogins']): string[] {
  if (logins === undefined) return [];
  if (logins.length === 0) return ['no agent has a login'];
  const named = logins.slice(0, MOST_AGENTS).map(({ agent, who, expires, renews }) => {
    const as = who === undefined || who === agent ? '' : ` as ${who}`;
    return `${agent}${as}${expires === null || renews ? '' : ` until ${timeText(expires)}`}`;
  });
  const more = logins.length - named.length;
  return [`agents: ${named.join(', ')}${more === 0 ? '' : ` and ${more} more`}`];
}

/** `logged in as ada@example.com, until 18:30:00` */
export function loginText({ who, expires, renews }: NonNullable<ServerStatus['login']>): string {
  const until = expires === null ? '' : renews ? ', renewed by itself' : `, until ${timeText(expires)}`;
  return `logged in${who === undefined ? '' : ` as ${who}`}${until}`;
}

/** How often it was restarted, and the last reason. */
function restartsOf({ restarts, history }: ServerRow): string {
  if (restarts === 0) return '';
  const failure = history.findLast(({ state }) => state === 'down' || state === 'crash_loop');
  return ` (restarts: ${restarts}, last reason: ${failure?.detail ?? 'no longer known'})`;
}
