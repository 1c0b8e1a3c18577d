/** No process outlives the gateway, however it ends. The long run is in test/soak. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { childEnv, startChild } from '../support/child.ts';
import { atEnd } from '../support/cleanup.ts';
import { die, type Way } from '../support/dying.ts';
import { startHttp, startStdio } from '../support/gateway.ts';
import { patient } from '../support/patience.ts';
import { alive, descendants, running, waitFor } from '../support/processes.ts';
import { createRandom } from '../support/random.ts';
import { callText, timed, toml, toolNames } from '../support/running-gateway.ts';
import { server } from '../support/server.ts';
import { useProcesses } from '../support/switch.ts';
import { tempFolder } from '../support/temp.ts';
import { onePart } from '../support/wide.ts';

useProcesses();

const bin = join(import.meta.dirname, '../../bin/toolgate.mjs');

/** A name for processes that must not outlive the test, whether it passes or fails. */
function doomed(name: string): string {
  atEnd(() => {
    for (const pid of running(name)) process.kill(pid, 'SIGKILL');
  });
  return name;
}

const rounds: Way[] = [
  { door: 'stdio', how: 'stdin', when: 'used' },
  { door: 'stdio', how: 'SIGINT', when: 'busy' },
  { door: 'stdio', how: 'SIGKILL', when: 'used' },
  { door: 'http', how: 'SIGTERM', when: 'used' },
  { door: 'http', how: 'SIGKILL', when: 'busy' },
  { door: 'stdio', how: 'SIGKILL', when: 'early' },
];

it.each(onePart(3, rounds))('leaves no process behind within 3 s: $door, $how, $when', async (way) => {
  const { processes, left, ms } = await die(way, createRandom());
  // Three servers, two grandchildren and the watchdog; fewer if the start was interrupted.
  if (way.when !== 'early') expect(processes).toBe(6);
  expect(left).toBe(0);
  expect(ms).toBeLessThan(patient(3_000));
});

// The usual run has the others in stdio-ending.test.ts and serve.test.ts.
it.each(onePart(3, ['stdin', 'SIGTERM', 'SIGINT'] as const))('exits with code 0: %s', async (how) => {
  const gateway = await startStdio({ config: toml([{ namespace: 'b', command: server('basic') }]) });
  await toolNames(gateway.client);
  expect(await gateway.stop(how)).toEqual({ code: 0, signal: null });
});

it('does not wait on exit for a server that hangs during its start', async () => {
  const name = doomed(`hung-${process.pid}`);
  const config = toml([{ namespace: 'h', command: server('hang', '--name', name, '--on', 'initialize') }]);
  const gateway = await startStdio({ config, connect: false });
  await waitFor(() => running(name).length === 1);
  const start = performance.now();
  expect(await gateway.stop('SIGTERM')).toEqual({ code: 0, signal: null });
  expect(performance.now() - start).toBeLessThan(patient(3_000));
  expect(running(name)).toEqual([]);
});

it('ends the grandchildren of a server that dies', async () => {
  const { client } = await startStdio({ config: toml([{ namespace: 's', command: server('stubborn') }]) });
  const { pid, child } = JSON.parse(await callText(client, 's_ok'));
  expect(alive(child)).toBe(true);
  process.kill(pid, 'SIGKILL');
  await waitFor(() => !alive(child));
  await waitFor(async () => JSON.parse(await callText(client, 's_ok').catch(() => '{"pid":0}')).pid > 0);
});

it.each(['the server ends', ...onePart(2, ['SIGTERM', 'SIGKILL'] as const)] as const)(
  'ends what a server started in a session of its own: %s',
  async (how) => {
    const name = doomed(`7654${process.pid % 10_000}.${how.length}`);
    // Nobody but init is the parent of this sleep, and it is in no group of the server.
    const command = `(setsid sleep ${name} &); exec ${server('basic', '--name', 'b')}`;
    const gateway = await startStdio({ config: toml([{ namespace: 'b', command }]) });
    const sleeping = () => running(name).filter((pid) => readFileSync(`/proc/${pid}/comm`, 'utf8') === 'sleep\n');
    await waitFor(() => sleeping().length === 1);
    const { pid } = JSON.parse(await callText(gateway.client, 'b_whoami'));
    const [left] = sleeping();
    process.kill(how === 'the server ends' ? pid : gateway.pid, how === 'SIGTERM' ? 'SIGTERM' : 'SIGKILL');
    await waitFor(() => !alive(left!));
  },
);

