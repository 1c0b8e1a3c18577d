/** An OpenAPI document becomes a namespace: its tools are called through a gateway and reach a real API. */
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { namespaceFromOpenApi } from '../../src/manager/builder/from-openapi.ts';
import { readOpenApi } from '../../src/manager/builder/openapi.ts';
import { checkTypeScript } from '../../src/manager/check-code.ts';
import { readMetadata } from '../../src/workers/metadata.ts';
import { atEnd } from '../support/cleanup.ts';
import { runCli } from '../support/cli.ts';
import { startHttp } from '../support/gateway.ts';
import { waitFor } from '../support/processes.ts';
import { tempFolder } from '../support/temp.ts';

interface Received {
  readonly method: string;
  readonly url: string;
  readonly key: string;
  readonly trace: string;
  readonly body: string;
}

/** An API that answers with what it received. */
async function startApi(): Promise<{ origin: string; received: Received[] }> {
  const received: Received[] = [];
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    const { method = '', url = '', headers } = request;
    const one = { method, url, key: String(headers['x-api-key'] ?? ''), trace: String(headers['x-trace'] ?? ''), body };
    received.push(one);
    if (url.startsWith('/v1/pets/404')) response.writeHead(404).end('no such pet');
    else if (method === 'DELETE') response.writeHead(204).end();
    else response.setHeader('content-type', 'application/json').end(JSON.stringify(one));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  atEnd(() => {
    server.closeAllConnections();
    server.close();
  });
  return { origin: `http://127.0.0.1:${(server.address() as { port: number }).port}`, received };
}

function pets(url: string) {
  return {
    openapi: '3.0.3',
    info: { title: 'Pets', version: '1.0.0', description: 'All pets\nof the shop' },
    servers: [{ url: `${url}/{version}`, variables: { version: { default: 'v1' } } }],
    security: [{ apiKey: [] }],
    paths: {
      '/pets': {
        get: {
          operationId: 'listPets',
          summary: 'List pets',
          parameters: [
            { name: 'tag', in: 'query', schema: { type: 'array', items: { type: 'string' } } },
            { name: 'filter', in: 'query', style: 'deepObject', schema: { type: 'object' } },
            { $ref: '#/components/parameters/Trace' },
          ],
        },
        post: {
          operationId: 'create-pet',
          requestBody: {
            required: true,
            content: { 'application/json': { schema: { $ref: '#/components/schemas/Pet' } } },
          },
        },
      },
      '/pets/{petId}': {
        parameters: [
          { name: 'petId', in: 'path', required: true, schema: { type: 'string' }, description: 'Which one' },
        ],
        get: { summary: 'One pet', security: [] },
        delete: { operationId: 'delete' },
      },
    },
    components: {
      parameters: { Trace: { name: 'X-Trace', in: 'header', schema: { type: 'string' } } },
      schemas: {
        Pet: {
          type: 'object',
          required: ['name'],
          properties: {
            name: { type: 'string' },
            age: { type: 'integer', nullable: true, minimum: 0, exclusiveMinimum: true },
            mother: { $ref: '#/components/schemas/Pet' },
          },
        },
      },
      securitySchemes: { apiKey: { type: 'apiKey', in: 'header', name: 'X-Api-Key' } },
    },
  };
}

