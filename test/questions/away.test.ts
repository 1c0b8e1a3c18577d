/** Clients without sessions that are asked something and do not come back. */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { startHttp } from '../support/gateway.ts';
import { running, waitFor } from '../support/processes.ts';
import { server } from '../support/server.ts';
import { answersTo, askedIn, callModern, jsonOf, type ModernReply } from './use.ts';

it('calls that nobody came back for give way to new ones', { timeout: 60_000 }, async () => {
  const name = `away-${process.pid}`;
  const command = JSON.stringify(server('asking', '--name', name));
  const gateway = await startHttp({ config: `controls = []\n[[servers]]\nnamespace = ""\ncommand = ${command}\n` });
  const words = ['first', 'second', 'third', 'fourth', 'fifth', 'sixth'];
  const asked: ModernReply[] = [];
  for (const word of words.slice(0, 4)) asked.push(await callModern(gateway, 'ask', { word }));
  // Whoever was asked just now has time to answer.
  const early = await callModern(gateway, 'ask', { word: 'early' });
  expect(early.result).toMatchObject({ isError: true, content: [{ text: expect.stringContaining('source_busy') }] });
  await sleep(5_200);
  for (const word of words.slice(4)) asked.push(await callModern(gateway, 'ask', { word }));
  expect(asked.map(askedIn)).toEqual(words.map((word) => [`${word}#1`]));
  const back = (index: number) => callModern(gateway, 'ask', { word: words[index] }, answersTo(asked[index]!));
  // Whoever does come back after all is told to begin again; the others find their calls where they left them.
  expect((await back(1)).result).toMatchObject({
    isError: true,
    content: [{ text: expect.stringContaining('Try again') }],
  });
  for (const index of [0, 3, 4, 5]) expect(jsonOf((await back(index)).result)).toHaveLength(1);
  await waitFor(() => running(name).length <= 4);
});
