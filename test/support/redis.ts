/** A real redis-server on a free port of loopback, for one test or one file. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { atEnd } from './cleanup.ts';
import { freePort } from './ports.ts';
import { tempFolder } from './temp.ts';

export interface RedisServer {
  readonly port: number;
  readonly url: string;
  /** Kills it, as a crash does. */
  kill(): Promise<void>;
  /** Starts it again, with what it had. */
  start(): Promise<void>;
}

/** It writes down every command, so that nothing is lost when it is killed. */
export async function startRedis(...more: string[]): Promise<RedisServer> {
  const port = await freePort();
  const dir = tempFolder();
  const args = ['--port', port, '--bind', '127.0.0.1', '--dir', dir, '--save', '', '--appendonly', 'yes', ...more];
  let child: ChildProcess | null = null;
  const kill = async () => {
    const ending = child;
    child = null;
    if (ending === null || ending.exitCode !== null) return;
    const ended = once(ending, 'exit');
    ending.kill('SIGKILL');
    await ended;
  };
  const start = async () => {
    child = spawn('redis-server', args.map(String), { stdio: 'ignore' });
    while (!(await answers(port))) await sleep(20);
  };
  await start();
  atEnd(kill);
  return { port, url: `redis://127.0.0.1:${port}`, kill, start };
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => socket.write('PING\r\n'));
    const end = (isUp: boolean) => {
      socket.destroy();
      resolve(isUp);
    };
    socket.once('data', (data) => end(/PONG|NOAUTH/.test(data.toString())));
    socket.once('error', () => end(false));
  });
}
