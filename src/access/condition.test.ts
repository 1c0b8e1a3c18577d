import { describe, expect, it } from 'vitest';
import { catalogOf } from '../../test/support/catalog.ts';
import { GatewayError } from '../base/errors.ts';
import { configFromValue } from '../config/load.ts';
import type { PolicyConfig } from '../config/policy.ts';
import { toBytes } from '../protocol/json.ts';
import { readMessage } from '../protocol/read.ts';
import { touches } from './argument-match.ts';
import { circumstancesAt, plainSubject } from './circumstances.ts';
import { hintsOf } from './condition.ts';
import { hasTimes, narrowToPermission, permissionAt, requireArguments } from './permission.ts';
import { explain, isAllowed, rulesFor } from './policy.ts';

const tool = (name: string, annotations?: object) => ({ name, ...(annotations && { annotations }) });
const catalog = catalogOf({
  namespace: 'fs',
  tool: [
    tool('read', { readOnlyHint: true, destructiveHint: true }),
    tool('write', { destructiveHint: false, idempotentHint: true }),
    tool('wipe', { destructiveHint: true, openWorldHint: false }),
    tool('mute'),
  ],
  resource: ['file://a'],
  prompt: ['ask'],
});
const entry = (name: string) => catalog.entries.tool.get(`fs_${name}`)!;

function policyOf(...conditions: object[]): PolicyConfig {
  return configFromValue({ conditions }, { cwd: '/', env: {} }).policy!;
}

const at = (time: string) => circumstancesAt(plainSubject('a'), Date.parse(time));

function allowedAt(policy: PolicyConfig, time: string, one = entry('read')): boolean {
  return isAllowed(rulesFor(policy, 'a'), one, at(time));
}

describe('a condition on the time of day', () => {
  const day = policyOf({ between: ['08:00', '18:00'] });
  const night = policyOf({ between: ['22:00', '06:00'], days: ['fri'] });
  const berlin = policyOf({ between: ['08:00', '18:00'], days: ['mon'], timezone: 'Europe/Berlin' });

  it.each([
    ['2026-11-16T07:59:59Z', false],
    ['2026-11-16T08:00:00Z', true],
    ['2026-11-16T17:59:59Z', true],
    ['2026-11-16T18:00:00Z', false],
  ])('from 08:00 to 18:00, at %s: %s', (time, within) => {
    expect(allowedAt(day, time)).toBe(within);
  });

  it.each([
    ['2026-11-20T21:59:00Z', false],
    ['2026-11-20T22:00:00Z', true],
    ['2026-11-21T05:59:00Z', true],
    ['2026-11-21T06:00:00Z', false],
    ['2026-11-21T22:00:00Z', false],
    ['2026-11-20T05:00:00Z', false],
  ])('on Friday night, at %s: %s', (time, within) => {
    expect(allowedAt(night, time)).toBe(within);
  });

  it.each([
    ['2026-11-16T07:00:00Z', true],
    ['2026-11-16T17:00:00Z', false],
    // In summer, Monday in Berlin begins one hour earlier in UTC.
    ['2026-07-13T06:00:00Z', true],
    ['2026-07-13T16:00:00Z', false],
    ['2026-11-17T09:00:00Z', false],
  ])('on Monday in Berlin, at %s: %s', (time, within) => {
    expect(allowedAt(berlin, time)).toBe(within);
  });

  it('applies to all items unless it names some', () => {
    const other = at('2026-11-16T20:00:00Z');
    const rules = rulesFor(day, 'a');
    for (const kind of ['tool', 'resource', 'prompt'] as const)
      for (const one of catalog.entries[kind].values()) expect(isAllowed(rules, one, other)).toBe(false);
    const tools = rulesFor(policyOf({ tools: ['fs.w*'], between: ['08:00', '18:00'] }), 'a');
    expect(isAllowed(tools, entry('write'), other)).toBe(false);
    expect(isAllowed(tools, entry('read'), other)).toBe(true);
    expect(isAllowed(tools, [...catalog.entries.resource.values()][0]!, other)).toBe(true);
  });

  it('yields a permission that is valid until the next minute and stays equal while nothing changes', () => {
    const at = (time: string) => permissionAt(day, plainSubject('a'), Date.parse(time))!;
    expect(at('2026-11-16T09:00:30.500Z').freshUntil).toBe(Date.parse('2026-11-16T09:01:00Z'));
    expect(at('2026-11-16T09:00:00Z').key).toBe(at('2026-11-16T17:59:00Z').key);
    expect(at('2026-11-16T09:00:00Z').key).not.toBe(at('2026-11-16T18:00:00Z').key);
    expect(narrowToPermission(catalog, at('2026-11-16T09:00:00Z'))).toBe(
      narrowToPermission(catalog, at('2026-11-16T10:00:00Z')),
    );
    expect(hasTimes(day)).toBe(true);
    const timeless = policyOf({ annotations: { readOnlyHint: true } });
    expect(hasTimes(timeless)).toBe(false);
    expect(permissionAt(timeless, plainSubject('a'), 0)!.freshUntil).toBe(Number.POSITIVE_INFINITY);
  });

  it('appears in the explanation', () => {
    const { allowed, findings } = explain(rulesFor(berlin, 'a'), entry('read'), at('2026-11-16T17:00:00Z'));
    expect(allowed).toBe(false);
    expect(findings.at(-1)).toEqual({
      rule: 'conditions[0]',
      verdict: 'deny',
      text: 'is not met: it is Mon 18:00 in Europe/Berlin',
    });
  });
});

