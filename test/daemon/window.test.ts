/** What passes through a window: everything that passes through a gateway of the client's own. */
import { cpSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ListRootsRequestSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { beforeAll, describe, expect, it } from 'vitest';
import { runCli } from '../support/cli.ts';
import { startStdio } from '../support/gateway.ts';
import { arrived } from '../support/in-flight.ts';
import { alive, waitFor } from '../support/processes.ts';
import { call, callText, pidOf, toolNames } from '../support/running-gateway.ts';
import { server, serversToml } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';
import { openProject, type Project } from '../support/windows.ts';

const log = join(tempFolder(), 'log');
const shared = { q: server('asking'), h: server('hang', '--log', log), w: server('wordy'), a: server('basic') };
/** Roots are asked for only by servers with a connection for each client. */
const servers = `${serversToml({ ...shared, r: server('asking') })}share = "session"\n`;
const rules = '[[task_rules]]\nname = "one"\ntypes = ["words"]\ntools = { a = ["echo"] }\n';

let project: Project;

beforeAll(() => {
  project = openProject(`active_toolsets = ["*"]\n${rules}${servers}`, { 'task.toml': 'type = "words"\n' });
});

describe('questions of a server', () => {
  it('for a completion, roots and words reach the client of the call, and no other', async () => {
    const capabilities = { sampling: {}, roots: { listChanged: true }, elicitation: {} };
    const [asked, other] = [await project.window({ capabilities }), await project.window({ capabilities })];
    const answered: string[] = [];
    for (const { client } of [asked, other]) {
      const name = client === asked.client ? 'asked' : 'other';
      client.setRequestHandler(CreateMessageRequestSchema, ({ params }) => {
        answered.push(name);
        const [{ content } = { content: null }] = params.messages;
        return { role: 'assistant', model: name, content: { type: 'text', text: JSON.stringify(content) } };
      });
      client.setRequestHandler(ListRootsRequestSchema, () => ({ roots: [{ uri: `file:///${name}` }] }));
      client.setRequestHandler(ElicitRequestSchema, ({ params }) => {
        answered.push(name);
        return { action: 'accept', content: { word: `${name} ${params.message}` } };
      });
    }
    const sampled = await callText(asked.client, 'q_sample');
    expect(sampled).toContain('"model":"asked"');
    expect(sampled).toContain('Say a word.');
    expect(await callText(asked.client, 'r_sample')).toContain('file:///asked');
    expect(await callText(other.client, 'r_sample')).toContain('file:///other');
    answered.length = 0;
    expect(await callText(asked.client, 'q_ask', { questions: 2, word: 'w' })).toContain('asks: w#2');
    expect(new Set(answered)).toEqual(new Set(['asked']));
  });
});

describe('progress and cancellation', () => {
  it('reach the client and the server of the call', async () => {
    const { client, notifications } = await project.window();
    await client.callTool({ name: 'h_slow', arguments: { ms: 60, steps: 3 } }, undefined, { onprogress: () => {} });
    const steps = notifications.filter(({ method }) => method === 'notifications/progress');
    expect(steps.map(({ params }) => params?.progress)).toEqual([1, 2, 3]);
    const cancel = new AbortController();
    const given = client.callTool({ name: 'h_hang', arguments: { tag: 'given up' } }, undefined, {
      signal: cancel.signal,
    });
    given.catch(() => {});
    await arrived(log, 'given up');
    cancel.abort();
    await expect(given).rejects.toThrow();
    await waitFor(async () => (await callText(client, 'h_cancelled')).includes('given up'));
    expect(notifications.filter(({ method }) => method === 'notifications/cancelled')).toEqual([]);
  });
});

describe('the log of servers', () => {
  it('comes from the level on that each client asked for', async () => {
    const [loud, quiet] = [await project.window(), await project.window()];
    await loud.client.setLoggingLevel('debug');
    await quiet.client.setLoggingLevel('error');
    const words = ({ notifications }: typeof loud) =>
      notifications
        .filter(({ method }) => method === 'notifications/message')
        .map(({ params }) => String(params?.data));
    await callText(quiet.client, 'w_say', { word: 'hushed', steps: 1 });
    await callText(loud.client, 'w_say', { word: 'heard', steps: 1 });
    await waitFor(() => words(loud).includes('heard'));
    expect([words(quiet), words(loud)]).toEqual([[], ['heard']]);
    // One level of the server serves all windows: what a window did not ask for is kept from it.
    await quiet.client.setLoggingLevel('debug');
    await callText(quiet.client, 'w_say', { word: 'later', steps: 1 });
    await waitFor(() => words(quiet).includes('later'));
  });
});

describe('a task', () => {
  it('that a window is started with narrows that window only', async () => {
    const [narrow, wide] = [await project.window({ args: ['--task', 'task.toml'] }), await project.window()];
    const own = async ({ client }: typeof narrow) => (await toolNames(client)).filter((name) => /^[aqhwr]_/.test(name));
    expect(await own(narrow)).toEqual(['a_echo']);
    expect((await call(narrow.client, 'a_count')).isError).toBe(true);
    expect((await own(wide)).length).toBeGreaterThan(10);
    expect(await project.gateways()).toHaveLength(1);
  });
});

describe('a command', () => {
  it('keeps the gateway from ending because no client is there', async () => {
    const own = openProject(`active_toolsets = ["*"]\nshared_idle = "100ms"\n${servers}`);
    const window = await own.window();
    await callText(window.client, 'a_echo', { text: 'x' });
    const pid = await own.pid();
    const slow = runCli(['call', 'h_slow', 'ms=1500', 'tag=under-way'], {
      cwd: own.cwd,
      env: own.env,
      keepsNote: true,
    });
    await arrived(log, 'under-way');
    await window.stop();
    expect(await slow).toMatchObject({ code: 0, stdout: 'slow under-way\n', stderr: '' });
    await waitFor(() => !alive(pid));
  });
});

describe('another version or build of Toolgate', () => {
  it('has a gateway of its own', async () => {
    const root = fileURLToPath(new URL('../..', import.meta.url));
    const copy = tempFolder();
    for (const part of ['bin', 'dist', 'python', 'rules'])
      cpSync(join(root, part), join(copy, part), { recursive: true });
    const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string };
    const texts = readdirSync(copy, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.js'));
    for (const name of ['package.json', ...texts]) {
      const text = readFileSync(join(name === 'package.json' ? root : copy, name), 'utf8');
      writeFileSync(join(copy, name), text.replaceAll(`\`${version}\``, '`9.9.9`').replace(`"${version}"`, '"9.9.9"'));
    }
    symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'));
    const bin = join(copy, 'bin/toolgate.mjs');
    const ours = await project.window();
    const { cwd, env } = project;
    const theirs = await startStdio({ cwd, env, bin, process: true });
    expect(await pidOf(theirs.client, 'a')).not.toBe(await pidOf(ours.client, 'a'));
    const versions = (await project.gateways()).map(({ version }) => version);
    expect(versions).toHaveLength(2);
    expect(versions).toContain('9.9.9');
    // A window of each version finds its own again.
    const again = await startStdio({ cwd, env, bin, process: true });
    expect(await pidOf(again.client, 'a')).toBe(await pidOf(theirs.client, 'a'));
  });
});
