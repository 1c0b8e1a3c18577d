/** Conditions that are expressions, and rules that are only tried: what agents see, can call, and what the audit says. */
import { beforeAll, describe, expect, it } from 'vitest';
import { configFromValue, createIdentity, type Gateway, type Identity, openHttpDoor } from '../../src/index.ts';
import { type Ask, openAsk, type Reply } from '../support/asking.ts';
import { auditOf, type Line, readLines } from '../support/audit-records.ts';
import { atEnd } from '../support/cleanup.ts';
import { createGateway } from '../support/in-process-gateway.ts';
import { patient } from '../support/patience.ts';
import { waitFor } from '../support/processes.ts';
import { serverEntry } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';

const cwd = tempFolder();
const items = ['--tools', 'pay,find,echo', '--resources', 'doc://a', '--prompts', 'ask'];
const mcpServers = { s: serverEntry('basic', '--name', 's', ...items) };
const configOf = (more: object) => configFromValue({ mcpServers, controls: [], ...more }, { cwd, env: {} });

const WHEN = 'claims.team == "ops" && args.amount < 100';
const config = configOf({
  conditions: [
    { tools: ['s.pay'], when: WHEN },
    {
      tools: ['s.find'],
      resources: ['s.doc://a'],
      prompts: ['s.ask'],
      when: 'claims.team == "ops" || agent == "root"',
    },
  ],
});

const people: Record<string, Identity> = {
  ops: createIdentity('ann', { principal: 'ops', claims: { team: 'ops' } }),
  web: createIdentity('ann', { principal: 'web', claims: { team: 'web' } }),
  none: createIdentity('ann', { principal: 'none' }),
  root: createIdentity('root'),
};

let gateway: Gateway;
let origin: string;
const asks = new Map<string, Ask>();

beforeAll(async () => {
  gateway = createGateway(config, { audit: true });
  atEnd(() => gateway.close());
  const identify = ({ headers }: { headers: Record<string, unknown> }) => people[String(headers['x-who'])]!;
  const door = await openHttpDoor(gateway, { host: '127.0.0.1', port: 0, identify: identify as never });
  atEnd(() => door.close());
  origin = `http://127.0.0.1:${door.port}`;
  await gateway.tried();
  for (const who of Object.keys(people))
    for (const kind of ['http', 'modern http', 'rest'] as const)
      asks.set(`${kind} ${who}`, await openAsk(kind, gateway, origin, who, { 'x-who': who }));
});

const names = async (who: string, door = 'http') => {
  const { tools } = (await asks.get(`${door} ${who}`)!('tools/list')).result!;
  return (tools as { name: string }[]).map(({ name }) => name.replace('s_', ''));
};

async function call(who: string, tool: string, args: object | string, door = 'http'): Promise<string> {
  const params = `{"name":"s_${tool}","arguments":${typeof args === 'string' ? args : JSON.stringify(args)}}`;
  return textOf(await asks.get(`${door} ${who}`)!('tools/call', params));
}

/** The message of a refusal, or "ok". */
function textOf({ error, result }: Reply): string {
  if (error !== undefined) return error.message;
  const [block] = (result?.isError === true ? result.content : []) as { text: string }[];
  return block === undefined ? 'ok' : (JSON.parse(block.text) as { message: string }).message;
}

/** The newest line of the audit for which this holds. */
const lineOf = (fits: (line: Line) => boolean): Promise<Line> =>
  waitFor(() => readLines(auditOf(cwd)).findLast(fits) ?? null);