it('replaces its watchdog if that is killed', async () => {
  const gateway = await startStdio({ config: toml([{ namespace: 's', command: server('stubborn') }]) });
  const { pid, child } = JSON.parse(await callText(gateway.client, 's_ok'));
  const watchdog = () => descendants(gateway.pid).filter((one) => one !== pid && one !== child);
  const [first] = watchdog();
  process.kill(first!, 'SIGKILL');
  const second = await waitFor(() => watchdog().find((one) => one !== first));
  const left = () => [pid, child, second].filter(alive);
  // Nothing may outlive the test, even if it fails.
  atEnd(() => {
    for (const one of left()) process.kill(one, 'SIGKILL');
  });
  // Seen from outside, it may not have executed its own program yet.
  await callText(gateway.client, 's_ok');
  await gateway.stop('SIGKILL');
  await waitFor(() => left().length === 0, 3000);
});

it.each(onePart(3, [['doctor'], ['list'], ['call', 's_ok']]))(
  'leaves no process behind when `toolgate %s` is interrupted',
  async (...args) => {
    const name = doomed(`command-${args[0]}-${process.pid}`);
    const hung = { namespace: 'h', command: server('hang', '--name', name, '--on', 'tools/list') };
    const config = toml([{ namespace: 's', command: server('stubborn', '--name', name) }, hung]);
    // A call starts only the server that has the name.
    const processes = args[0] === 'call' ? 2 : 3;
    for (const signal of ['SIGINT', 'SIGKILL'] as const) {
      const command = startChild(process.execPath, [bin, ...args], {
        cwd: tempFolder({ 'tools.toml': config }),
        env: childEnv({ HOME: tempFolder() }),
      });
      await waitFor(() => running(name).length === processes);
      command.process.kill(signal);
      await waitFor(() => running(name).length === 0 && !alive(command.pid), 3000);
    }
  },
);

it('exits at once, with all its processes, if its port is taken', async () => {
  const name = doomed(`port-${process.pid}`);
  const first = await startHttp({ config: toml([]) });
  const config = toml([{ namespace: 'h', command: server('hang', '--name', name, '--on', 'initialize') }]);
  const second = startChild(process.execPath, [bin, 'serve', '--port', new URL(first.origin).port], {
    cwd: tempFolder({ 'tools.toml': config }),
    env: childEnv({ HOME: tempFolder() }),
  });
  const { value, ms } = await timed(second.exited);
  expect(value.code).toBe(2);
  expect(second.stderr()).toContain('is in use; choose another with --port');
  // It does not wait for its server, which may take its start_timeout.
  expect(ms).toBeLessThan(20_000);
  expect(running(name)).toEqual([]);
});

it('exits with the program that started it, even if that is killed', async () => {
  const name = doomed(`program-${process.pid}`);
  const config = toml([{ namespace: 's', command: server('stubborn', '--name', name) }]);
  // A client that starts the gateway on pipes and does nothing else.
  const script = `require('child_process').spawn(process.execPath, [${JSON.stringify(bin)}], { stdio: 'pipe' })`;
  const cwd = tempFolder({ 'tools.toml': config });
  const program = startChild(process.execPath, ['-e', script], { cwd, env: childEnv({ HOME: tempFolder() }) });
  await waitFor(() => running(name).length === 2);
  const all = descendants(program.pid);
  expect(all).toHaveLength(4);
  program.process.kill('SIGKILL');
  await waitFor(() => !all.some(alive), 3000);
});
