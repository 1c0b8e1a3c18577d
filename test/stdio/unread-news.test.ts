/** A client on stdio that is behind in reading, and servers that have news without end. */
import { PassThrough } from 'node:stream';
import { expect, it } from 'vitest';
import { configFromValue, openLocalDoor, openStdioDoor } from '../../src/index.ts';
import { atEnd } from '../support/cleanup.ts';
import { openGateway } from '../support/in-process-gateway.ts';
import { waitFor } from '../support/processes.ts';
import { INITIALIZED, initialize } from '../support/raw-http.ts';
import { serverEntry } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';

const MIB = 1024 * 1024;

/** A client that has subscribed and called the tool that sends `kind` without end, and reads nothing yet. */
async function openDeaf(kind: string) {
  const value = { controls: [], limits: { unread_total: '4MiB' }, servers: { loud: serverEntry('deaf') } };
  const gateway = await openGateway(configFromValue(value, { cwd: tempFolder(), env: {} }));
  atEnd(() => gateway.close());
  await gateway.tried();
  let cuts = 0;
  gateway.events.on('cut', () => cuts++);
  const input = new PassThrough();
  const output = new PassThrough();
  const door = openStdioDoor(gateway, input, output);
  const requests = [
    ['logging/setLevel', { level: 'debug' }],
    ['resources/subscribe', { uri: 'loud_deaf://long' }],
    ['tools/call', { name: 'loud_flood', arguments: { kind } }],
  ];
  const lines = requests.map(([method, params], id) => JSON.stringify({ jsonrpc: '2.0', id, method, params }));
  input.write([initialize('2025-11-25'), INITIALIZED, ...lines, ''].join('\n'));
  return { gateway, door, output, unread: () => output.readableLength + output.writableLength, cuts: () => cuts };
}

it('gets an update again when it has caught up, however many there were', async () => {
  const { gateway, output, unread, cuts } = await openDeaf('updated');
  await waitFor(() => unread() > MIB);
  // Each answer of the server comes after some hundred more updates.
  const door = openLocalDoor(gateway, 'all');
  atEnd(() => door.close());
  for (let round = 0; round < 20; round++) await door.callTool('loud_ok', {});
  expect(unread()).toBeLessThan(1.2 * MIB);
  expect(cuts()).toBe(0);
  let seen = '';
  output.on('data', (chunk: Buffer) => {
    seen += chunk;
  });
  await waitFor(() => seen.length > 1.3 * MIB);
  const lines = seen.slice(0, seen.lastIndexOf('\n')).split('\n');
  const updates = lines.filter((line) => JSON.parse(line).method === 'notifications/resources/updated');
  expect(updates.at(-1)).toBe(updates[0]);
});

it('is cut off once if it leaves too much unread, and small messages count as what they take', async () => {
  const { door, unread, cuts } = await openDeaf('log');
  await door.ended;
  expect(cuts()).toBe(1);
  expect(unread()).toBeLessThan(4.1 * MIB);
});
