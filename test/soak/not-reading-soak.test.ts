/** Servers and clients that do not read, with every kind of message that the gateway sends. */
import { describe, expect, it } from 'vitest';
import {
  endedIn,
  FROM_SERVERS,
  sufferDeafClient,
  sufferDeafPage,
  sufferDeafServers,
  TO_CLIENTS,
} from '../support/not-reading.ts';

it('servers that do not read are ended with the reason, memory is bounded, and others are served', {
  timeout: 600_000,
}, async () => {
  // Those that make the gateway answer without end, and the one over HTTP.
  const ASKING = ['ping', 'unknown', 'roots', 'sampling', 'elicitation', 'web'];
  const { grown, failures, log } = await sufferDeafServers(FROM_SERVERS, ASKING, 400_000);
  expect(failures).toEqual([]);
  expect([...endedIn(log)]).toEqual(expect.arrayContaining(ASKING));
  expect(log).toContain('does not take our messages');
  expect(grown).toBeLessThan(400);
});

describe.each(['session', 'sse', 'modern', 'stdio'] as const)('a client over %s that does not read', (door) => {
  it.each(TO_CLIENTS)('gets %s, and is cut off or gets no more', { timeout: 120_000 }, async (kind) => {
    const { grown, failures } = await sufferDeafClient(door, kind);
    console.log(`${door}, ${kind}: ${grown} MB more`);
    expect(failures).toEqual([]);
    expect(grown).toBeLessThan(150);
  });
});

it.each(['log', 'progress', 'elicitation'])(
  'a dashboard that does not read what it tried gets no more %s',
  {
    timeout: 120_000,
  },
  async (kind) => {
    const { grown, failures } = await sufferDeafPage(kind);
    console.log(`dashboard, ${kind}: ${grown} MB more`);
    expect(failures).toEqual([]);
    expect(grown).toBeLessThan(150);
  },
);