it('its tools are served, and call the API with paths, queries, headers, bodies and the secret', async () => {
  const api = await startApi();
  const env = { SECRETS_KEY: 'a-key-that-is-long-enough-for-this' };
  const cwd = tempFolder({ 'tools.toml': 'controls = []\n', 'pets.yaml': stringify(pets(api.origin)) });
  const made = await runCli(['namespaces', 'from-openapi', 'pets.yaml', 'pets'], { cwd, env });
  expect(made.stdout).toContain('Created 4 tools in');
  expect(made.stdout).toContain('toolgate secrets set PETS_TOKEN --namespace pets');
  await runCli(['secrets', 'set', 'PETS_TOKEN', '--namespace', 'pets', '--stdin'], { cwd, env, input: 'geheim-1234' });
  const gateway = await startHttp({ cwd, env });
  const { client } = await gateway.connect();
  const list = async () => (await client.listTools()).tools;
  await waitFor(async () => (await list()).length === 4);
  const tools = new Map((await list()).map((tool) => [tool.name, tool]));
  expect([...tools.keys()].sort()).toEqual([
    'pets_call_delete',
    'pets_create_pet',
    'pets_get_pets_petId',
    'pets_listPets',
  ]);
  expect(tools.get('pets_listPets')).toMatchObject({ description: 'List pets', annotations: { readOnlyHint: true } });
  expect(tools.get('pets_create_pet')?.inputSchema).toMatchObject({
    required: ['body'],
    properties: {
      body: {
        properties: { age: { type: ['integer', 'null'], exclusiveMinimum: 0 }, mother: { description: 'Another Pet' } },
      },
    },
  });

  const call = async (name: string, args: object) => {
    const result = await client.callTool({ name, arguments: { ...args } });
    return { text: (result.content as { text: string }[])[0]!.text, isError: result.isError === true };
  };
  await call('pets_listPets', { tag: ['a', 'b&c'], filter: { age: 3 }, 'X-Trace': 't1' });
  await call('pets_create_pet', { body: { name: 'Rex', age: null } });
  await call('pets_get_pets_petId', { petId: '../secret' });
  expect(await call('pets_call_delete', { petId: '7' })).toEqual({ text: 'Done (204).', isError: false });
  expect(api.received.map(({ method, url, body, trace }) => [method, url, body, trace])).toEqual([
    ['GET', '/v1/pets?tag=a&tag=b%26c&filter%5Bage%5D=3', '', 't1'],
    ['POST', '/v1/pets', '{"name":"Rex","age":null}', ''],
    ['GET', '/v1/pets/..%2Fsecret', '', ''],
    ['DELETE', '/v1/pets/7', '', ''],
  ]);
  expect(api.received.map(({ key }) => key)).toEqual(['geheim-1234', 'geheim-1234', '', 'geheim-1234']);
  const missing = await call('pets_get_pets_petId', { petId: '404' });
  expect(missing).toEqual({ text: expect.stringContaining('404'), isError: true });
  expect((await call('pets_create_pet', { body: { age: 1 } })).isError).toBe(true);
  expect((await call('pets_listPets', { unknown: 1 })).isError).toBe(true);
});

function generate(document: object, more: object = {}) {
  const cwd = tempFolder({ 'api.json': JSON.stringify(document) });
  const dataDir = tempFolder();
  const request = {
    source: 'api.json',
    namespace: 'my-api',
    baseUrl: null,
    cwd,
    mayReadFiles: true,
    mayReachPrivate: true,
    signal: null,
    ...more,
  };
  return namespaceFromOpenApi(request, dataDir);
}

