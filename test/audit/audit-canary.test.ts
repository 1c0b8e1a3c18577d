/**
 * Plants secrets in every possible place and provokes every failure. Afterwards nothing that Toolgate wrote, answered or
 * stored may contain one of them, in any encoding. A server's own answer is exempt: its caller gets it unchanged.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { auditOf, isCall, readLines } from '../support/audit-records.ts';
import { commandLines, filesIn, findIn as findValues, startEcho } from '../support/canary.ts';
import { runCli } from '../support/cli.ts';
import { startHttp, startModernStdio, startStdio } from '../support/gateway.ts';
import { waitFor } from '../support/processes.ts';
import { server } from '../support/server.ts';
import { useProcesses } from '../support/switch.ts';
import { tempFolder } from '../support/temp.ts';
import { isWide, some } from '../support/wide.ts';

useProcesses();

const canary = (place: string) => `cnry-${place}-9f/3a+7z`;

const env = {
  BEARER_TOKEN: canary('bearer'),
  SECRETS_KEY: canary('secrets-key'),
  SOME_API_KEY: canary('gateway-env'),
  PLANTED: canary('expanded'),
  HEADER_VALUE: canary('header'),
  URL_WORD: encodeURIComponent(canary('query')),
};
const literal = canary('literal');
const inUrl = 'cnry-userinfo-9f3a7z';
const plainHeader = canary('plain-header');
const agentToken = `tg_${'c4n4ry'.repeat(7)}`;
/** A secret that Toolgate has not been told about. */
const argument = canary('argument');

const known = [...Object.values(env), canary('query'), literal, inUrl, plainHeader, agentToken];

/** The places in a text that contain a canary. */
function findIn(text: string, values: readonly string[] = known): string[] {
  return findValues(text, values);
}

async function writeConfig(): Promise<string> {
  const port = await startEcho();
  const leaks = ['SOME_API_KEY', 'PLANTED_TOO', 'DB_PASSWORD'];
  const given = `env = { PLANTED_TOO = "\${PLANTED}", DB_PASSWORD = ${JSON.stringify(literal)} }`;
  const leaky = (namespace: string, ...flags: string[]) =>
    `[[servers]]\nnamespace = "${namespace}"\ncommand = ${JSON.stringify(server('leaky', '--leak', leaks.join(), ...flags))}\n${given}\ntimeout = "400ms"\n`;
  const headers = `headers = { Authorization = "Bearer \${HEADER_VALUE}", X-Custom = ${JSON.stringify(plainHeader)} }`;
  const remote = (namespace: string, at: number) =>
    `[[servers]]\nnamespace = "${namespace}"\nurl = "http://user:${inUrl}@127.0.0.1:${at}/mcp?api_key=\${URL_WORD}"\n${headers}\n`;
  return [
    'active_toolsets = ["*"]\ninherit_env = ["SOME_API_KEY"]\n[audit]\nenabled = true\narguments = true\nresults = true\n',
    leaky('l'),
    leaky('dead', '--die'),
    leaky('odd', '--revision'),
    remote('echo', port),
    // Nothing listens on this port.
    remote('nobody', 1),
  ].join('\n');
}

interface Caller {
  callTool(call: { name: string; arguments: Record<string, unknown> }): Promise<unknown>;
}

/** Makes every call that fails, and returns the replies of Toolgate itself. */
async function drive(client: Caller): Promise<string> {
  const args = { argument, secret: env.SOME_API_KEY };
  const call = (name: string) =>
    client
      .callTool({ name, arguments: args })
      .then(JSON.stringify, (error: Error) => `${error.message} ${error.stack}`);
  const relayed = await call('l_error');
  // Byte for byte: this is the server's own answer to its caller.
  expect(relayed).toContain(env.SOME_API_KEY);
  expect(await call('l_echo')).toContain(env.SOME_API_KEY);
  await call('l_tell');
  const own: string[] = [];
  for (const name of ['l_broken', 'l_hang', 'l_crash', 'l_echo', 'no_such_tool', 'dead_x', 'echo_x'])
    own.push(await call(name));
  return own.filter((text) => !text.includes('"content":[{"type":"text","text":"{\\"argument')).join('\n');
}

