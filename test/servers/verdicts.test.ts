/**
 * A server that turned out not to be modern is remembered for a day, so that the gateway waits for a silent one only
 * once.
 */
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { startHttp } from '../support/gateway.ts';
import { messagesOf, stdioServer } from '../support/modern-servers.ts';
import { legacyMethods, modernMethods, only, startServer } from '../support/plain-http-server.ts';
import { waitFor } from '../support/processes.ts';
import { callText, killAndReturn, timed, toml, toolNames, toolsToBe } from '../support/running-gateway.ts';
import { tempFolder } from '../support/temp.ts';

const DAY = 24 * 60 * 60 * 1000;

/** All verdict files in a folder in which a gateway has run. */
function verdictsIn(cwd: string): string[] {
  const folder = join(cwd, '.toolgate', 'verdicts');
  const names = existsSync(folder) ? readdirSync(folder) : [];
  return names.filter((name) => name.endsWith('.json')).map((name) => join(folder, name));
}

const asked = (chunks: string) => messagesOf(chunks).filter(({ method }) => method === 'server/discover').length;

it('waits three seconds for a server that ignores server/discover, and not at all the next time', async () => {
  const chunks = join(tempFolder(), 'chunks');
  const config = toml([{ namespace: 'up', command: stdioServer('--discover', 'silent', '--chunks', chunks) }]);
  const { value: first, ms } = await timed(startHttp({ config }));
  expect(ms).toBeGreaterThan(3000);
  const { legacyUntil } = JSON.parse(readFileSync(await waitFor(() => verdictsIn(first.cwd)[0]), 'utf8'));
  expect(Math.abs(legacyUntil - Date.now() - DAY)).toBeLessThan(60_000);
  await first.stop();
  // A server that is not asked is not waited for.
  const { client } = await (await startHttp({ cwd: first.cwd })).connect();
  expect(asked(chunks)).toBe(1);
  // A server that dies while in use is not asked again either.
  await killAndReturn(client, 'up_pid');
  expect(asked(chunks)).toBe(1);
});

it('does not remember a slow modern server as legacy', async () => {
  const config = toml([{ namespace: 'up', command: stdioServer('--slow-start', 3300) }]);
  const { cwd, connect } = await startHttp({ config });
  expect(await toolNames((await connect()).client)).toEqual(['up_pid', 'up_hang', 'up_tell']);
  expect(verdictsIn(cwd)).toEqual([]);
});

describe('a stored era verdict', () => {
  const worthless = {
    expired: JSON.stringify({ legacyUntil: Date.now() - 1 }),
    // Written while the clock was wrong.
    'far-off': JSON.stringify({ legacyUntil: Date.now() + 40 * DAY }),
    damaged: '{"legacyUntil":',
    empty: '',
    different: JSON.stringify({ legacyUntil: [Date.now() + DAY] }),
    binary: Buffer.from([0xff, 0xfe, 0x00, 0x80]),
  };

  it('is ignored if it is damaged or expired, and replaced by a valid one', async () => {
    const folder = tempFolder();
    const names = Object.keys(worthless);
    const entries = names.map((namespace) => ({
      namespace,
      command: stdioServer('--discover', 'error', '--chunks', join(folder, namespace)),
    }));
    const first = await startHttp({ config: toml(entries) });
    const files = await waitFor(() => {
      const files = verdictsIn(first.cwd);
      return files.length === names.length && files;
    });
    await first.stop();
    // It does not matter which file belongs to which server.
    for (const [index, content] of Object.values(worthless).entries()) writeFileSync(files[index]!, content);
    await startHttp({ cwd: first.cwd });
    expect(names.map((name) => asked(join(folder, name)))).toEqual(names.map(() => 2));
    await waitFor(() => files.every((file) => /^\{\s*"legacyUntil": ?\d+\s*\}\n$/.test(readFileSync(file, 'utf8'))));
  });

  it('is optional: without a place to store it the server is asked each time', async () => {
    const chunks = join(tempFolder(), 'chunks');
    const files = { occupied: 'a file' };
    const servers = [{ namespace: 'up', command: stdioServer('--discover', 'error', '--chunks', chunks) }];
    const first = await startHttp({ config: toml(servers, { data_dir: 'occupied/data' }), files });
    expect(await toolNames((await first.connect()).client)).toHaveLength(3);
    await first.stop();
    await startHttp({ cwd: first.cwd });
    expect(asked(chunks)).toBe(2);
  });
});

describe('a server that has become modern since its verdict', () => {
  it('is detected over HTTP', async () => {
    const upstream = await startServer(only('legacy', legacyMethods()));
    const first = await startHttp({ config: toml([{ namespace: 'up', url: upstream.url }]) });
    await waitFor(() => verdictsIn(first.cwd).length === 1);
    await first.stop();
    upstream.methods = only('modern', { ...modernMethods(), initialize: () => ({}) });
    upstream.seen.length = 0;
    const { connect } = await startHttp({ cwd: first.cwd });
    expect(await callText((await connect()).client, 'up_echo', { n: 1 })).toBe('{"n":1}');
    expect(upstream.seen.map(({ message }) => message.method).slice(0, 2)).toEqual(['initialize', 'server/discover']);
    await waitFor(() => verdictsIn(first.cwd).length === 0);
  });

  it('is detected over stdio, however it answers initialize', async () => {
    const ways = ['error', 'exit', 'empty'];
    const folder = tempFolder(Object.fromEntries(ways.map((way) => [`${way}.json`, '{"discover":"error"}'])));
    const entries = ways.map((way) => ({
      namespace: way,
      command: stdioServer('--settings', join(folder, `${way}.json`), '--chunks', join(folder, way)),
    }));
    const first = await startHttp({ config: toml(entries) });
    await waitFor(() => verdictsIn(first.cwd).length === ways.length);
    await first.stop();
    for (const way of ways) writeFileSync(join(folder, `${way}.json`), JSON.stringify({ initialize: way }));
    const { connect } = await startHttp({ cwd: first.cwd });
    const names = ways.flatMap((way) => ['pid', 'hang', 'tell'].map((name) => `${way}_${name}`));
    await toolsToBe((await connect()).client, names);
    for (const way of ways)
      expect(messagesOf(join(folder, way)).filter(({ method }) => method === 'subscriptions/listen')).toHaveLength(1);
    await waitFor(() => verdictsIn(first.cwd).length === 0);
  });
});
