/**
 * `/reload`, for the program that manages the gateway. POST reads everything again, GET says what is served now, whatever
 * the policies of agents are. That program needs a token of its own and an address in an allowed network.
 */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { BlockList, isIPv6 } from 'node:net';
import { GatewayError, messageOf, toGatewayError } from '../../../base/errors.ts';
import { toObject } from '../../../base/objects.ts';
import type { HttpConfig } from '../../../config/http.ts';
import type { ChangeReport } from '../../../gateway/change.ts';
import type { Gateway } from '../../../gateway/gateway.ts';
import { problemText } from '../../../sources/last-good.ts';
import { countNamespaces } from '../rest/reads.ts';
import { sendJson } from '../wire/reply.ts';

const hmacKey = randomBytes(32);

/** Milliseconds between two looks at what a reload waits for, and between two messages that say the same. */
const LOOK = 200;
const REPEAT = 1_000;
const MOST_NAMED = 10;

export async function reload(
  gateway: Gateway,
  request: IncomingMessage,
  response: ServerResponse,
  headers: readonly string[],
): Promise<void> {
  requireManager(gateway.config.http.manager, request);
  const fresh = [...headers, 'cache-control', 'no-store'];
  if (request.method === 'GET') {
    await gateway.opening;
    sendJson(response, 200, { namespaces: namespacesOf(gateway) }, fresh);
  } else if (request.headers.accept?.includes('text/event-stream') !== true)
    sendJson(response, 200, await readAgain(gateway), fresh);
  else await tellWhile(() => readAgain(gateway), gateway, response, fresh);
}

/** What is served, with the tools of each folder. */
function namespacesOf(gateway: Gateway) {
  const { catalog } = gateway;
  const folders = new Set(gateway.statuses().flatMap(({ kind, namespace }) => (kind === 'folder' ? [namespace] : [])));
  const tools = [...catalog.entries.tool.values()]
    .filter(({ namespace }) => folders.has(namespace))
    .map(({ namespace, item }) => ({ namespace, definition: toObject(JSON.parse(item.bytes.toString())) }));
  return countNamespaces(gateway, { catalog, permission: null }).map((one) => ({
    ...one,
    tools: tools
      .filter(({ namespace }) => namespace === one.name)
      .map(({ definition: { name, description = '', _meta } }) => ({
        name,
        description,
        filename: toObject(_meta)['toolgate/file'] ?? '',
      })),
  }));
}

async function readAgain(gateway: Gateway) {
  const report = await gateway.change({ config: 'file', folders: true, secrets: true, tokens: true });
  const { restarted, synced } = await report.settled;
  const folders = gateway.statuses().filter(({ kind }) => kind === 'folder');
  const namesOf = (keys: readonly string[]) =>
    [...new Set(folders.filter(({ key }) => keys.includes(key)).map(({ namespace }) => namespace))].sort();
  const problems = [...problemsOf(report, gateway.redact), ...unservedIn(gateway)];
  gateway.events.emit('admin', { act: 'reload', agent: '', detail: '' });
  return {
    reloaded: true,
    namespaces: [...gateway.namespaces()].sort(),
    workers_restarted: namesOf(restarted),
    deps_synced: namesOf(synced),
    ...(problems.length > 0 && { problems }),
  };
}

/** A stream of events: `progress` while the work goes on, which may be minutes, then `report` or `error`. */
async function tellWhile(
  work: () => Promise<object>,
  gateway: Gateway,
  response: ServerResponse,
  headers: readonly string[],
): Promise<void> {
  response.writeHead(200, [...headers, 'content-type', 'text/event-stream', 'x-accel-buffering', 'no']);
  const send = (event: string, data: object) => {
    if (!response.destroyed) response.write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
  };
  send('progress', { message: 'The core reads its folders.' });
  let last = { message: '', at: Date.now() };
  const looking = setInterval(() => {
    const waiting = gateway.statuses().filter(({ state }) => state === 'starting');
    const message =
      waiting
        .map(({ key, detail }) => (detail === '' ? `${key} is starting` : `${key}: ${detail}`))
        .slice(0, MOST_NAMED)
        .join('; ') || 'The core is reloading.';
    if (message === last.message && Date.now() - last.at < REPEAT) return;
    last = { message, at: Date.now() };
    send('progress', { message });
  }, LOOK);
  try {
    send('report', await work());
  } catch (error) {
    const { code, message } = toGatewayError(error);
    send('error', { code, message: gateway.redact(message) });
  } finally {
    clearInterval(looking);
    response.end();
  }
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