it('no planted secret appears in logs, audit, replies or files of Toolgate', async () => {
  const config = await writeConfig();
  const temporary = tempFolder();
  const home = tempFolder();
  const options = { config, env: { ...env, TMPDIR: temporary, HOME: home }, args: ['--log-level', 'debug'] };
  const token = { authorization: `Bearer ${env.BEARER_TOKEN}` };
  const seen: Record<string, string> = {};

  const http = await startHttp({ ...options, ready: false });
  const legacy = await http.connect({ headers: token });
  await waitFor(async () => (await legacy.client.listTools()).tools.some(({ name }) => name === 'l_echo'));
  seen['answers to a client with a session'] = await drive(legacy.client as Caller);
  await waitFor(async () => (await legacy.client.listTools()).tools.some(({ name }) => name === 'l_echo'));
  const modern = await http.connectModern(token);
  seen['answers to a client without one'] = await drive(modern.client as Caller);
  for (const wrong of [agentToken, `${env.BEARER_TOKEN}x`]) {
    const refused = await http.post('{}', { authorization: `Bearer ${wrong}` });
    expect(refused.status).toBe(401);
    seen[`answer to ${wrong.slice(0, 3)}`] = await refused.text();
  }
  const file = join(http.cwd, 'tools.toml');
  writeFileSync(file, `${config}\nnonsense = "${literal}"\n[http]\nport = "${env.SOME_API_KEY}"\n`);
  await waitFor(() => http.stderr().includes('the new one is refused'));
  seen.metrics = await (await fetch(`${http.origin}/metrics`, { headers: token })).text();
  seen.figures = await (
    await fetch(`${http.origin}/metrics`, { headers: { ...token, accept: 'application/json' } })
  ).text();
  seen['command lines'] = commandLines(http.pid);
  await http.stop();
  seen['log of serve'] = http.stdout() + http.stderr();

  writeFileSync(file, config);
  const again = { ...options, cwd: http.cwd };
  const pipe = await startStdio({ ...again, process: isWide });
  await waitFor(async () => (await pipe.client.listTools()).tools.some(({ name }) => name === 'l_echo'));
  seen['answers on stdio'] = await drive(pipe.client as Caller);
  if (isWide) seen['command lines of stdio'] = commandLines(pipe.pid);
  await pipe.stop();
  seen['log of stdio'] = pipe.stderr();
  // The answers of that era were read over HTTP, and the log of this door above.
  if (isWide) {
    const young = await startModernStdio(again);
    await waitFor(async () => (await young.client.listTools()).tools.some(({ name }) => name === 'l_echo'));
    seen['answers on modern stdio'] = await drive(young.client as Caller);
    await young.stop();
    seen['log of modern stdio'] = young.stderr();
  }

  const commands = [
    ['list', 'servers'],
    ['doctor'],
    ['call', 'l_crash', '--log-level', 'debug'],
    ['audit', 'query', '--limit', '0', '--json'],
    // These show the same in another form, or less.
    ...some(
      [
        ['list', 'servers', '--json'],
        ['doctor', '--json'],
        ['call', 'dead_x'],
        ['audit', 'usage'],
      ],
      [],
    ),
  ];
  for (const command of commands) {
    const { stdout, stderr } = await runCli(command, { cwd: http.cwd, env: options.env, process: isWide });
    seen[`toolgate ${command.join(' ')}`] = stdout + stderr;
  }
  const wrong = await runCli(['doctor'], {
    config: `${config}\nmodes = "x"\n[limits]\nbody = "${env.SOME_API_KEY}"\n`,
    env: options.env,
    process: isWide,
  });
  seen['a configuration that is refused'] = wrong.stdout + wrong.stderr;
  expect(wrong.code).toBe(2);

  for (const folder of [join(http.cwd, '.toolgate'), temporary, home])
    for (const [name, text] of filesIn(folder)) seen[`file ${name}`] = text;

  const found = Object.entries(seen).flatMap(([place, text]) => findIn(text).map((where) => `${place}: ${where}`));
  expect(found).toEqual([]);
  const ours = Object.entries(seen).filter(([place]) => !place.startsWith('file') && !place.includes('audit'));
  expect(ours.flatMap(([place, text]) => findIn(text, [argument]).map((where) => `${place}: ${where}`))).toEqual([]);

  // All of these failures happened, and were reported without the secrets.
  expect(seen['log of serve']).toContain('[redacted]');
  expect(seen['log of serve']).toContain('it said: leaky: [redacted]');
  expect(seen['toolgate doctor']).toContain('leaky: [redacted]');
  expect(seen['toolgate list servers']).toContain('dead');
  const calls = readLines(auditOf(http.cwd)).filter(isCall);
  expect(calls.length).toBeGreaterThan(15);
  expect(calls.some(({ arguments: args }) => String(args).includes('"secret":"[redacted]"'))).toBe(true);
}, 120_000);