describe('a condition on annotations', () => {
  it('uses the tool’s annotations, or the protocol’s defaults', () => {
    expect(['read', 'write', 'wipe', 'mute'].map((name) => hintsOf(entry(name)))).toEqual([
      { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: true },
      { readOnlyHint: false, destructiveHint: false, idempotentHint: true, openWorldHint: true },
      { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: false },
      { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: true },
    ]);
  });

  it('applies to tools only', () => {
    const view = narrowToPermission(
      catalog,
      permissionAt(policyOf({ annotations: { destructiveHint: false } }), plainSubject('a'), 0),
    );
    expect([...view.entries.tool.keys()]).toEqual(['fs_read', 'fs_write']);
    expect(view.entries.resource.size + view.entries.prompt.size).toBe(2);
  });
});

describe('a condition on arguments', () => {
  const policy = policyOf({ tools: ['fs.write'], arguments: { path: ['/srv/*', '/tmp/?'], 'options.mode': 'safe' } });
  const permission = permissionAt(policy, plainSubject('a'), 0)!;

  function check(params: string, name = 'write'): string | null {
    const message = readMessage(
      Buffer.from(
        `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"fs_${name}","arguments":${params}}}`,
      ),
    );
    try {
      requireArguments(permission, entry(name), message);
      return null;
    } catch (error) {
      if (error instanceof GatewayError) return `${error.code}: ${error.message}`;
      throw error;
    }
  }

  it.each([
    '{"path":"/srv/a","options":{"mode":"safe"}}',
    '{"options":{"x":1,"mode":"safe"},"path":"\\/srv\\/\\u0061","more":true}',
    '{"path":"/tmp/x","options.mode":"safe"}',
    '{"path":["/srv/a","/srv/b"],"options":{"mode":["safe"]}}',
    '{"path":"/srv/a..b","options":{"mode":"safe"}}',
    '{"path":"/srv/a","options":[{"mode":"safe"},{"mode":"safe"}]}',
    '{"path":"/srv/a","options":{"mode":"safe"},"options.mode":"safe"}',
  ])('accepts %s', (params) => {
    expect(check(params)).toBeNull();
  });

  it.each([
    '{}',
    '[]',
    '{"path":"/srv/a"}',
    '{"path":"/etc/passwd","options":{"mode":"safe"}}',
    '{"path":"/srv/../etc/passwd","options":{"mode":"safe"}}',
    '{"path":"/srv/..","options":{"mode":"safe"}}',
    '{"path":"/srv/a","path":"/etc/passwd","options":{"mode":"safe"}}',
    '{"path":"/srv/a","Path":"/etc/passwd","options":{"mode":"safe"}}',
    '{"PATH":"/srv/a","options":{"mode":"safe"}}',
    '{"path":["/srv/a","/etc/passwd"],"options":{"mode":"safe"}}',
    '{"path":[],"options":{"mode":"safe"}}',
    '{"path":{"a":"/srv/a"},"options":{"mode":"safe"}}',
    '{"path":"/srv/a","options":{"mode":"safe","MODE":"wild"}}',
    '{"path":"/srv/a","options":"safe"}',
    '{"path":null,"options":{"mode":"safe"}}',
    '{"path":"/srv/a","options":{"mode":"hard"},"options.mode":"safe"}',
    '{"path":"/srv/a","options":{"mode":"safe"},"options.mode":"hard"}',
    '{"path":"/srv/a","options":{},"options.mode":"safe"}',
    '{"path":"/srv/a","options":[{"mode":"safe"},{"mode":"hard"}]}',
    '{"path":"/srv/a","options":[{"mode":"safe"},{}]}',
    '{"path":"/srv/a","options":[]}',
  ])('refuses %s', (params) => {
    expect(check(params)).toMatch(
      /^arguments_denied: The policy does not allow this call of "fs_write": "(path|options.mode)" has to be given and match/,
    );
  });

  it('does not reveal the argument values in its error', () => {
    expect(check('{"path":"canary"}')).not.toContain('canary');
  });

  it('ignores arguments of other tools', () => {
    expect(check('{}', 'read')).toBeNull();
  });

  it('matches numbers and booleans', () => {
    const strict = permissionAt(policyOf({ arguments: { depth: '1', force: 'false' } }), plainSubject('a'), 0)!;
    const message = (args: object) =>
      readMessage(
        toBytes({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'fs_read', arguments: args } }),
      );
    expect(() => requireArguments(strict, entry('read'), message({ depth: 1, force: false }))).not.toThrow();
    expect(() => requireArguments(strict, entry('read'), message({ depth: 10, force: false }))).toThrow(GatewayError);
    expect(() => requireArguments(strict, entry('read'), message({ depth: 1, force: true }))).toThrow(GatewayError);
  });
});

