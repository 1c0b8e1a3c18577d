/** toolman_call: a call by name for clients whose list does not show a tool, treated as a call of that tool. */
import type { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { beforeAll, describe, expect, it } from 'vitest';
import { type Gateway, readPetitions } from '../../src/index.ts';
import { auditOf, isCall, isDenial, readLines, waitForLines } from '../support/audit-records.ts';
import { connectHttp } from '../support/connection.ts';
import { ownError, type ToolResult } from '../support/doors.ts';
import { callsInFlight } from '../support/in-flight.ts';
import { connectAs } from '../support/named-client.ts';
import { basic, hanging, type Opened, open, openPipes, outcomesOf } from '../support/open-gateway.ts';
import { waitFor } from '../support/processes.ts';
import { answersTo, askedIn, callModern, jsonOf } from '../support/questions.ts';
import { serverEntry } from '../support/server.ts';
import { tempFolder, writeFiles } from '../support/temp.ts';

const CODEX = 'codex-mcp-client';
const SCHEMA =
  '{"type":"object","properties":{"text":{"type":"string"},"count":{"type":["integer","null"]},"more":{"type":"object"}},"required":["text"],"additionalProperties":false}';
const DEFINITIONS = `[{"name":"echo","description":"Gives its arguments back","inputSchema":${SCHEMA}},
 {"name":"count","inputSchema":{"type":"object"}},{"name":"raw","inputSchema":{"type":"object"}}]`.replace('\n', '');

const POLICY = {
  agent_policies: {
    default: { tool_overrides: { '*': ['*'] } },
    anonymous: { tool_overrides: { '*': ['*'] } },
    reader: { allowed_servers: ['git'], tool_overrides: { git: ['echo', 'count'] } },
    fixed: { tool_overrides: { '*': ['*'] }, denied_tools: { toolgate: ['toolman_activate'] } },
    plain: { tool_overrides: { '*': ['*'] }, denied_tools: { toolgate: ['toolman_call'] } },
    limited: { tool_overrides: { '*': ['*'] }, tool_limits: { 'git.count': { calls_per_day: 1 } } },
  },
};

let opened: Opened;
let gateway: Gateway;
let cwd: string;
let client: Client;
beforeAll(async () => {
  cwd = tempFolder();
  writeFiles(cwd, { 'tools.json': DEFINITIONS });
  opened = await open(
    {
      git: basic('--name', 'git', '--raw-tools', `${cwd}/tools.json`),
      wait: hanging,
      ask: serverEntry('asking'),
      later: serverEntry('asking-modern'),
      tasks: serverEntry('tasks-legacy'),
    },
    {
      controls: ['activate'],
      active_toolsets: ['git_raw'],
      ...POLICY,
      data_dir: `${cwd}/.toolgate`,
      audit: { enabled: true },
      toolsets: { one: { tools: ['git.count'] } },
      security: { confirm: [{ tools: ['wait.ok'] }] },
    },
  );
  gateway = opened.gateway;
  client = await connectAs(gateway, CODEX);
});

const through = async (name: string, args?: unknown, by = client) =>
  (await by.callTool({
    name: 'toolman_call',
    arguments: { name, ...(args !== undefined && { arguments: args }) },
  })) as unknown as ToolResult;
const textOf = ({ content, isError }: ToolResult) => {
  expect(isError, content[0]?.text).toBeFalsy();
  return content[0]!.text;
};
const names = async (of: Client) => (await of.listTools()).tools.map(({ name }) => name);

describe('toolman_call in a list', () => {
  it('is there for a client that is known not to list again, and for no other', async () => {
    expect(await names(client)).toEqual(['toolman_activate', 'toolman_call', 'git_raw']);
    for (const name of ['claude-ai', 'github-copilot-developer', 'claude-ai (via mcp-remote 0.15.1)'])
      expect(await names(await connectAs(gateway, name)), name).toContain('toolman_call');
    for (const name of ['claude-code', 'gemini-cli-mcp-client', 'a client of my own'])
      expect(await names(await connectAs(gateway, name)), name).toEqual(['toolman_activate', 'git_raw']);
  });

  it('costs less than 450 characters', async () => {
    const { tools } = await client.listTools();
    const size = JSON.stringify(tools.find(({ name }) => name === 'toolman_call')).length;
    expect(size).toBeLessThan(450);
  });

  it('stays out if the configuration or the policy says so, and is there for everyone if it says so', async () => {
    const never = await open({ git: basic() }, { controls: ['activate'], call_through: 'never' });
    const codex = await connectAs(never.gateway, CODEX);
    expect(await names(codex)).toEqual(['toolman_activate']);
    expect(ownError(await through('git_echo', {}, codex)).code).toBe('item_unknown');
    const always = await open({ git: basic() }, { controls: [], call_through: 'always' });
    expect(await names(await connectAs(always.gateway, 'claude-code'))).toContain('toolman_call');
    const denied = await connectAs(gateway, CODEX, { agent: 'plain' });
    expect(await names(denied)).not.toContain('toolman_call');
    expect(ownError(await through('git_count', {}, denied)).code).toBe('item_unknown');
  });
});

describe('a call through toolman_call', () => {
  it('calls a tool that is not active, and activates nothing', async () => {
    expect(JSON.parse(textOf(await through('git_echo', { text: 'tea' })))).toEqual({ text: 'tea' });
    expect(await names(client)).not.toContain('git_echo');
  });

  it.each(['git_echo', 'git.echo', 'git:echo'])('finds %s', async (name) => {
    expect(textOf(await through(name, { text: 'x' }))).toBe('{"text":"x"}');
  });

  it('passes arguments and result as they are, byte for byte, in both eras', async () => {
    const result = '{"content":[],"structuredContent":{"n":1.00,"big":12345678901234567890}, "x":"\\u0041"}';
    const args = JSON.stringify({ json: result });
    for (const era of ['legacy', 'modern'] as const) {
      const pipes = await openPipes(gateway, era);
      const before = pipes.texts.length;
      await pipes.ask('tools/call', {
        arguments: { arguments: JSON.parse(args), name: 'git_raw' },
        name: 'toolman_call',
      });
      expect(pipes.texts.slice(before).join()).toContain('"structuredContent":{"n":1.00,"big":12345678901234567890}');
      const { result: echoed } = await pipes.ask('tools/call', {
        name: 'toolman_call',
        arguments: { name: 'git_echo', arguments: { text: 'ü\u0000"' } },
      });
      expect(echoed!.content).toEqual([{ type: 'text', text: JSON.stringify({ text: 'ü\u0000"' }) }]);
    }
  });

  it('counts once, as a call of the tool, and the audit says how it was made', async () => {
    textOf(await through('git_count'));
    const before = outcomesOf(gateway, 'git', 'count').ok!;
    textOf(await through('git_count'));
    expect(outcomesOf(gateway, 'git', 'count').ok).toBe(before + 1);
    expect(gateway.metrics.entries().filter(({ name }) => name === 'toolman_call')).toEqual([]);
    await waitForLines(cwd, 1, (line) => isCall(line) && line.tool === 'count');
    const line = readLines(auditOf(cwd)).findLast(({ tool }) => tool === 'count');
    expect(line).toMatchObject({ server: 'git', name: 'git_count', status: 'ok', through: 'toolman_call' });
  });

  it('shows middleware the tool and its arguments', async () => {
    const seen: unknown[] = [];
    const remove = gateway.use((call, next) => {
      seen.push([call.name, call.arguments]);
      return next();
    });
    await through('git_echo', { text: 'seen' });
    remove();
    expect(seen).toEqual([['git_echo', { text: 'seen' }]]);
  });

  it('falls under the limits of the tool', async () => {
    const limited = await connectAs(gateway, CODEX, { agent: 'limited' });
    textOf(await through('git_count', {}, limited));
    expect(ownError(await through('git_count', {}, limited)).code).toBe('rate_limited');
  });

  it('waits for the approval that the tool needs', async () => {
    const cancel = new AbortController();
    const params = { name: 'toolman_call', arguments: { name: 'wait_ok', arguments: { why: 'tea' } } };
    const calling = client.callTool(params, undefined, { signal: cancel.signal });
    calling.catch(() => {});
    const [petition] = await waitFor(async () => {
      const all = await readPetitions(`${cwd}/.toolgate`);
      return all.length > 0 && all;
    });
    expect(JSON.stringify(petition)).toMatch(/"wait.ok".*tea/);
    cancel.abort('enough');
    await expect(calling).rejects.toThrow('enough');
  });

  it('reports progress and can be cancelled', async () => {
    const progress: number[] = [];
    await client.callTool(
      { name: 'toolman_call', arguments: { name: 'wait_slow', arguments: { ms: 1, steps: 2 } } },
      undefined,
      { onprogress: (one) => void progress.push(one.progress) },
    );
    expect(progress).toEqual([1, 2]);
    const cancel = new AbortController();
    const calling = client.callTool(
      { name: 'toolman_call', arguments: { name: 'wait_hang', arguments: { tag: 'mine' } } },
      undefined,
      { signal: cancel.signal },
    );
    calling.catch(() => {});
    await callsInFlight(gateway);
    cancel.abort('enough');
    await expect(calling).rejects.toThrow('enough');
    await waitFor(async () => textOf(await through('wait_cancelled')).includes('"tag":"mine"'));
  });

  it('lets the tool ask the client, and run as an MCP task', async () => {
    const asked = await connectAs(gateway, CODEX, { capabilities: { elicitation: {} } });
    asked.setRequestHandler(ElicitRequestSchema, () => ({ action: 'accept', content: { word: 'tea' } }));
    expect(textOf(await through('ask_ask', {}, asked))).toContain('"word":"tea"');
    expect(textOf(await through('later_again', {}, asked))).toContain('state-3');
    const inner = { name: 'ask_ask', arguments: { questions: 2, word: 'tea' } };
    const first = await callModern(opened, 'toolman_call', inner);
    expect(askedIn(first)).toEqual(['tea#1']);
    const second = await callModern(opened, 'toolman_call', inner, answersTo(first));
    expect(askedIn(second)).toEqual(['tea#2']);
    const last = await callModern(opened, 'toolman_call', inner, answersTo(second));
    expect(jsonOf(last.result)).toHaveLength(2);
    const pipes = await openPipes(gateway, 'legacy');
    const { result } = await pipes.ask('tools/call', {
      name: 'toolman_call',
      arguments: { name: 'tasks_slow', arguments: { label: 'it' } },
      task: { ttl: 60_000 },
    });
    expect(result).toMatchObject({ task: { status: 'working' } });
    const { taskId } = (result as { task: { taskId: string } }).task;
    expect((await pipes.ask('tasks/result', { taskId })).result).toMatchObject({ content: [{ type: 'text' }] });
  });

  it('is answered for a client whose list does not show it, and is in that list from then on', async () => {
    const unknown = await connectAs(gateway, 'a client of my own');
    expect(await names(unknown)).not.toContain('toolman_call');
    textOf(await through('git_count', {}, unknown));
    expect(await names(unknown)).toContain('toolman_call');
    expect(await names(await connectAs(gateway, 'a client of my own'))).not.toContain('toolman_call');
  });
});

describe('toolman_call refuses', () => {
  it.each([
    ['git_ecko', {}],
    ['nothing_like_it', {}],
    ['', {}],
  ])('the unknown name "%s" in the words of a direct call', async (name, args) => {
    const direct = (await client.callTool({ name, arguments: args })) as unknown as ToolResult;
    expect(ownError(await through(name, args))).toEqual(ownError(direct));
  });

  it.each([
    [{}, '"text" must be given'],
    [{ text: 1 }, '"text" must be of type string'],
    [{ text: 'a', count: 'many' }, '"count" must be of type integer or null'],
    [{ text: 'a', count: 1.5 }, '"count" must be of type integer or null'],
    [{ text: 'a', more: [] }, '"more" must be of type object'],
    [{ text: 'a', other: 1 }, 'it does not take "other"'],
    [undefined, '"text" must be given'],
  ])('the arguments %j, with the input schema', async (args, problem) => {
    const { code, message } = ownError(await through('git_echo', args));
    expect(code).toBe('arguments_invalid');
    expect(message).toBe(`The arguments do not fit "git_echo": ${problem}. Its input schema: ${SCHEMA}`);
  });

  it.each([
    [{}, 'needs the name of a tool'],
    [{ name: 7 }, 'needs the name of a tool'],
    [{ name: 'git_echo', arguments: '{"text":"x"}' }, 'needs an object as "arguments"'],
    [{ name: 'git_echo', text: 'x' }, 'put what the tool takes into "arguments"'],
    [{ name: 'toolman_activate', arguments: {} }, 'call it directly'],
    [{ name: 'toolman_call', arguments: { name: 'git_echo' } }, 'call it directly'],
  ])('%j', async (args, problem) => {
    const result = (await client.callTool({ name: 'toolman_call', arguments: args })) as unknown as ToolResult;
    const { code, message } = ownError(result);
    expect([code, message]).toEqual(['arguments_invalid', expect.stringContaining(problem)]);
  });

  it('what policy hides, in the words of an unknown name', async () => {
    const reader = await connectAs(gateway, CODEX, { agent: 'reader' });
    expect(textOf(await through('git_count', {}, reader))).toMatch(/^\d+$/);
    const hidden = ownError(await through('git_raw', { json: '{}' }, reader));
    expect(hidden).toMatchObject({
      code: 'item_unknown',
      message: expect.stringContaining('There is no tool "git_raw"'),
    });
    expect(ownError(await through('wait_hang', {}, reader)).message).not.toMatch(/wait_slow|wait_ok/);
    await waitForLines(cwd, 1, (line) => isDenial(line) && line.tool === 'git_raw' && line.through === 'toolman_call');
  });

  it('what is not active, to a caller that cannot activate it', async () => {
    const fixed = await connectAs(gateway, CODEX, { agent: 'fixed' });
    expect(textOf(await through('git_raw', { json: '{"content":[{"type":"text","text":"hi"}]}' }, fixed))).toBe('hi');
    expect(ownError(await through('git_echo', { text: 'x' }, fixed)).code).toBe('item_inactive');
    const { client: within } = await connectHttp(`${opened.origin}/mcp/t/one`);
    // A toolset's own address has the tools of that toolset only, all of them listed from the start.
    expect(ownError(await through('git_count', {}, within)).code).toBe('item_unknown');
  });
});

describe('toolman_call with describe', () => {
  const describe_ = async (name: string, by = client) =>
    (await by.callTool({ name: 'toolman_call', arguments: { name, describe: true } })) as unknown as ToolResult;

  it('returns the definition, and calls nothing', async () => {
    const before = outcomesOf(gateway, 'git', 'echo').ok;
    const definition = { name: 'git_echo', description: 'Gives its arguments back', inputSchema: JSON.parse(SCHEMA) };
    expect(JSON.parse(textOf(await describe_('git_echo')))).toEqual(definition);
    expect(outcomesOf(gateway, 'git', 'echo').ok).toBe(before);
  });

  it('knows no more names than a call', async () => {
    const reader = await connectAs(gateway, CODEX, { agent: 'reader' });
    expect(ownError(await describe_('git_raw', reader))).toEqual(ownError(await through('git_raw', {}, reader)));
  });
});
