/** Tokens that the operator has bound to tasks: their holders work on these and on nothing else. */
import { beforeAll, describe, expect, it } from 'vitest';
import { configFromValue, type Gateway, openAgentStore, openHttpDoor } from '../../src/index.ts';
import { type Ask, openAsk } from '../support/asking.ts';
import { auditOf, readLines } from '../support/audit-records.ts';
import { atEnd } from '../support/cleanup.ts';
import { createGateway } from '../support/in-process-gateway.ts';
import { waitFor } from '../support/processes.ts';
import { serverEntry } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';

const cwd = tempFolder();
const READING = { type: 'reading' };
const WRITING = { type: 'writing', service: 'notes' };
const token = (name: string) => `token-of-the-agent-${name}`;
const configOf = (twoTasks: unknown) =>
  configFromValue(
    {
      mcpServers: { s: serverEntry('basic', '--tools', 'read,write,drop') },
      controls: [],
      task_rule_files: [],
      task_profiles: {
        default: { tools: { s: ['read', 'write', 'drop'] } },
        reading: { types: ['reading'], tools: { s: ['read'] } },
        writing: { types: ['writing'], tools: { s: ['write'] } },
      },
      conditions: [{ tools: ['s.write'], when: 'task.type in ["", "writing"]' }],
      agents: {
        free: { token: token('free') },
        one: { token: token('one'), tasks: READING },
        two: { token: token('two'), tasks: twoTasks },
        text: { token: token('text'), tasks: 'anything at all' },
      },
    },
    { cwd, env: {} },
  );

let gateway: Gateway;
let origin: string;

beforeAll(async () => {
  gateway = createGateway(configOf([READING, WRITING]), { audit: true });
  atEnd(() => gateway.close());
  const door = await openHttpDoor(gateway, { host: '127.0.0.1', port: 0, token: null });
  atEnd(() => door.close());
  origin = `http://127.0.0.1:${door.port}`;
  await gateway.tried();
});

const KINDS = ['http', 'modern http', 'sse', 'rest'] as const;
const headersOf = (who: string, task?: string) => ({
  authorization: `Bearer ${who.startsWith('tg_') ? who : token(who)}`,
  ...(task !== undefined && { 'x-task': task }),
});
const open = (kind: (typeof KINDS)[number], who: string, task?: string): Promise<Ask> =>
  openAsk(kind, gateway, origin, who, headersOf(who, task));
const list = async (ask: Ask) => {
  const { tools } = (await ask('tools/list')).result!;
  return (tools as { name: string }[]).map(({ name }) => name);
};
const status = async (who: string, task?: string) =>
  (await fetch(`${origin}/tools`, { headers: headersOf(who, task) })).status;

describe.each(KINDS)('over %s, a token', (kind) => {
  it('that is not bound is good for any task', async () => {
    expect(await list(await open(kind, 'free'))).toEqual(['s_read', 's_write', 's_drop']);
    expect(await list(await open(kind, 'free', JSON.stringify(READING)))).toEqual(['s_read']);
  });

  it('that is bound to a task has the tools of this task, without naming it', async () => {
    const ask = await open(kind, 'one');
    expect(await list(ask)).toEqual(['s_read']);
    const { result, error } = await ask('tools/call', { name: 's_drop', arguments: {} });
    expect(JSON.stringify(result ?? error)).toContain('There is no tool');
  });

  it('that is bound to several has the first, or the one that is named', async () => {
    expect(await list(await open(kind, 'two'))).toEqual(['s_read']);
    expect(await list(await open(kind, 'two', JSON.stringify(WRITING)))).toEqual(['s_write']);
    expect(await list(await open(kind, 'two', 'notes'))).toEqual(['s_write']);
  });
});

describe('another task', () => {
  it('is refused, and recorded', async () => {
    expect(await status('one', JSON.stringify(WRITING))).toBe(403);
    expect(await status('one', JSON.stringify({ ...READING, service: 'x' }))).toBe(403);
    expect(await status('text', 'anything else')).toBe(403);
    expect(await status('text', 'anything at all')).toBe(200);
    expect(await status('one', JSON.stringify(READING))).toBe(200);
    await waitFor(() => readLines(auditOf(cwd)).some(({ status, agent }) => status === 'forbidden' && agent === 'one'));
  });

  it('is not reached through a session of another token of the agent', async () => {
    const store = openAgentStore(gateway.config.dataDir);
    const bound = await store.add('both', '', null, [{ ...READING, service: '', description: '', profile: '' }]);
    await waitFor(async () => (await status(bound.token)) === 200);
    gateway.apply(
      configFromValue(
        { ...(gateway.config.written().settings as object), agents: { both: { token: token('both') } } },
        { cwd, env: {} },
      ),
    );
    await gateway.tried();
    const headers: Record<string, string> = headersOf('both');
    const ask = await openAsk('http', gateway, origin, 'both', headers);
    expect(await list(ask)).toEqual(['s_read', 's_write', 's_drop']);
    headers.authorization = `Bearer ${bound.token}`;
    expect(JSON.stringify(await ask('tools/list'))).toContain('session');
    gateway.apply(configOf([READING, WRITING]));
    await gateway.tried();
  });
});

it('ends the sessions of a token whose tasks have changed', async () => {
  const ask = await open('http', 'two');
  expect(await list(ask)).toEqual(['s_read']);
  gateway.apply(configOf([WRITING]));
  expect(JSON.stringify(await ask('tools/list'))).toContain('session');
  expect(await list(await open('http', 'two'))).toEqual(['s_write']);
});

it.each([
  [{ kind: 'x' }, 'unknown key "kind"'],
  [[], 'empty list'],
  ['', 'says nothing'],
])('a task %j of an agent is a mistake in the configuration', (tasks, problem) => {
  expect(() => configOf(tasks)).toThrow(problem);
});
