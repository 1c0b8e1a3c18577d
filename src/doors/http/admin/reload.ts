/**
 * `POST /reload`: reads everything again. It is for the program that manages the gateway. That program needs a token of
 * its own and an address in an allowed network.
 */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { BlockList, isIPv6 } from 'node:net';
import { GatewayError, messageOf } from '../../../base/errors.ts';
import type { HttpConfig } from '../../../config/http.ts';
import type { ChangeReport } from '../../../gateway/change.ts';
import type { Gateway } from '../../../gateway/gateway.ts';
import { problemText } from '../../../sources/last-good.ts';
import { sendJson } from '../wire/reply.ts';

const hmacKey = randomBytes(32);

export async function reload(
  gateway: Gateway,
  request: IncomingMessage,
  response: ServerResponse,
  headers: readonly string[],
): Promise<void> {
  requireManager(gateway.config.http.manager, request);
  const report = await gateway.change({ config: 'file', folders: true, secrets: true, tokens: true });
  const { restarted, synced } = await report.settled;
  const folders = gateway.statuses().filter(({ kind }) => kind === 'folder');
  const namespacesOf = (keys: readonly string[]) =>
    [...new Set(folders.filter(({ key }) => keys.includes(key)).map(({ namespace }) => namespace))].sort();
  const problems = [...problemsOf(report, gateway.redact), ...unservedIn(gateway)];
  const body = {
    reloaded: true,
    namespaces: [...gateway.namespaces()].sort(),
    workers_restarted: namespacesOf(restarted),
    deps_synced: namespacesOf(synced),
    ...(problems.length > 0 && { problems }),
  };
  gateway.events.emit('admin', { act: 'reload', agent: '', detail: '' });
  sendJson(response, 200, body, headers);
}

/** What was refused, what could not be read, and which parts failed to apply the change. */
function problemsOf({ refused, problems, failures }: ChangeReport, redact: (text: string) => string) {
  return [
    ...(refused === null ? [] : [{ source: 'configuration', message: refused }]),
    ...problems,
    ...failures.map(({ name, error }) => ({ source: name, message: messageOf(error) })),
  ].map(({ source, message }) => ({ source, message: redact(message) }));
}

/** What the servers cannot serve, such as tool files that did not load, and the folders of tools that are not up. */
function unservedIn(gateway: Gateway) {
  return gateway.statuses().flatMap(({ key, kind, state, detail, present, problems }) => {
    const isDown = kind === 'folder' && !present && state !== 'broken' && state !== 'untrusted';
    return [...(isDown ? [`${state}: ${detail}`] : []), ...problems.map(problemText)].map((message) => ({
      source: key,
      message,
    }));
  });
}

function requireManager({ token, networks }: HttpConfig['manager'], { headers, socket }: IncomingMessage): void {
  const given = headers['x-manager-token'];
  const expected = token();
  if (expected === null || typeof given !== 'string' || !isEqual(given, expected))
    throw new GatewayError('forbidden', 'Send the value of MANAGER_INTERNAL_TOKEN in the header X-Manager-Token.', {
      rule: 'MANAGER_INTERNAL_TOKEN',
    });
  if (!isWithin(networks, socket.remoteAddress ?? ''))
    throw new GatewayError('forbidden', 'The address of the client is not in INTERNAL_ALLOWED_CIDRS.', {
      rule: 'INTERNAL_ALLOWED_CIDRS',
    });
}

function isEqual(a: string, b: string): boolean {
  const digest = (text: string) => createHmac('sha256', hmacKey).update(text).digest();
  return timingSafeEqual(digest(a), digest(b));
}

export function isWithin(networks: readonly string[], address: string): boolean {
  // On a dual-stack socket Node writes IPv4 addresses in this form.
  const plain = address.replace(/^::ffff:(?=\d+\.)/, '');
  const list = new BlockList();
  for (const network of networks) {
    const [base = '', bits] = network.split('/');
    const family = isIPv6(base) ? 'ipv6' : 'ipv4';
    list.addSubnet(base, bits === undefined ? (family === 'ipv6' ? 128 : 32) : Number(bits), family);
  }
  return plain !== '' && list.check(plain, isIPv6(plain) ? 'ipv6' : 'ipv4');
}
