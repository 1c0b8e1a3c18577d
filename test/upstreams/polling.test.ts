/** Servers that close the stream of an answer before it is there, and want to be asked for the rest of it. */
import { expect, it } from 'vitest';
import { startFixture } from '../conformance/suite.ts';
import { startStdio } from '../support/gateway.ts';
import { textOf } from './use.ts';

it('gets the answer after the server has closed its stream', async () => {
  const url = await startFixture('--era', 'legacy');
  const { client } = await startStdio({ config: `controls = []\n[[servers]]\nurl = ${JSON.stringify(url)}\n` });
  const result = await client.callTool({ name: 'test_reconnection', arguments: {} });
  expect(textOf(result)).toBe('answered after the stream was closed');
});
