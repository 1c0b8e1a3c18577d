/** `toolgate connect` and `toolgate wait`: the agent's side of a gateway that runs elsewhere. */
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { GatewayError, messageOf, openRemoteDoor, toLifetime } from '../internal.ts';
import type { Options } from './commands.ts';
import { untilSignal } from './signals.ts';
import { paint, plain } from './terminal.ts';

const PATIENCE = 60_000;
const LOOK = 500;

export async function connect([address, ...more]: readonly string[], options: Options): Promise<number> {
  const url = readUrl(address, more, 'connect');
  if (url.pathname === '/') url.pathname = '/mcp';
  const headers = readHeaders(options.header ?? []);
  const door = openRemoteDoor(
    {
      url: url.href,
      headers: () => ({ ...headers, ...credential() }),
      patience: readTime(options.timeout) ?? PATIENCE,
      note: (message) => process.stderr.write(`${paint('dim', plain(message), process.stderr)}\n`),
    },
    process.stdin,
    process.stdout,
  );
  await Promise.race([door.ended, untilSignal()]);
  await door.close();
  process.stdin.destroy();
  return 0;
}

/** Read each time: the file may be replaced while the agent runs. */
function credential(): Record<string, string> {
  const { TOOLGATE_TOKEN: token, TOOLGATE_TOKEN_FILE: file, BEARER_TOKEN: common } = process.env;
  const value = token || (file ? readToken(file) : '') || common;
  return value ? { authorization: `Bearer ${value}` } : {};
}

function readToken(file: string): string {
  try {
    return readFileSync(file, 'utf8').trim();
  } catch (error) {
    throw new GatewayError('usage', `TOOLGATE_TOKEN_FILE cannot be read: ${messageOf(error)}`);
  }
}

/** Until the gateway is ready: an agent that starts earlier would find half of its tools. */
export async function wait([address, ...more]: readonly string[], options: Options): Promise<number> {
  const url = readUrl(address, more, 'wait');
  const patience = readTime(options.timeout) ?? PATIENCE;
  const end = Date.now() + patience;
  let last = 'it has not been reached yet';
  while (Date.now() < end) {
    last = await look(url.origin);
    if (last === 'ready') {
      process.stderr.write(`${url.origin} is ready.\n`);
      return 0;
    }
    await sleep(Math.max(1, Math.min(LOOK, end - Date.now())));
  }
  process.stderr.write(`toolgate: ${url.origin} is not ready after ${patience / 1000} s: ${last}.\n`);
  return 1;
}

async function look(origin: string): Promise<string> {
  try {
    const response = await fetch(`${origin}/ready`, { signal: AbortSignal.timeout(5_000) });
    if (response.ok) return 'ready';
    const { status } = (await response.json().catch(() => ({}))) as { status?: unknown };
    return typeof status === 'string' ? `it is ${status}` : `it answers with status ${response.status}`;
  } catch (error) {
    const { cause } = error as Error;
    return cause instanceof Error ? messageOf(cause) : messageOf(error);
  }
}

function readUrl(address: string | undefined, more: readonly string[], command: string): URL {
  if (address === undefined || more.length > 0)
    throw new GatewayError('usage', `toolgate ${command} needs one address: toolgate ${command} http://gateway:8808`);
  if (!URL.canParse(address) || !/^https?:$/.test(new URL(address).protocol))
    throw new GatewayError('usage', `"${address}" is no address that begins with http:// or https://.`);
  return new URL(address);
}

function readTime(text: string | undefined): number | null {
  if (text === undefined) return null;
  const time = toLifetime(text);
  if (time === null) throw new GatewayError('usage', `--timeout is a time such as "90s" or "5m", not "${text}".`);
  return time;
}

function readHeaders(texts: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    texts.map((text) => {
      const [, name, value] = /^([\w!#$%&'*+.^`|~-]+):\s*(.*)$/.exec(text) ?? [];
      if (name === undefined || value === undefined)
        throw new GatewayError('usage', `--header is written "Name: value", not "${text}".`);
      return [name.toLowerCase(), value];
    }),
  );
}