describe('a condition on paths', () => {
  const call = (args: object) =>
    readMessage(toBytes({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'fs_read', arguments: args } }));
  const conditionOf = (condition: object) => policyOf(condition).conditions[0]!;

  it.each(['.env', '.env/', './.env', 'a/../.env', 'a//.env/.', 'a\\.env', '/x/.ENV', 'a.env'])(
    'means %j by *.env, alone, in lists and in lists of objects',
    (path) => {
      const rule = conditionOf({ paths: { '*': '*.env' } });
      const nested = conditionOf({ paths: { 'opts.path': '*.env' } });
      expect(touches(rule, call({ path }))).toBe(true);
      expect(touches(rule, call({ paths: ['b', path] }))).toBe(true);
      expect(touches(rule, call({ files: [{ path: 'b' }, { path, content: 'x' }] }))).toBe(true);
      for (const opts of [{ path }, { path: ['b', path] }, [{ path: 'b' }, { path }]])
        expect(touches(nested, call({ opts })), JSON.stringify(opts)).toBe(true);
      expect(touches(nested, call({ 'opts.path': path, opts: { path: 'b' } }))).toBe(true);
    },
  );

  it('means a path that a server shortens, and not a long text', () => {
    const rule = conditionOf({ paths: { '*': '*.env' } });
    expect(touches(rule, call({ path: `${'x/../'.repeat(10_000)}.env` }))).toBe(true);
    expect(touches(rule, call({ path: 'a', content: 'x'.repeat(100_000) }))).toBe(false);
  });

  it('does not mean other files, and is met by nothing if it is not given', () => {
    const rule = conditionOf({ paths: { '*': '*.env' } });
    for (const args of [{}, { path: '.env.md' }, { path: '.env/../b' }, { paths: [] }, { n: 1 }])
      expect(touches(rule, call(args)), JSON.stringify(args)).toBe(false);
    const both = conditionOf({ paths: { 'path*': '*.env' }, arguments: { mode: 'w' } });
    expect(touches(both, call({ path: '.env', mode: 'r' }))).toBe(false);
    expect(touches(both, call({ path: '.env', mode: 'w' }))).toBe(true);
  });

  it('holds for a whole call or not at all', () => {
    const permission = permissionAt(policyOf({ paths: { 'path*': ['src/*', '/srv/*'] } }), plainSubject('a'), 0)!;
    const isMet = (args: object) => {
      try {
        requireArguments(permission, entry('read'), call(args));
        return true;
      } catch {
        return false;
      }
    };
    for (const path of ['src/a', './src/a', 'src/../src/b/', '/srv/x/..//y'])
      expect([isMet({ path }), isMet({ paths: ['src/b', path] })], path).toEqual([true, true]);
    for (const path of ['src/..', 'src/../../etc', '/srv/../etc', 'SRC/a', 'a', '', 'src/a\0b', 7])
      expect([isMet({ path }), isMet({ paths: ['src/b', path] })], String(path)).toEqual([false, false]);
    expect(isMet({ other: 'src/a' })).toBe(false);
    // A server could shorten it, but nobody has a reason to send it.
    expect(isMet({ path: `src/${'x/../'.repeat(10_000)}a` })).toBe(false);
  });
});
