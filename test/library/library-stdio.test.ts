/** Servers with toolsets on standard input and output, as separate programs, with clients of both SDKs. */
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { createPermissionBasedMcpServer } from '../../src/index.ts';
import { childEnv, startChild } from '../support/child.ts';
import { atEnd } from '../support/cleanup.ts';
import { openPipe } from '../support/connection.ts';
import { openModernPipe } from '../support/modern.ts';
import { waitFor } from '../support/processes.ts';
import { tempFolder } from '../support/temp.ts';
import { ERAS, type Era, META, type SomeClient, type TestClient, testClient, textOf } from './support.ts';

const program = fileURLToPath(new URL('./on-stdio.mjs', import.meta.url));

async function open(era: Era, mode: string): Promise<TestClient> {
  const child = startChild(process.execPath, [program, mode], {
    cwd: tempFolder(),
    env: childEnv(),
    ending: 'stdin',
  });
  atEnd(async () => expect(await child.stop()).toEqual({ code: 0, signal: null }));
  if (era === 'v2 (no sessions)') {
    const { client, changes } = await openModernPipe(child);
    return testClient(client as unknown as SomeClient, changes);
  }
  const pipe = openPipe(child);
  await pipe.connect();
  return testClient(pipe.client as unknown as SomeClient, pipe.changes);
}

describe.each(ERAS)('with a client of SDK %s', (era) => {
  it('switches toolsets on and off', async () => {
    const client = await open(era, 'dynamic');
    expect(client.server()).toMatchObject({ name: 'on-stdio', version: '1.2.3' });
    expect(await client.names()).toEqual(META);
    expect(await client.json('enable_toolset', { name: 'talk' })).toMatchObject({ success: true });
    expect(await client.names()).toEqual([...META, 'talk.echo']);
    expect(await client.text('talk.echo', { text: 'hi' })).toBe('desk: hi');
    expect(await client.json('enable_toolset', { name: 'late' })).toMatchObject({ tools: ['late.late'] });
    await client.json('disable_toolset', { name: 'talk' });
    expect(await client.names()).toEqual([...META, 'late.late']);
    await waitFor(() => client.changes() === 3);
    expect(await client.call('talk.echo', { text: 'hi' })).toMatchObject({ isError: true });
  });

  it('applies the policy, and retries a loader that failed', async () => {
    const client = await open(era, 'dynamic');
    const failure = async (name: string) => {
      const result = await client.call('enable_toolset', { name });
      return { isError: result.isError, ...JSON.parse(textOf(result)) };
    };
    expect(await failure('secret')).toMatchObject({ isError: true, success: false });
    expect(await failure('flaky')).toMatchObject({ isError: true, message: expect.stringContaining('"flaky"') });
    expect(await client.names()).toEqual(META);
    expect(await client.json('enable_toolset', { name: 'flaky' })).toMatchObject({ success: true });
    await client.json('enable_toolset', { name: 'talk' });
    expect(await failure('more')).toMatchObject({ code: 'E_POLICY_MAX_ACTIVE' });
    expect(await client.names()).toEqual([...META, 'talk.echo', 'flaky.ok']);
  });

  it('has the toolsets that all clients have', async () => {
    const client = await open(era, 'static');
    expect(await client.names()).toEqual(['list_tools', 'talk.echo', 'late.late']);
    expect(await client.json('list_tools')).toMatchObject({ tools: ['talk.echo', 'late.late'] });
    expect(await client.text('late.late', { text: '' })).toBe('loaded');
  });

  it('has the toolsets that its client may use', async () => {
    const client = await open(era, 'permitted');
    expect(await client.names()).toEqual(['late.late']);
  });
});

it('refuses permissions from headers, because there are none on stdio', async () => {
  const server = await createPermissionBasedMcpServer({ catalog: {}, permissions: { source: 'headers' } });
  atEnd(() => server.close());
  await expect(server.start({ transport: 'stdio' })).rejects.toThrow('standard input has none');
});
