/**
 * Folders of tools behind the gateway: added, called, edited, broken and deleted, with real workers of both languages.
 */
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type HttpGateway, startHttp } from '../support/gateway.ts';
import { callsInFlight } from '../support/in-flight.ts';
import { installer } from '../support/installer.ts';
import { waitFor } from '../support/processes.ts';
import { basePython, noPython } from '../support/python.ts';
import { server, serversToml } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';
import { isWide } from '../support/wide.ts';

const config = `controls = []\n${serversToml({ up: server('basic') })}`;

const tool = (name: string, body: string, more = '') => `export const ${name} = {
  description: 'Tool ${name}',
  inputSchema: { type: 'object', properties: { ms: { type: 'number' }, text: { type: 'string' } } },
  ${more}
  async execute(input: { ms: number; text: string }, ctx: any) { ${body} },
};
`;

/** `venvs` is a folder of environments that already exist. */
async function start(files: Record<string, string> = {}, venvs: string | null = null): Promise<HttpGateway> {
  const cwd = tempFolder(
    Object.fromEntries(Object.entries(files).map(([name, text]) => [`.toolgate/tools/${name}`, text])),
  );
  if (venvs !== null) symlinkSync(venvs, join(cwd, '.toolgate/venvs'));
  // The environment was created with these settings, which are part of its key.
  return startHttp({ config, cwd, args: ['--log-level', 'info'], env: installer });
}

const put = (gateway: HttpGateway, name: string, text: string) => {
  const file = join(gateway.cwd, '.toolgate/tools', name);
  mkdirSync(join(file, '..'), { recursive: true });
  writeFileSync(file, text);
};

type Client = Awaited<ReturnType<HttpGateway['connect']>>['client'];

const names = async (client: Client) => (await client.listTools()).tools.map(({ name }) => name);
const call = async (client: Client, name: string, args: Record<string, unknown> = {}) => {
  const { content, isError } = await client.callTool({ name, arguments: args });
  return { text: (content as { text: string }[])[0]?.text ?? '', isError: isError === true };
};

describe('a folder of TypeScript tools', () => {
  it('is served when added, also under bare names at its own address, updated when edited and removed when deleted', async () => {
    const gateway = await start();
    const { client, notifications } = await gateway.connect();
    expect(await names(client)).not.toContain('greet_hello');
    put(gateway, 'greet/hello.ts', tool('hello', 'return `Hello ${input.text}`;'));
    const dropped = performance.now();
    await waitFor(async () => (await names(client)).includes('greet_hello') || null);
    console.log(`dropped to served: ${Math.round(performance.now() - dropped)} ms`);
    expect(await call(client, 'greet_hello', { text: 'Ann' })).toEqual({ text: 'Hello Ann', isError: false });
    expect(JSON.stringify(notifications)).toContain('notifications/tools/list_changed');
    const own = await gateway.connect({ path: '/ns/greet/mcp' });
    expect(await names(own.client)).toEqual(['hello']);
    expect((await call(own.client, 'hello', { text: 'Ann' })).text).toBe('Hello Ann');

    put(gateway, 'greet/hello.ts', tool('hello', 'return `Bye ${input.text}`;') + tool('more', 'return "more";'));
    await waitFor(async () => (await names(client)).includes('greet_more') || null);
    expect(await call(client, 'greet_hello', { text: 'Ann' })).toEqual({ text: 'Bye Ann', isError: false });

    rmSync(join(gateway.cwd, '.toolgate/tools/greet'), { recursive: true });
    await waitFor(async () => !(await names(client)).includes('greet_hello') || null);
    expect((await call(client, 'greet_hello')).text).toContain('item_unknown');
    expect((await call(client, 'up_echo')).isError).toBe(false);
  });

  it('keeps its last good version when an edit breaks it, and reports the location in the log', async () => {
    const gateway = await start({ 'a/one.ts': tool('one', 'return "1";'), 'a/two.ts': tool('two', 'return "2";') });
    const { client } = await gateway.connect();
    await waitFor(async () => (await names(client)).includes('a_two') || null);
    put(gateway, 'a/two.ts', `${tool('two', 'return "2";')}\nexport const = 3;\n`);
    await waitFor(() => gateway.stderr().includes('two.ts:8') || null);
    expect(gateway.stderr()).toContain('Its last good version stays in use');
    expect(await names(client)).toEqual(expect.arrayContaining(['a_one', 'a_two']));
    expect((await call(client, 'a_two')).text).toBe('2');
    // Each edit starts a worker. The usual run has its repair in broken-file.test.ts.
    if (!isWide) return;
    put(gateway, 'a/two.ts', tool('two', 'return "3";'));
    await waitFor(async () => (await call(client, 'a_two')).text === '3' || null);
  });

  it('with a broken file from the start serves its other files', async () => {
    const gateway = await start({ 'a/good.ts': tool('good', 'return "yes";'), 'a/bad.ts': 'export const x = ;\n' });
    const { client } = await gateway.connect();
    await waitFor(async () => (await names(client)).includes('a_good') || null);
    expect((await call(client, 'a_good')).text).toBe('yes');
    expect(gateway.stderr()).toContain('bad.ts:1');
    // A file that was already broken does not block edits of the others.
    put(gateway, 'a/good.ts', tool('good', 'return "better";'));
    await waitFor(async () => (await call(client, 'a_good')).text === 'better' || null);
  });

  it('reports progress, can be cancelled, and sees only its own environment variables', async () => {
    const gateway = await start({
      'a/tools.ts':
        tool('steps', 'for (let i = 1; i <= 3; i++) ctx.progress(i, 3); return "done";') +
        tool('env', 'return JSON.stringify(process.env);') +
        tool('wait', 'await new Promise((r) => ctx.signal.addEventListener("abort", r)); return "over";'),
      'a/tooldock.yaml': 'env:\n  COLOUR: blue\n',
    });
    const { client } = await gateway.connect();
    await waitFor(async () => (await names(client)).includes('a_wait') || null);
    const seen: number[] = [];
    await client.callTool({ name: 'a_steps' }, undefined, { onprogress: ({ progress }) => seen.push(progress) });
    expect(seen).toEqual([1, 2, 3]);
    const env = JSON.parse((await call(client, 'a_env')).text) as Record<string, string>;
    expect(env.COLOUR).toBe('blue');
    // Marks: of the gateways around it, of the run that ends what it leaves behind, and of its sandbox if it has one.
    const marks = ['TOOLGATE_INSIDE', 'TOOLGATE_RUN', 'TOOLGATE_SANDBOX'];
    const seenOfToolgate = Object.keys(env).filter((name) => /TOKEN|TOOLGATE|npm_/.test(name));
    expect(seenOfToolgate).toContain('TOOLGATE_INSIDE');
    expect(seenOfToolgate.filter((name) => !marks.includes(name))).toEqual([]);
    const abort = new AbortController();
    const waiting = client.callTool({ name: 'a_wait' }, undefined, { signal: abort.signal });
    await callsInFlight(gateway);
    abort.abort();
    await expect(waiting).rejects.toThrow();
    expect((await call(client, 'a_env')).isError).toBe(false);
  });

  it('restarts after its worker is killed, without affecting other folders', async () => {
    const gateway = await start({
      'a/die.ts':
        tool(
          'die',
          'setTimeout(() => process.kill(process.pid, "SIGKILL"), 10); await new Promise(() => {}); return "";',
        ) + tool('born', 'return String(performance.timeOrigin);'),
      'b/ok.ts': tool('ok', 'return "ok";'),
    });
    const { client } = await gateway.connect();
    await waitFor(
      async () => (await names(client)).includes('a_born') && (await names(client)).includes('b_ok'),
      10_000,
    );
    const before = (await call(client, 'a_born')).text;
    expect((await call(client, 'a_die')).text).toContain('Try again');
    expect((await call(client, 'b_ok')).text).toBe('ok');
    const after = await waitFor(async () => {
      const { text, isError } = await call(client, 'a_born');
      return !isError && text !== before ? text : null;
    }, 10_000);
    expect(after).not.toBe(before);
  });
});

