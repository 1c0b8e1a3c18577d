/**
 * `toolgate stdio`: a window of the gateway that runs in the background, or a gateway of its own. What only the latter needs is
 * loaded only then, because every client waits for the start.
 */
import { readFileSync } from 'node:fs';
import { GatewayError } from '../base/errors.ts';
import { findConfig } from '../config/find.ts';
import { openWindow } from '../doors/window/relay.ts';
import type { CommandIo } from './command-io.ts';
import { LEVELS, logLevel } from './log-level.ts';
import { loadOptions, type Options } from './options.ts';
import { attach, type HelloParts, sharedPlace, Unshared } from './shared-gateway.ts';
import { jsonText, leaveClient, untilSignal, warn } from './terminal.ts';

export async function stdio(args: readonly string[], options: Options, io: CommandIo): Promise<number> {
  const own = async () => (await import('./serve.ts')).ownStdio(args, options, io);
  if (!(await mayShare(options, io))) return own();
  const level = logLevel(options, io, 'warn');
  const place = sharedPlace(options, io);
  const { agent = 'default', task = null, 'equip-toolset': toolset = null } = options;
  const parts: HelloParts = { agent, task, toolset, log: level, before: 0, kept: null };
  let first: Awaited<ReturnType<typeof attach>>;
  try {
    first = await attach(place, parts, options, io);
  } catch (error) {
    if (error instanceof Unshared) return own();
    if (!isForeignFolder(error)) throw error;
    warn(`${error.message}. This client has a gateway of its own.`, io);
    return own();
  }
  const note = (message: string) => {
    if (LEVELS.indexOf(level) <= LEVELS.indexOf('warn'))
      io.stderr.write(`${jsonText({ time: new Date().toISOString(), level: 'warn', message })}\n`);
  };
  const window = openWindow(
    first,
    {
      attach: (before, kept) => attach(place, { ...parts, toolset: null, before, kept }, options, io),
      log: (line) => io.stderr.write(`${line}\n`),
      note,
    },
    io.stdin,
    io.stdout,
  );
  await Promise.race([window.ended, untilSignal(io)]);
  window.close();
  return leaveClient(io);
}

/** Whether another user has taken the place of our sockets. */
function isForeignFolder(error: unknown): error is GatewayError {
  return error instanceof GatewayError && error.code === 'source_unavailable' && /another user/.test(error.message);
}

/** On a terminal a person wants to see the log. Windows has no Unix sockets with owners. */
async function mayShare(options: Options, io: CommandIo): Promise<boolean> {
  if (options['no-shared'] === true || /^(0|false|no|off)$/i.test(io.env.TOOLGATE_SHARED ?? '')) return false;
  if (process.platform === 'win32' || io.stdin.isTTY === true) return false;
  // Reading the configuration takes longer than all the rest, so it is read only if it seems to say so.
  if (!/\bshared["']?\s*[=:]\s*false/.test(textOf(findConfig(loadOptions(options, io)).file))) return true;
  const { loadConfig } = await import('../config/load.ts');
  return (await loadConfig(loadOptions(options, io))).shared;
}

function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}
