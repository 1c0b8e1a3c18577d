/**
 * Secrets of the store throughout a whole session: servers and tools of both languages reveal them in every way they
 * can, fail, crash, hang and are reloaded. No output that anyone can read may contain one of them.
 */
import { existsSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { auditOf, isAdmin, isCall, readLines } from '../support/audit-records.ts';
import { commandLines, filesIn, findIn as findValues, startEcho } from '../support/canary.ts';
import { runCli } from '../support/cli.ts';
import { type HttpGateway, startHttp } from '../support/gateway.ts';
import { installer } from '../support/installer.ts';
import { openStore } from '../support/killing.ts';
import { waitFor } from '../support/processes.ts';
import { basePython, noPython } from '../support/python.ts';
import { server } from '../support/server.ts';
import { useProcesses } from '../support/switch.ts';
import { tempFolder } from '../support/temp.ts';
import { isWide, some } from '../support/wide.ts';

useProcesses();

const canary = (place: string) => `cnry-${place}-9f/3a+7"z`;
const KEY = canary('the-key');

const secrets = {
  GLOBAL_ONE: canary('global'),
  TS_TOKEN: canary('ts'),
  PY_TOKEN: canary('py'),
  LEAKY: canary('leaky'),
  IN_HEADER: 'cnry-header-9f3a7z',
  IN_URL: 'cnry-url-9f3a7z',
};
const changed = { TS_TOKEN: canary('ts-2'), PY_TOKEN: canary('py-2'), LEAKY: canary('leaky-2') };
const known = [KEY, ...Object.values(secrets), ...Object.values(changed)];

/** Endpoints of the gateway whose answers are searched. Add every new endpoint here. */
const PATHS = [
  ...['/metrics', '/health', '/ready', '/tools', '/namespaces', '/openapi.json', '/docs', '/tools/l_tell/schema'],
  ...['l', 'ts', 'py'].flatMap((name) => [`/ns/${name}/tools`, `/ns/${name}/openapi.json`, `/ns/${name}/docs`]),
];

const TS = `
const all = () => ['GLOBAL_ONE', 'TS_TOKEN'].map((name) => process.env[name]).join(' ');
const forms = () => [all(), Buffer.from('user:' + all()).toString('base64'), encodeURIComponent(all()), JSON.stringify({ all: all() })];
const make = (name: string, execute: (input: any, ctx: any) => unknown) => ({ name, description: name, inputSchema: { type: 'object' }, execute });
export const give = make('give', () => forms());
export const fail = make('fail', () => { throw new Error('GET https://user:' + process.env.TS_TOKEN + '@x.example failed for ' + forms().join(' ')); });
export const say = make('say', (_, ctx) => {
  console.log(...forms()); console.error(...forms());
  ctx.log.info(all()); ctx.progress(1, 2, all());
  return 'said';
});
export const crash = make('crash', () => { process.stderr.write(forms().join(' ') + '\\n', () => process.exit(1)); return new Promise(() => {}); });
`;
const PY = `import base64, os, sys
from urllib.parse import quote
from fastmcp import Context
from fastmcp.exceptions import ToolError
from fastmcp.tools import tool

def everything():
    return [os.environ["GLOBAL_ONE"], os.environ["PY_TOKEN"]]

def forms():
    text = " ".join(everything())
    return [text, base64.b64encode(b"user:" + text.encode()).decode(), quote(text, safe=""), repr(dict(os.environ))]

@tool
def give() -> list[str]:
    """Gives."""
    return forms()

@tool
def fail() -> str:
    """Fails."""
    raise ToolError("GET https://user:" + os.environ["PY_TOKEN"] + "@x.example: " + " ".join(forms()))

@tool
def break_down() -> str:
    """Breaks."""
    return everything()["no such key " + forms()[0]]

@tool
async def say(ctx: Context) -> str:
    """Says."""
    print(*forms())
    print(*forms(), file=sys.stderr)
    await ctx.info(forms()[0])
    await ctx.report_progress(1, 2, forms()[0])
    return "said"

@tool
def crash() -> str:
    """Crashes."""
    print(*forms(), file=sys.stderr, flush=True)
    os._exit(1)
`;

/** The places in a text that contain a canary. */
function findIn(text: string): string[] {
  return findValues(text, known);
}

/** With the settings that the Python environment was created with, so that the existing one is reused. */
function environment(temporary: string): Record<string, string> {
  return { ...installer, SECRETS_KEY: KEY, TMPDIR: temporary };
}

async function start(temporary: string): Promise<HttpGateway> {
  const entry = (name: string, rest: string) => `[[servers]]\nnamespace = "${name}"\ntimeout = "400ms"\n${rest}\n`;
  const leaky = (name: string, ...flags: string[]) =>
    entry(
      name,
      `command = ${JSON.stringify(server('leaky', '--leak', 'LEAK', ...flags))}\nenv = { LEAK = "\${secret:LEAKY}" }`,
    );
  const remote = (name: string, port: number) =>
    entry(
      name,
      `url = "http://user:\${secret:IN_URL}@127.0.0.1:${port}/mcp?api_key=\${secret:IN_URL}"\nheaders = { X-Custom = "\${secret:IN_HEADER}" }`,
    );
  const cwd = tempFolder({
    'tools.toml': [
      'controls = []\n[audit]\nenabled = true\narguments = true\nresults = true\n',
      leaky('l'),
      leaky('dead', '--die'),
      leaky('odd', '--revision'),
      remote('echo', await startEcho()),
      remote('nobody', 1),
    ].join('\n'),
    '.toolgate/tools/ts/all.ts': TS,
    '.toolgate/tools/ts/tooldock.yaml': 'secrets: [TS_TOKEN]\nenv: { LINE: "token ${secret:TS_TOKEN}" }\n',
    '.toolgate/tools/bad/all.ts': 'throw new Error(`cannot be loaded: ${process.env.GLOBAL_ONE}`);\n',
    '.toolgate/tools/py/all.py': PY,
    '.toolgate/tools/py/tooldock.yaml': 'secrets: [PY_TOKEN]\n',
  });
  const python = (await basePython()).command[0]!;
  symlinkSync(python.slice(0, python.indexOf('/venvs/') + '/venvs'.length), join(cwd, '.toolgate/venvs'));
  const store = openStore(join(cwd, '.toolgate'), KEY);
  const own = ['TS_TOKEN', 'PY_TOKEN'];
  await store.change(
    Object.entries(secrets).map(([name, value]) => ({
      name,
      scope: own.includes(name) ? name.slice(0, 2).toLowerCase() : null,
      value,
    })),
  );
  return startHttp({ cwd, env: environment(temporary), args: ['--log-level', 'debug'], ready: false });
}

interface Caller {
  callTool(call: { name: string; arguments: Record<string, unknown> }, ...rest: never[]): Promise<unknown>;
  listTools(): Promise<{ tools: { name: string }[] }>;
}

const TOOLS = ['give', 'fail', 'say'];

/** Calls every tool and returns all answers. Workers that crash are started again, so one client is enough for that. */
async function drive(client: Pick<Caller, 'callTool'>, crashes = isWide): Promise<string> {
  const said: string[] = [];
  const call = (name: string) =>
    client
      .callTool({ name, arguments: { secret: secrets.GLOBAL_ONE } })
      .then(JSON.stringify, (error: Error) => `${error.message} ${error.stack}`);
  for (const name of ['l_error', 'l_tell', 'l_broken', 'l_hang', 'l_crash', 'no_such', 'dead_x', 'echo_x'])
    said.push(await call(name));
  for (const folder of ['ts', 'py'])
    for (const tool of [
      ...(folder === 'py' ? ['break_down'] : []),
      ...TOOLS,
      // How the output of a crash is reported does not depend on the language, and a Python worker takes long to start.
      ...(crashes && (isWide || folder === 'ts') ? ['crash'] : []),
    ])
      said.push(await call(`${folder}_${tool}`));
  return said.join('\n');
}

/** The same over plain HTTP. */
const overRest = (origin: string): Pick<Caller, 'callTool'> => ({
  async callTool({ name, arguments: args }) {
    const headers = { 'content-type': 'application/json', 'x-request-id': 'rest-1' };
    const body = JSON.stringify(args);
    const response = await fetch(`${origin}/tools/${name}`, { method: 'POST', headers, body });
    return [response.status, [...response.headers], await response.text()];
  },
});

const all = async (client: Caller) => (await client.listTools()).tools.map(({ name }) => name);
const isThere = (client: Caller) =>
  waitFor(async () => {
    const names = await all(client);
    return ['l_echo', 'ts_give', 'py_give'].every((name) => names.includes(name));
  }, 25_000);

it.skipIf(noPython !== undefined)(
  'no secret of the store appears in any answer, log, file or command line',
  async () => {
    const temporary = tempFolder();
    const seen: Record<string, string> = {};
    const gateway = await start(temporary);
    const commands = new Set<string>();
    const looking = setInterval(() => commands.add(commandLines(gateway.pid)), 25);
    try {
      const legacy = await gateway.connect();
      await isThere(legacy.client);
      seen['answers to a client with a session'] = await drive(legacy.client, true);
      await isThere(legacy.client);
      const modern = await gateway.connectModern();
      const store = openStore(join(gateway.cwd, '.toolgate'), KEY);
      await store.change([
        { name: 'TS_TOKEN', scope: 'ts', value: changed.TS_TOKEN },
        { name: 'PY_TOKEN', scope: 'py', value: changed.PY_TOKEN },
        { name: 'LEAKY', scope: null, value: changed.LEAKY },
      ]);
      // In addition, an edit that breaks the folder.
      writeFileSync(join(gateway.cwd, '.toolgate/tools/ts/worse.ts'), 'throw new Error(process.env.TS_TOKEN);\n');
      await waitFor(
        () => gateway.stderr().includes('worse.ts') && gateway.stderr().includes('secrets_changed'),
        15_000,
      );
      await isThere(modern.client as unknown as Caller);
      seen['answers to a client without one'] = await drive(modern.client as unknown as Caller);
      await isThere(legacy.client);
      seen['answers over REST'] = await drive(overRest(gateway.origin));
      seen['what the client was told'] = JSON.stringify([legacy.notifications, modern.notifications ?? []]);
      const listed = [await legacy.client.listTools(), await legacy.client.listResources().catch(String)];
      seen.lists = JSON.stringify(listed);
      for (const path of PATHS)
        for (const accept of ['*/*', 'application/json'])
          seen[`${path} ${accept}`] = await (await fetch(gateway.origin + path, { headers: { accept } })).text();
    } finally {
      clearInterval(looking);
    }
    await gateway.stop();
    seen.log = gateway.stdout() + gateway.stderr();
    seen['command lines'] = [...commands].join('\n');

    const env = environment(temporary);
    const cli = [
      ['secrets', 'list', '--json'],
      ['secrets', 'check', '--json'],
      ['doctor'],
      ['audit', 'query', '--limit', '0', '--json'],
      // These show less than those before, and some start all servers and workers again.
      ...some(
        [
          ['secrets', 'list'],
          ['list', 'servers', '--json'],
          ['call', 'l_crash', '--log-level', 'debug'],
          ['explain', 'ts_give', '--agent', 'x'],
        ],
        [],
      ),
    ];
    for (const command of cli) {
      const { stdout, stderr } = await runCli(command, { cwd: gateway.cwd, env, process: isWide });
      seen[`toolgate ${command.join(' ')}`] = stdout + stderr;
    }
    for (const folder of [join(gateway.cwd, '.toolgate'), temporary])
      for (const [name, text] of filesIn(folder)) seen[`file ${name}`] = text;
    if (existsSync('/dev/shm')) seen['/dev/shm'] = readdirSync('/dev/shm').join(' ');

    const found = Object.entries(seen).flatMap(([place, text]) => findIn(text).map((where) => `${place}: ${where}`));
    expect(found).toEqual([]);

    // All of this did happen, and was reported with the secrets redacted.
    for (const place of [
      'answers to a client with a session',
      'answers to a client without one',
      'answers over REST',
    ]) {
      expect(seen[place]!.match(/\[redacted\]/g)!.length).toBeGreaterThan(8);
      expect(seen[place]).toContain('@x.example');
    }
    expect(seen['what the client was told']).toContain('[redacted]');
    expect(seen.log).toContain('it said: leaky: [redacted]');
    expect(seen.log).toContain('cannot be loaded: [redacted]');
    expect(seen['toolgate doctor']).toContain('leaky: [redacted]');
    const lines = readLines(auditOf(gateway.cwd));
    expect(lines.filter(isCall).length).toBeGreaterThan(15);
    expect(lines.filter(isAdmin).some((line) => JSON.stringify(line).includes('secrets_changed'))).toBe(true);
  },
  150_000,
);
