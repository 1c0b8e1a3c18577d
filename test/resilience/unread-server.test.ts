/** Servers and clients that do not read must not fill the gateway's memory. The soak run has every kind of message. */
import { expect, it } from 'vitest';
import { sufferDeafClient, sufferDeafServers } from '../support/not-reading.ts';
import { isWide } from '../support/wide.ts';

const KINDS = ['ping', 'unknown', 'nothing'];

it('questions of servers that never read the answers do not fill the memory, and others are served', {
  timeout: 120_000,
}, async () => {
  const { grown, failures, log } = await sufferDeafServers(KINDS, ['no server'], isWide ? 8_000 : 5_000);
  expect(failures).toEqual([]);
  expect(log).toContain('does not take our messages');
  // The answers grew by 35 MB each second.
  expect(grown).toBeLessThan(isWide ? 200 : 180);
});

it.each([
  ['stdio', 'log'],
  ['sse', 'progress'],
] as const)(
  'a client over %s that does not read %s is cut off, with the reason in the log',
  {
    timeout: 120_000,
  },
  async (door, kind) => {
    const { grown, log, failures } = await sufferDeafClient(door, kind);
    expect(failures).toEqual([]);
    expect(log).toMatch(/a client was cut off: it left \d+ bytes unread/);
    expect(grown).toBeLessThan(150);
  },
);