describe('a document', () => {
  it('of a stranger cannot become code', async () => {
    const evil = "'; process.exit(1); //` ${process.env.X} */ \u2028 \n";
    const made = await generate({
      openapi: '3.1.0',
      info: { title: evil, version: evil, description: evil },
      servers: [{ url: 'https://api.example.com/' }],
      components: { securitySchemes: { [evil]: { type: 'http', scheme: 'bearer' } } },
      security: [{ [evil]: [] }],
      paths: {
        [`/${evil}/{a}`]: {
          get: {
            operationId: evil,
            summary: evil,
            description: evil,
            parameters: [{ name: evil, in: 'query', schema: { type: 'string', default: evil, enum: [evil] } }],
          },
        },
        '/__proto__': {
          get: { operationId: '__proto__', parameters: [{ name: '__proto__', in: 'query', schema: {} }] },
        },
        '/class': { get: { operationId: 'class' } },
      },
    });
    const code = readFileSync(join(made.path, 'api.ts'), 'utf8');
    const checked = await checkTypeScript('api.ts', code);
    expect(checked.problems).toEqual([]);
    expect(made.tools_found).toEqual(['process_exit_1_process_env_X', 'proto', 'call_class']);
    expect(code.split('\n').filter((line) => line.startsWith('//'))).toHaveLength(1);
    const helper = await checkTypeScript('_request.ts', readFileSync(join(made.path, '_request.ts'), 'utf8'));
    expect(helper.isBroken).toBe(false);
    expect((await readMetadata(readFileSync(join(made.path, 'tooldock.yaml'), 'utf8'))).problems).toEqual([]);
    expect(made.secrets_needed).toEqual(['MY_API_TOKEN']);
  });

  it('may use each kind of credential, and secrets are only asked for where one is used', async () => {
    const schemes = {
      a: { type: 'oauth2' },
      b: { type: 'http', scheme: 'basic' },
      inQuery: { type: 'apiKey', in: 'query', name: 'key' },
      c: { type: 'apiKey', in: 'cookie', name: 'c' },
    };
    const { security, operations, notes } = await readOpenApi(
      JSON.stringify({
        openapi: '3.1.0',
        components: { securitySchemes: schemes },
        security: [{ a: [] }],
        paths: {
          '/x': {
            get: {},
            put: { security: [{ c: [] }, { b: [], inQuery: [] }] },
            post: { security: [{ a: [] }, {}] },
          },
        },
      }),
      null,
    );
    expect(security).toEqual({ a: { kind: 'bearer' }, b: { kind: 'basic' }, inQuery: { kind: 'query', name: 'key' } });
    expect(operations.map(({ method, security: needed }) => [method, needed])).toEqual([
      ['GET', ['a']],
      ['PUT', ['b', 'inQuery']],
      ['POST', []],
    ]);
    expect(notes).toEqual(['The security scheme "c" is not supported and left out.']);
  });

  it.each([
    ['{ "swagger": "2.0" }', 'it is Swagger 2.0'],
    ['openapi: 3.1.0\npaths: {}', 'has no operations'],
    ['[1]', 'not a map'],
    ['{ "openapi": ', 'neither JSON nor YAML'],
  ])('%s is refused', async (text, why) => {
    await expect(readOpenApi(text, null)).rejects.toThrow(why);
  });

  it('needs an address of its API, and a model cannot read files or private addresses with it', async () => {
    const document = { openapi: '3.1.0', paths: { '/x': { get: {} } } };
    await expect(generate(document)).rejects.toThrow('names no address of the API');
    expect((await generate(document, { baseUrl: 'https://api.example.com' })).base_url).toBe('https://api.example.com');
    const asModel = { mayReadFiles: false, mayReachPrivate: false };
    await expect(generate(document, asModel)).rejects.toThrow('is not an address');
    await expect(generate(document, { ...asModel, source: 'https://127.0.0.1/x' })).rejects.toThrow('private address');
    await expect(generate(document, { ...asModel, source: 'http://example.com/x' })).rejects.toThrow(
      'not an https address',
    );
    await expect(generate(document, { namespace: '../x', baseUrl: 'https://a.example' })).rejects.toThrow(
      'cannot be a namespace',
    );
  });

  it('that grows without end is cut', async () => {
    const schemas = Object.fromEntries(
      Array.from({ length: 30 }, (_, i) => [
        `S${i}`,
        {
          type: 'object',
          properties: { a: { $ref: `#/components/schemas/S${i + 1}` }, b: { $ref: `#/components/schemas/S${i + 1}` } },
        },
      ]),
    );
    const body = { content: { 'application/json': { schema: { $ref: '#/components/schemas/S0' } } } };
    const made = await readOpenApi(
      JSON.stringify({ openapi: '3.1.0', components: { schemas }, paths: { '/x': { post: { requestBody: body } } } }),
      null,
    );
    expect(JSON.stringify(made).length).toBeLessThan(2_000_000);
  });
});
