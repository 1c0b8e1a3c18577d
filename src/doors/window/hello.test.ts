import { once } from 'node:events';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { atEnd } from '../../../test/support/cleanup.ts';
import { tempFolder } from '../../../test/support/temp.ts';
import { sayHello, type WindowQuestion } from './hello.ts';

it('what a gateway writes right after its answer is not lost', async () => {
  const path = join(tempFolder(), 'socket');
  const server = createServer((socket) => void socket.once('data', () => socket.end('{"welcome":true}\n#first\n')));
  atEnd(() => void server.close());
  await once(server.listen(path), 'listening');
  const { answer, socket } = (await sayHello(path, {} as WindowQuestion))!;
  expect(answer).toEqual({ welcome: true });
  // Later, as a window that has more to do first.
  await new Promise((resolve) => setTimeout(resolve, 20));
  const chunks = await socket.toArray();
  expect(Buffer.concat(chunks as Buffer[]).toString()).toBe('#first\n');
});
