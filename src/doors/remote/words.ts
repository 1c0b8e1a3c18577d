/** The messages and headers that `toolgate connect` itself adds between a client and a remote gateway. */
import { toBytes } from '../../protocol/json.ts';
import type { Message } from '../../protocol/message.ts';
import { findMirrored, type MirroredArgument, mirrorHeaders } from '../../protocol/param-headers.ts';
import { notificationMessage } from '../../protocol/rpc.ts';
import type { ExchangeOutcome } from './exchange.ts';

export const LISTS = ['tools', 'resources', 'prompts'] as const;

/** Notifications that each of these lists may have changed. */
export function listChanged(kinds: readonly string[], subscription: string | null): Buffer[] {
  const meta =
    subscription === null ? undefined : `{"_meta":{"io.modelcontextprotocol/subscriptionId":${subscription}}}`;
  return kinds.map((kind) =>
    notificationMessage(`notifications/${kind}/list_changed`, meta === undefined ? undefined : Buffer.from(meta)),
  );
}

export function errorLine(id: string, message: string): Buffer {
  return Buffer.from(`{"jsonrpc":"2.0","id":${id},"error":${JSON.stringify({ code: -32_000, message })}}`);
}

/** Why a request got no answer. `reason` is the message of an error that named no request. */
export function failureText(url: string, outcome: ExchangeOutcome, reason: string): string {
  if (outcome.kind === 'unreachable')
    return `The gateway at ${url} cannot be reached (${outcome.reason}). Try again later.`;
  if (outcome.kind === 'broken') return lostText(url, outcome.reason);
  return outcome.status === 200 ? lostText(url, 'the answer ended early') : statusText(url, outcome.status, reason);
}

function lostText(url: string, reason: string): string {
  return `The connection to the gateway at ${url} was lost (${reason}) during this request. The request may or may not have been carried out: check before you repeat it.`;
}

function statusText(url: string, status: number, reason: string): string {
  if (status === 401)
    return `The gateway at ${url} requires an agent's token: set TOOLGATE_TOKEN or TOOLGATE_TOKEN_FILE for toolgate connect.`;
  const why = reason === '' ? 'check that the address is the /mcp of a Toolgate gateway' : reason;
  return `The gateway at ${url} answered with status ${status}: ${why}`;
}

export type MirroredArguments = Map<string, readonly MirroredArgument[]>;

/** Remembers from a tool list which arguments must be repeated in headers. */
export function noteMirrored(mirroredByTool: MirroredArguments, result: Buffer): void {
  if (!result.includes('x-mcp-header')) return;
  const { tools = [] } = JSON.parse(result.toString()) as { tools?: { name: string; inputSchema?: unknown }[] };
  for (const { name, inputSchema } of tools) {
    const found = findMirrored(inputSchema);
    if (typeof found !== 'string' && found.length > 0) mirroredByTool.set(name, found);
  }
}

/** The headers that repeat parts of a request without a session. */
export function headersFor(
  message: Message,
  version: string,
  mirroredByTool: MirroredArguments,
): Record<string, string> {
  const { bytes, nameStart, nameEnd, uriStart, uriEnd } = message;
  const span = message.method === 'resources/read' ? [uriStart, uriEnd] : [nameStart, nameEnd];
  const name = span[0]! < 0 ? '""' : bytes.toString('latin1', span[0], span[1]);
  const mirrored =
    message.method === 'tools/call'
      ? (mirroredByTool.get(String(JSON.parse(Buffer.from(name, 'latin1').toString()))) ?? null)
      : null;
  const pairs = mirrorHeaders(message, name, mirrored);
  const headers: Record<string, string> = { 'mcp-protocol-version': version };
  for (let i = 0; i < pairs.length; i += 2) headers[pairs[i]!] = pairs[i + 1]!;
  return headers;
}

export const INITIALIZED = notificationMessage('notifications/initialized');
export const NO_PARAMS = toBytes({});

/** The message of an error that answers no request. */
export function errorText({ bytes, errorStart, errorEnd }: Message): string {
  const { message } = JSON.parse(bytes.toString('utf8', errorStart, errorEnd)) as { message?: unknown };
  return typeof message === 'string' ? message : '';
}
