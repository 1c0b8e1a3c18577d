/** Audit records of calls that no server answered: limits, cached results and middleware. */
import { describe, expect, it } from 'vitest';
import { configFromValue, GatewayError, openLocalDoor } from '../../src/index.ts';
import { READS_AT_ONCE } from '../../src/protocol/contract.ts';
import { NO_ABILITIES } from '../../src/protocol/envelope.ts';
import { readMessage } from '../../src/protocol/read.ts';
import { auditOf, isAdmin, isCall, type Line, readLines, waitForLines } from '../support/audit-records.ts';
import { startStdio } from '../support/gateway.ts';
import { createGateway } from '../support/in-process-gateway.ts';
import { server, serversToml } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';

const ON = '[audit]\nenabled = true\n';
const items = server('basic', '--resources', 'doc://a');
const config = `active_toolsets = ["*"]\n${serversToml({ a: items })}`;

describe('the audit of limits', () => {
  const toml = `${config}max_result = 600
[servers.tools.count]
rate = "1/h"
[servers.tools.echo]
cache = "1m"
${ON}`;

  it('records refused calls, cached results and the read of a cut result', async () => {
    const { client, cwd } = await startStdio({ config: toml });
    const call = (name: string, args = {}) => client.callTool({ name, arguments: args });
    await call('a_count');
    await call('a_count');
    await call('a_echo', { x: 1 });
    await call('a_echo', { x: 1 });
    const cut = (await call('a_raw', {
      json: JSON.stringify({ content: [{ type: 'text', text: 'y'.repeat(2_000) }] }),
    })) as {
      content: { type: string; uri?: string }[];
    };
    const uri = cut.content.find(({ type }) => type === 'resource_link')!.uri!;
    await client.readResource({ uri });
    const lines = await waitForLines(cwd, 6, (line) => !isAdmin(line));
    expect(lines.map(({ kind, server: key, tool, status }) => [kind, key, tool, status])).toEqual([
      ['call', 'a', 'count', 'ok'],
      ['denial', 'a', 'a_count', 'rate_limited'],
      ['call', 'a', 'echo', 'ok'],
      ['call', 'a', 'echo', 'cached'],
      ['call', 'a', 'raw', 'ok'],
      ['call', 'toolgate', uri, 'ok'],
    ]);
  });
});

describe('the audit in a program that embeds the gateway', () => {
  it('records and counts names without the password that they contain', async () => {
    const cwd = tempFolder();
    const command = server('basic', '--resources', 'db://u:hunter2-hunter2@h/x');
    const value = { servers: [{ namespace: 'a', command }], audit: { enabled: true } };
    const gateway = createGateway(configFromValue(value, { cwd, env: { DB_PASS: 'hunter2-hunter2' } }));
    await gateway.tried();
    const { caller } = openLocalDoor(gateway);
    const params = { uri: 'a_db://u:hunter2-hunter2@h/x' };
    const message = readMessage(
      Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: 'x', method: 'resources/read', params })),
    );
    await new Promise<void>((resolve) => {
      const done = () => resolve();
      const call = gateway.pipeline.create(caller, message, {
        ...NO_ABILITIES,
        ...READS_AT_ONCE,
        owner: caller,
        awaySince: null,
        notify() {},
        ask() {},
        result: done,
        error: done,
        fail: done,
      });
      call.start();
    });
    await gateway.close();
    expect(gateway.metrics.entries()).toMatchObject([{ name: 'db://u:[redacted]@h/x', calls: 1 }]);
    expect(readLines(auditOf(cwd)).find(isCall)).toMatchObject({
      request: 'x',
      tool: 'db://u:[redacted]@h/x',
      name: 'a_db://u:[redacted]@h/x',
    });
  });

  it('records calls that middleware answers or refuses, and a call that it passes on only once', async () => {
    const cwd = tempFolder();
    const servers = [{ namespace: 'a', command: items, tools: { echo: { rate: '1/h' } } }];
    const value = { servers, audit: { enabled: true } };
    const gateway = createGateway(configFromValue(value, { cwd, env: {} }));
    gateway.use(async ({ name }, next) => {
      if (name === 'a_count') return { content: [] };
      if (name === 'a_raw') throw new GatewayError('forbidden', 'Not that one.');
      return next();
    });
    await gateway.tried();
    const door = openLocalDoor(gateway);
    for (const name of ['a_echo', 'a_echo', 'a_count', 'a_raw']) await door.callTool(name, {}).catch(() => {});
    await gateway.close();
    const lines = readLines(auditOf(cwd)).filter((line: Line) => !isAdmin(line));
    expect(lines.map(({ kind, tool, status, door: way }) => [kind, tool, status, way])).toEqual([
      ['call', 'echo', 'ok', 'local'],
      ['denial', 'a_echo', 'rate_limited', 'local'],
      ['call', 'count', 'ok', 'local'],
      ['denial', 'a_raw', 'forbidden', 'local'],
    ]);
  });
});
