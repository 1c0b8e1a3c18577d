/** Servers that close the stream of a call before the answer and expect the client to reconnect for the rest. */
import { expect, it } from 'vitest';
import { startFixture } from '../support/conformance-suite.ts';
import { startStdio } from '../support/gateway.ts';
import { textOf } from '../support/modern-servers.ts';

it('reconnects for the answer after the server has closed the stream of the call', async () => {
  const url = await startFixture('--era', 'legacy');
  const { client } = await startStdio({ config: `controls = []\n[[servers]]\nurl = ${JSON.stringify(url)}\n` });
  const result = await client.callTool({ name: 'test_reconnection', arguments: {} });
  expect(textOf(result)).toBe('answered after the stream was closed');
});
