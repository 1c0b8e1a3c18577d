/** `toolgate schema`: a JSON Schema for editors that agrees with the gateway. */
import { Ajv2020 } from 'ajv/dist/2020.js';
import { beforeAll, describe, expect, it } from 'vitest';
import { runCli } from '../support/cli.ts';

type Validate = ((value: unknown) => boolean) & { errors?: unknown };
let validate: Validate;
let schema: Record<string, unknown>;
beforeAll(async () => {
  const { code, stdout, stderr } = await runCli(['schema']);
  expect([code, stderr]).toEqual([0, '']);
  schema = JSON.parse(stdout) as Record<string, unknown>;
  validate = new Ajv2020({ strict: false, allErrors: true }).compile(schema) as Validate;
});

describe('toolgate schema', () => {
  it('needs no configuration and describes every key', () => {
    expect(schema.title).toBe('Toolgate configuration');
    const described = Object.entries(schema.properties as Record<string, { description?: string }>);
    expect(described.filter(([, { description }]) => !description)).toEqual([]);
    expect(described.map(([key]) => key)).toEqual(expect.arrayContaining(['servers', 'mcpServers', 'http', 'limits']));
  });

  it.each([
    ['nothing', {}],
    ['a list of servers', { servers: [{ namespace: 'a', command: 'x' }, { url: 'http://x' }] }],
    ['a map of servers', { servers: { a: { command: 'x', args: ['y'], env: { A: 'b' } } } }],
    [
      'durations and sizes',
      { start_wait: '5s', limits: { body: '4MiB', message: 1024 }, http: { session_ttl: '24h' } },
    ],
  ])('accepts %s', (_, value) => {
    expect(validate(value), JSON.stringify(validate.errors)).toBe(true);
  });

  it.each([
    ['a key that nobody knows', { servrs: [] }],
    ['a server without command and url', { servers: [{ namespace: 'a' }] }],
    ['a duration that is none', { start_wait: 'soon' }],
    ['a port out of range', { http: { port: 70_000 } }],
  ])('refuses %s, as the gateway does', async (_, value) => {
    expect(validate(value)).toBe(false);
    const { code } = await runCli(['list', '--config', 'toolgate.json'], {
      files: { 'toolgate.json': JSON.stringify(value) },
    });
    expect(code).toBe(2);
  });

  it('declares a JSON Schema version that ajv supports', () => {
    expect(schema.$schema).toBe('https://json-schema.org/draft/2020-12/schema');
  });
});
