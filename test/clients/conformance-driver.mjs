/**
 * The client that the official suite starts: Toolgate on stdio, with the suite's server behind it. Lists, calls every tool,
 * and logs in when Toolgate asks for it, by following the address like a browser. Usage: conformance-driver.mjs URL
 */
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';

const url = process.argv.at(-1);
const scenario = process.env.MCP_CONFORMANCE_SCENARIO ?? '';
const context = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? '{}');
const bin = fileURLToPath(new URL('../../bin/toolgate.mjs', import.meta.url));
/** More than any scenario needs. One that never succeeds must end, too. */
const MOST_LOGINS = 3;

const cwd = mkdtempSync(join(tmpdir(), 'toolgate-driver-'));
const env = { PATH: process.env.PATH, HOME: cwd, SECRETS_KEY: 'a key for this run only', TOOLGATE_SHARED: '0' };
const config = join(cwd, 'tools.json');
const suite = { namespace: '', url, ...oauthOf() };
writeFileSync(config, JSON.stringify({ controls: [], servers: { suite } }));

/** What the scenario says about the client, in the words of Toolgate's configuration. */
function oauthOf() {
  if (scenario === 'auth/basic-cimd')
    return { oauth: { client_metadata: 'https://conformance-test.local/client-metadata.json' } };
  const { client_id, client_secret, private_key_pem, signing_algorithm, valid_jwt, idp_issuer } = context;
  if (client_id === undefined) return {};
  const client = { client_id, ...(client_secret !== undefined && { client_secret }) };
  if (private_key_pem !== undefined)
    return {
      oauth: { grant: 'client_credentials', client_id, private_key: private_key_pem, algorithm: signing_algorithm },
    };
  if (valid_jwt !== undefined) return { oauth: { grant: 'jwt_bearer', client_id, assertion: valid_jwt } };
  if (idp_issuer !== undefined) {
    const idp = { issuer: idp_issuer, client_id: context.idp_client_id, id_token: context.idp_id_token };
    return { oauth: { grant: 'enterprise', ...client, idp } };
  }
  return {
    oauth: scenario.startsWith('auth/client-credentials') ? { grant: 'client_credentials', ...client } : client,
  };
}

const transport = new StdioClientTransport({
  command: process.execPath,
  args: [bin, 'stdio', '--no-shared', '--config', config, '--log-level', 'debug'],
  cwd,
  env,
  stderr: 'pipe',
});
let log = '';
transport.stderr.on('data', (chunk) => {
  log += chunk;
  process.stderr.write(chunk);
});
const client = new Client(
  { name: 'conformance-driver', version: '1' },
  { capabilities: { elicitation: { form: { applyDefaults: true } } } },
);
client.setRequestHandler(ElicitRequestSchema, ({ params }) => ({ action: 'accept', content: defaultsOf(params) }));

let code = 1;
try {
  await client.connect(transport);
  code = await drive();
} catch (error) {
  console.error(error);
} finally {
  await client.close();
  rmSync(cwd, { recursive: true, force: true });
}
process.exit(code);

async function drive() {
  let logins = 0;
  for (;;) {
    const tools = await listTools();
    const answers = tools.length === 0 ? [await overview()] : await callAll(tools);
    const needed = answers.some((text) => text.includes('toolgate login'));
    if (!needed) return 0;
    if (logins++ === MOST_LOGINS) return 1;
    const before = log.length;
    if (!(await logIn())) return 1;
    await servedAgain(before);
  }
}

/** While the server starts, Toolgate waits with its answer, but not for as long as a busy machine may need. */
async function listTools() {
  const { tools } = await client.listTools();
  if (tools.length > 0) return tools;
  await servedAgain(0);
  return (await client.listTools()).tools;
}

async function callAll(tools) {
  const given = context.toolCalls ?? [];
  const calls =
    given.length > 0 ? given : tools.map((tool) => ({ name: tool.name, arguments: argumentsFor(tool, tools) }));
  const texts = [];
  for (const call of calls) {
    const answer = await client
      .callTool(call)
      .catch((error) => ({ isError: true, content: [{ text: String(error) }] }));
    if (answer.isError === true) texts.push(JSON.stringify(answer.content));
  }
  return texts;
}

/** What a model is told if there are no tools: a call of any name says why. */
async function overview() {
  const answer = await client.callTool({ name: 'anything', arguments: {} }).catch((error) => ({ text: String(error) }));
  return JSON.stringify(answer);
}

async function logIn() {
  const args = [bin, 'login', 'suite', '--no-browser', '--timeout', '40s', '--config', config];
  const { exitCode } = await run(args, async (text) => {
    const address = /^\s+(https?:\/\/\S+)$/m.exec(text)?.[1];
    if (address === undefined) return false;
    await fetch(address).then((response) => response.text());
    return true;
  });
  return exitCode === 0;
}

function run(args, hear = async () => true) {
  const child = spawn(process.execPath, args, { cwd, env });
  let stdout = '';
  let stderr = '';
  let isHeard = false;
  child.stdout.on('data', (chunk) => {
    stdout += chunk;
  });
  child.stderr.on('data', (chunk) => {
    stderr += chunk;
    if (isHeard || !stderr.endsWith('\n')) return;
    isHeard = /^\s+https?:/m.test(stderr);
    if (isHeard) hear(stderr).catch((error) => console.error(error));
  });
  return new Promise((resolve) => {
    child.on('close', (exitCode) => {
      if (exitCode !== 0) console.error(stdout, stderr);
      resolve({ exitCode, stdout, stderr });
    });
  });
}

/** Resolves when the running gateway has noticed the login: by its log, the server is up or waits for another one. */
async function servedAgain(before) {
  for (let tries = 0; tries < 600; tries++) {
    if (/"source":"suite"[^\n]*"(?:up|locked|down)/.test(log.slice(before))) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** One scenario wants to see the schema that arrived here. */
function argumentsFor({ name, inputSchema }, tools) {
  if (name !== 'json_schema_echo') return argumentsOf(inputSchema);
  return { schema: tools.find((tool) => tool.name !== name).inputSchema };
}

/** The smallest arguments that fit a schema. */
function argumentsOf({ properties = {}, required = [] } = {}) {
  return Object.fromEntries(required.map((name) => [name, fitting(properties[name] ?? {})]));
}

function fitting({ type, enum: words, default: given, properties, required }) {
  if (given !== undefined) return given;
  if (Array.isArray(words)) return words[0];
  if (type === 'object') return argumentsOf({ properties, required });
  return { string: 'text', number: 5, integer: 3, boolean: true, array: [] }[type] ?? 'text';
}

function defaultsOf({ requestedSchema }) {
  const properties = Object.entries(requestedSchema?.properties ?? {});
  const required = requestedSchema?.required ?? [];
  return Object.fromEntries(
    properties.flatMap(([name, schema]) =>
      schema.default !== undefined || required.includes(name) ? [[name, fitting(schema)]] : [],
    ),
  );
}