describe.each(['http', 'modern http', 'rest'])('over %s, a condition that is an expression', (door) => {
  it('decides by claims and agent what is listed, and whether it can be called', async () => {
    expect(await names('ops', door)).toEqual(['pay', 'find', 'echo']);
    expect(await names('web', door)).toEqual(['pay', 'echo']);
    expect(await names('none', door)).toEqual(['pay', 'echo']);
    expect(await names('root', door)).toEqual(['pay', 'find', 'echo']);
    expect(await call('ops', 'find', {}, door)).toBe('ok');
    expect(await call('web', 'find', {}, door)).toContain('There is no tool "s_find"');
  });

  it('decides by arguments when a call is made', async () => {
    expect(await call('ops', 'pay', { amount: 99 }, door)).toBe('ok');
    expect(await call('ops', 'pay', { amount: 100 }, door)).toContain('a condition on its arguments is not met');
    expect(await call('web', 'pay', { amount: 1 }, door)).toContain('does not allow this call of "s_pay"');
  });

  it('does not hold if it cannot be decided', async () => {
    for (const args of [
      '{}',
      '{"amount":"1"}',
      '{"amount":null}',
      '{"amount":1,"amount":500}',
      '{"Amount":500,"amount":1}',
    ])
      expect(await call('ops', 'pay', args, door), args).toContain('a condition on its arguments is not met');
    expect(await call('none', 'pay', { amount: 1 }, door)).toContain('a condition on its arguments is not met');
    expect(await call('ops', 'pay', `{"amount":1,"x":${'['.repeat(100)}${']'.repeat(100)}}`, door)).not.toBe('ok');
  });
});

describe('the audit', () => {
  it('says which rule denied a call, and why', async () => {
    await call('ops', 'pay', { amount: 512 });
    const denial = await lineOf(({ status, detail }) => status === 'arguments_denied' && /false/.test(String(detail)));
    expect([denial.rule, denial.detail]).toEqual(['conditions[0]', `is not met: \`${WHEN}\` is false`]);
    await call('ops', 'pay', {});
    const undecided = await lineOf(({ detail }) => /No such key: amount/.test(String(detail)));
    expect([undecided.rule, undecided.detail]).toEqual([
      'conditions[0]',
      `is not met: \`${WHEN}\` cannot be decided: No such key: amount`,
    ]);
    await call('web', 'find', {});
    const hidden = await lineOf(({ rule }) => rule === 'conditions[1]');
    expect(hidden.detail).toBe('is not met: `claims.team == "ops" || agent == "root"` is false');
  });
});

it('does not show the expression to the agent', async () => {
  expect(await call('ops', 'pay', { amount: 512 })).not.toContain('claims');
});

it('decides resources and prompts too', async () => {
  const read = async (who: string) => (await asks.get(`http ${who}`)!('resources/read', { uri: 's+doc://a' })).error;
  expect(await read('ops')).toBeUndefined();
  expect((await read('web'))?.message).toContain('There is no resource');
  const get = async (who: string) => (await asks.get(`http ${who}`)!('prompts/get', { name: 's_ask' })).error;
  expect(await get('ops')).toBeUndefined();
  expect((await get('web'))?.message).toContain('There is no prompt');
});

it('bounds the time of loops, however large the arguments are', async () => {
  gateway.apply(
    configOf({ conditions: [{ tools: ['s.echo'], when: 'args.list.all(x, args.list.all(y, x != "a" || y != "b"))' }] }),
  );
  const start = performance.now();
  expect(await call('ops', 'echo', { list: Array(20_000).fill('c') })).toContain('condition');
  // Going through all pairs would take minutes.
  expect(performance.now() - start).toBeLessThan(patient(10_000));
  expect(await call('ops', 'echo', { list: ['c', 'd'] })).toBe('ok');
  expect(await call('ops', 'echo', { list: ['a', 'b'] })).toContain('condition');
  gateway.apply(config);
});

it('asks a person if a confirm rule cannot be decided, and not if it does not hold', async () => {
  gateway.apply(
    configOf({ security: { approvers: 'operator', confirm: [{ tools: ['s.pay'], when: 'args.amount > 100' }] } }),
  );
  expect(await call('ops', 'pay', { amount: 5 })).toBe('ok');
  for (const args of [{ amount: 500 }, { amount: 'many' }, {}]) {
    const calling = call('ops', 'pay', args);
    const request = await waitFor(() => gateway.approvals.list()[0] ?? null);
    gateway.approvals.decide(request.id, { approved: false, by: 'the test', lasting: null, reason: 'no' });
    expect(await calling, JSON.stringify(args)).toContain('no');
  }
  gateway.apply(config);
});

