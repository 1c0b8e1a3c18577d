/** The fixture without a gateway. So a failure behind the gateway is a fault of the gateway. */
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { describe, expect, it } from 'vitest';
import { atEnd } from '../support/cleanup.ts';
import {
  explain,
  named,
  type Revision,
  runScenario,
  runSuite,
  scoredScenarios,
  startFixture,
} from '../support/conformance-suite.ts';
import { serverEntry } from '../support/server.ts';

interface Expected {
  readonly scored: number;
  /** Run by the suite, but not scored. */
  readonly passing: readonly string[];
  readonly failing: readonly string[];
}

const expected: Record<Revision, Expected> = {
  '2025-11-25': {
    scored: 30,
    passing: ['json-schema-2020-12', 'server-session-lifecycle', 'server-sse-polling'],
    failing: [],
  },
  '2026-07-28': {
    scored: 37,
    passing: ['http-custom-header-server-validation', 'http-header-validation', 'json-schema-2020-12'],
    // An extension that the fixture does not support.
    failing: [
      'tasks-capability-negotiation',
      'tasks-dispatch-and-envelope',
      'tasks-lifecycle',
      'tasks-mrtr-composition',
      'tasks-mrtr-input',
      'tasks-request-headers',
      'tasks-request-state-removal',
      'tasks-required-task-error',
      'tasks-status-notifications',
      'tasks-wire-fields',
    ],
  },
};
const revisions = Object.keys(expected) as Revision[];

describe('the conformance fixture', () => {
  it.each(revisions)('passes every scored scenario of %s', { timeout: 120_000 }, async (revision) => {
    const verdicts = await runSuite(await startFixture(), revision);
    const { scored, passing, failing } = expected[revision];
    const passed = named(verdicts, true, 'passed');
    expect(passed, explain(verdicts)).toEqual([...scoredScenarios(revision)].sort());
    expect(passed).toHaveLength(scored);
    expect(named(verdicts, false, 'passed'), explain(verdicts)).toEqual(passing);
    expect(named(verdicts, false, 'failed', 'vacuous')).toEqual(failing);
  });

  it.each([
    ['legacy', '2025-11-25', '2026-07-28'],
    ['modern', '2026-07-28', '2025-11-25'],
  ] as const)(
    'serves only the %s era over HTTP if configured so',
    { timeout: 60_000 },
    async (era, served, refused) => {
      const url = await startFixture('--era', era);
      expect(await runScenario(url, served, 'tools-list')).toMatchObject({ outcome: 'passed' });
      expect(await runScenario(url, refused, 'tools-list')).toMatchObject({ outcome: 'failed' });
    },
  );

  // The suite supports only HTTP.
  it.each([
    ['both', '2026-07-28'],
    ['legacy', '2025-11-25'],
    ['modern', '2026-07-28'],
  ] as const)('on stdio, with the eras: %s, negotiates %s and answers', async (era, revision) => {
    const client = new Client({ name: 'test', version: '1.0.0' }, { versionNegotiation: { mode: 'auto' } });
    atEnd(() => client.close());
    await client.connect(
      new StdioClientTransport(serverEntry('conformance', ...(era === 'both' ? [] : ['--era', era]))),
    );
    expect(client.getNegotiatedProtocolVersion()).toBe(revision);
    expect((await client.listTools()).tools.map(({ name }) => name)).toContain('test_sampling');
    expect(await client.callTool({ name: 'test_simple_text' })).toMatchObject({ content: [{ type: 'text' }] });
  });

  it('refuses a legacy client on stdio if it supports only the modern era', async () => {
    const client = new Client({ name: 'test', version: '1.0.0' });
    atEnd(() => client.close());
    const connecting = client.connect(new StdioClientTransport(serverEntry('conformance', '--era', 'modern')));
    await expect(connecting).rejects.toThrow('Unsupported protocol version');
  });
});
