/** Clients without sessions that are asked something and never return. */
import { expect, it } from 'vitest';
import { startHttp } from '../support/gateway.ts';
import { runningServers } from '../support/in-process-server.ts';
import { waitFor } from '../support/processes.ts';
import { answersTo, askedIn, callModern, jsonOf, type ModernReply } from '../support/questions.ts';
import { server } from '../support/server.ts';

it('an open question that a stateless client abandoned is dropped for another agent', {
  timeout: 120_000,
}, async () => {
  const name = `away-${process.pid}`;
  const command = JSON.stringify(server('asking', '--name', name));
  const gateway = await startHttp({
    config: `controls = []\n[http]\ntrust_agent_header = true\n[[servers]]\nnamespace = ""\ncommand = ${command}\n`,
  });
  const agent = (id: string) => ({ url: gateway.url, headers: { 'x-agent-id': id } });
  const asked: ModernReply[] = [];
  const ask = async (id: string, word: string) => asked.push(await callModern(agent(id), 'ask', { word }));
  const back = (id: string, index: number) =>
    callModern(agent(id), 'ask', { word: `w${index}` }, answersTo(asked[index]!));
  // All connections are held by calls that wait for an answer.
  for (let n = 0; n < 8; n++) await ask('greedy', `w${n}`);
  for (let n = 8; n < 12; n++) await ask('modest', `w${n}`);
  // It waits until the longest absence of the agent that holds most is too long.
  await ask('third', 'w12');
  expect(asked.map(askedIn)).toEqual(asked.map((_, n) => [`w${n}#1`]));
  // A client that returns too late is told to start over. The other calls continue where they stopped. The first one is
  // on the process that is never closed.
  expect((await back('greedy', 1)).result).toMatchObject({
    isError: true,
    content: [{ text: expect.stringContaining('for another agent') }],
  });
  for (const index of [0, 2, 7]) expect(jsonOf((await back('greedy', index)).result)).toHaveLength(1);
  for (const index of [8, 11]) expect(jsonOf((await back('modest', index)).result)).toHaveLength(1);
  expect(jsonOf((await back('third', 12)).result)).toHaveLength(1);
  await waitFor(() => runningServers(name).length <= 12);
});