describe.skipIf(noPython !== undefined)('a folder of Python tools', () => {
  const HELLO = `from fastmcp import Context
from fastmcp.tools import tool


@tool
async def hello(name: str, ctx: Context) -> str:
    """Greets."""
    await ctx.report_progress(1, 2)
    await ctx.info("greeting")
    return f"Hello {name}"
`;

  it('is served together with TypeScript under one namespace, and keeps its last good version', async () => {
    const { command } = await basePython();
    const gateway = await start(
      { 'mix/hello.py': HELLO, 'mix/bye.ts': tool('bye', 'return "Bye";') },
      venvsOf(command[0]!),
    );
    const { client } = await gateway.connect();
    await waitFor(
      async () => (await names(client)).filter((name) => name.startsWith('mix_')).length === 2 || null,
      25_000,
    );
    const seen: number[] = [];
    const { content } = await client.callTool({ name: 'mix_hello', arguments: { name: 'Ann' } }, undefined, {
      onprogress: ({ progress }) => seen.push(progress),
    });
    expect(content).toEqual([{ type: 'text', text: 'Hello Ann' }]);
    expect(seen).toEqual([1]);
    expect((await call(client, 'mix_hello', {})).text).toContain('invalid_arguments');
    expect((await call(client, 'mix_bye')).text).toBe('Bye');
    // Each edit starts a Python worker. The usual run has one in broken-file.test.ts.
    if (!isWide) return;
    put(gateway, 'mix/hello.py', `${HELLO}\nimport nonsense_that_is_not_there\n`);
    await waitFor(() => gateway.stderr().includes('nonsense_that_is_not_there') || null);
    expect((await call(client, 'mix_hello', { name: 'Bob' })).text).toBe('Hello Bob');
    expect((await call(client, 'mix_bye')).text).toBe('Bye');
    put(gateway, 'mix/hello.py', HELLO.replace('Hello {name}', 'Hi {name}'));
    await waitFor(async () => (await call(client, 'mix_hello', { name: 'Bob' })).text === 'Hi Bob' || null);
  });
});

/** The folder of environments that contains this interpreter. */
function venvsOf(python: string): string {
  return python.slice(0, python.indexOf('/venvs/') + '/venvs'.length);
}