describe('a dry run', () => {
  const dryOf = (fits: (line: Line) => boolean) => lineOf((line) => line.dry_run !== undefined && fits(line));
  const denied = { denied_tools: { s: ['find'] }, denied_resources: { s: ['doc://a'] } };
  const conditions = [{ tools: ['s.pay'], when: 'args.amount < 100' }];

  it('of the whole policy lists and lets pass everything, and records what it would have decided', async () => {
    const before = Number(gateway.metrics.dryRuns.get('deny'));
    gateway.apply(configOf({ dry_run: true, ...denied, conditions }));
    expect((await names('web')).toSorted()).toEqual(['echo', 'find', 'pay']);
    expect(await call('web', 'find', {})).toBe('ok');
    const list = await dryOf(({ tool }) => tool === 'find');
    expect([list.kind, list.status, list.dry_run, list.rule]).toEqual(['call', 'ok', 'deny', 'denied_tools.s']);
    expect(await call('web', 'pay', { amount: 700 })).toBe('ok');
    const args = await dryOf(({ tool }) => tool === 'pay');
    expect([args.dry_run, args.rule, args.detail]).toEqual([
      'deny',
      'conditions[0]',
      'is not met: `args.amount < 100` is false',
    ]);
    expect((await asks.get('http web')!('resources/read', { uri: 's+doc://a' })).error).toBeUndefined();
    expect((await dryOf(({ method }) => method === 'resources/read')).rule).toBe('denied_resources.s');
    expect(Number(gateway.metrics.dryRuns.get('deny')) - before).toBe(3);
    expect(await call('web', 'pay', { amount: 7 })).toBe('ok');
    expect(Number(gateway.metrics.dryRuns.get('deny')) - before).toBe(3);
  });

  it('of one agent leaves the others as they are', async () => {
    gateway.apply(
      configOf({
        ...denied,
        agent_policies: { ann: { dry_run: true }, root: {} },
        default_policy: { allow_unknown_tools: true },
      }),
    );
    expect(await call('web', 'find', {})).toBe('ok');
    expect(await call('root', 'find', {})).toContain('There is no tool');
  });

  it('of one rule leaves the other rules as they are', async () => {
    const tried = { tools: ['s.pay'], when: 'args.amount < 10', dry_run: true };
    gateway.apply(configOf({ conditions: [...conditions, tried] }));
    expect(await call('web', 'pay', { amount: 50 })).toBe('ok');
    expect((await dryOf(({ detail }) => /< 10`/.test(String(detail)))).rule).toBe('conditions[1]');
    expect(await call('web', 'pay', { amount: 500 })).toContain('condition');
  });

  it('of a confirm rule does not ask', async () => {
    const confirm = [{ tools: ['s.echo'], dry_run: true }];
    gateway.apply(configOf({ security: { confirm } }));
    expect(await call('web', 'echo', {})).toBe('ok');
    expect((await dryOf(({ dry_run: tried }) => tried === 'confirm')).rule).toBe('security.confirm[0]');
  });

  it('is a notice of the configuration, for the start and for doctor', () => {
    const { notices } = configOf({
      dry_run: true,
      conditions: [{ when: 'agent == "a"', dry_run: true }],
      agent_policies: { ann: { dry_run: true } },
    });
    expect(notices).toEqual([
      'dry_run is on: the policy is not enforced, only recorded in the audit.',
      'agent_policies.ann.dry_run is on: the rule is not enforced, only recorded in the audit.',
      'conditions[0].dry_run is on: the rule is not enforced, only recorded in the audit.',
    ]);
  });
});
