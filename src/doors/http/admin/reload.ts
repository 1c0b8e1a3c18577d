/** `POST /reload`: looks at everything again. For the program that manages the gateway, from where that is, with its own token. */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { BlockList, isIPv6 } from 'node:net';
import { GatewayError } from '../../../base/errors.ts';
import type { EventMap } from '../../../base/events.ts';
import type { HttpConfig } from '../../../config/http.ts';
import type { Gateway } from '../../../gateway/types.ts';
import { toBytes } from '../../../protocol/json.ts';
import { DEPENDENCIES_READY } from '../../../workers/environment.ts';
import { sendReply } from '../wire/reply.ts';

const stamp = randomBytes(32);

export async function reload(
  gateway: Gateway,
  request: IncomingMessage,
  response: ServerResponse,
  headers: readonly string[],
): Promise<void> {
  requireManager(gateway.config.http.manager, request);
  const synced = new Set<string>();
  const stop = gateway.events.listen((name, event) => {
    const { source, message } = event as EventMap['note'];
    if (name === 'note' && message === DEPENDENCIES_READY) synced.add(source);
  });
  const before = new Map(gateway.statuses().map(({ key, pid }) => [key, pid]));
  try {
    await gateway.reloading.run();
    await gateway.tried();
  } finally {
    stop();
  }
  const folders = gateway.statuses().filter(({ kind }) => kind === 'folder');
  const namesOf = (some: typeof folders) => [...new Set(some.map(({ namespace }) => namespace))].sort();
  const body = toBytes({
    reloaded: true,
    namespaces: [...gateway.namespaces()].sort(),
    workers_restarted: namesOf(folders.filter(({ key, pid }) => pid !== null && before.get(key) !== pid)),
    deps_synced: namesOf(folders.filter(({ key }) => synced.has(key))),
  });
  gateway.events.emit('admin', { act: 'reload', agent: '', detail: '' });
  sendReply(response, 200, { head: '', body, tail: '' }, headers);
}

function requireManager({ token, networks }: HttpConfig['manager'], { headers, socket }: IncomingMessage): void {
  const given = headers['x-manager-token'];
  const expected = token();
  if (expected === null || typeof given !== 'string' || !isEqual(given, expected))
    throw new GatewayError('forbidden', 'The header X-Manager-Token has to hold the value of MANAGER_INTERNAL_TOKEN.');
  if (!isWithin(networks, socket.remoteAddress ?? ''))
    throw new GatewayError('forbidden', 'This address is not one of INTERNAL_ALLOWED_CIDRS.');
}

function isEqual(a: string, b: string): boolean {
  const digest = (text: string) => createHmac('sha256', stamp).update(text).digest();
  return timingSafeEqual(digest(a), digest(b));
}

export function isWithin(networks: readonly string[], address: string): boolean {
  // As Node names IPv4 on a socket for both.
  const plain = address.replace(/^::ffff:(?=\d+\.)/, '');
  const list = new BlockList();
  for (const network of networks) {
    const [base = '', bits] = network.split('/');
    const family = isIPv6(base) ? 'ipv6' : 'ipv4';
    list.addSubnet(base, bits === undefined ? (family === 'ipv6' ? 128 : 32) : Number(bits), family);
  }
  return plain !== '' && list.check(plain, isIPv6(plain) ? 'ipv6' : 'ipv4');
}
