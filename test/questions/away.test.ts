/** Clients without sessions that are asked something and never return. */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { startHttp } from '../support/gateway.ts';
import { runningServers } from '../support/in-process-server.ts';
import { waitFor } from '../support/processes.ts';
import { answersTo, askedIn, callModern, jsonOf, type ModernReply } from '../support/questions.ts';
import { server } from '../support/server.ts';

it('an open question that a stateless client abandoned is dropped for a new call', { timeout: 60_000 }, async () => {
  const name = `away-${process.pid}`;
  const command = JSON.stringify(server('asking', '--name', name));
  const gateway = await startHttp({ config: `controls = []\n[[servers]]\nnamespace = ""\ncommand = ${command}\n` });
  const words = ['first', 'second', 'third', 'fourth', 'fifth', 'sixth'];
  const asked: ModernReply[] = [];
  for (const word of words.slice(0, 4)) asked.push(await callModern(gateway, 'ask', { word }));
  // A client that was asked just now has time to answer.
  const early = await callModern(gateway, 'ask', { word: 'early' });
  expect(early.result).toMatchObject({ isError: true, content: [{ text: expect.stringContaining('source_busy') }] });
  await sleep(5_200);
  for (const word of words.slice(4)) asked.push(await callModern(gateway, 'ask', { word }));
  expect(asked.map(askedIn)).toEqual(words.map((word) => [`${word}#1`]));
  const back = (index: number) => callModern(gateway, 'ask', { word: words[index] }, answersTo(asked[index]!));
  // A client that returns too late is told to start over. The other calls continue where they stopped.
  expect((await back(1)).result).toMatchObject({
    isError: true,
    content: [{ text: expect.stringContaining('Try again') }],
  });
  for (const index of [0, 3, 4, 5]) expect(jsonOf((await back(index)).result)).toHaveLength(1);
  await waitFor(() => runningServers(name).length <= 4);
});
