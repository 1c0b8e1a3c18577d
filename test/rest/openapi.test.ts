/** The OpenAPI documents: two independent validators accept them, a generated client calls tools, and readers see only what they may. */
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { noPython } from '../support/python.ts';
import { tempFolder } from '../support/temp.ts';
import { tool } from '../support/tools.ts';
import { onePart } from '../support/wide.ts';
import { basic, PYTHON, type RestGateway, startRest, TYPESCRIPT } from './rest.ts';

const TOKEN = 'a-token-for-the-tests-of-openapi';
const auth = { authorization: `Bearer ${TOKEN}` };

/** Schemas as servers send them, good and bad. */
const ODD_TOOLS = JSON.stringify(
  Object.entries({
    recursive: {
      type: 'object',
      properties: { tree: { $ref: '#/$defs/Tree' } },
      $defs: { Tree: { type: 'object', properties: { kids: { type: 'array', items: { $ref: '#/$defs/Tree' } } } } },
    },
    itself: { type: 'object', properties: { inner: { $ref: '#' } } },
    draft7: {
      $schema: 'http://json-schema.org/draft-07/schema#',
      $id: 'urn:x',
      type: 'object',
      required: ['a'],
      definitions: { A: { type: 'string', nullable: true } },
      properties: {
        a: { $ref: '#/definitions/A' },
        b: { type: 'array', items: [{ type: 'string' }], additionalItems: false },
      },
    },
    draft4: {
      id: 'x',
      type: 'object',
      properties: { n: { type: 'integer', minimum: 0, exclusiveMinimum: true, required: true } },
    },
    union: {
      type: 'object',
      discriminator: { propertyName: 'kind' },
      anyOf: [{ $ref: '#/$defs/A' }],
      $defs: { A: { const: 1 } },
    },
    remote: { type: 'object', properties: { a: { $ref: 'https://example.com/schema.json' } } },
    wrong: { type: 'object', properties: ['a'], required: 'a', enum: [], description: 7, minLength: 'x', $anchor: 'y' },
    any: { type: 'object', additionalProperties: true, properties: { a: true, b: {} } },
    'a/b {c}': { type: 'object' },
    'a.b': { type: 'object' },
    a_b: { type: 'object' },
    ['long_'.repeat(30)]: { type: 'object' },
  }).map(([name, inputSchema]) => ({ name, inputSchema, outputSchema: inputSchema })),
);

let gateway: RestGateway;
// biome-ignore lint/suspicious/noExplicitAny: tests read any part of a document
type Document = any;
const documentAt = async (path: string, headers = {}): Promise<Document> =>
  (await gateway.ask(path, { headers: { ...auth, ...headers } })).json;

beforeAll(async () => {
  const folder = tempFolder({ 'tools.json': ODD_TOOLS });
  const everything = join(process.cwd(), 'node_modules/@modelcontextprotocol/server-everything/dist/index.js');
  const files = join(process.cwd(), 'node_modules/@modelcontextprotocol/server-filesystem/dist/index.js');
  gateway = await startRest(
    {
      names: 'join',
      http: { mcpo: true },
      toolsets: { few: { tools: ['up.echo'] } },
      servers: {
        up: basic('--instructions', 'Use it well.'),
        odd: basic('--raw-tools', join(folder, 'tools.json')),
        every: { command: process.execPath, args: [everything] },
        files: { command: process.execPath, args: [files, '.'] },
      },
    },
    {
      '.toolgate/tools/ts/tools.ts': TYPESCRIPT,
      ...(noPython === undefined && { '.toolgate/tools/py/tools.py': PYTHON }),
    },
    { BEARER_TOKEN: TOKEN },
  );
}, 60_000);

const DOCUMENTS = [
  '/openapi.json',
  '/openapi.json?toolset=few',
  '/ns/odd/openapi.json',
  '/ns/ts/openapi.json',
  '/odd/openapi.json',
  '/ns/py/openapi.json',
];

describe.each(onePart(2, DOCUMENTS))('%s', (path) => {
  beforeEach((context) => {
    if (noPython !== undefined && path.includes('/py/')) context.skip(noPython);
  });

  it('is valid for Redocly', async () => {
    const { text } = await gateway.ask(path, { headers: auth });
    expect(await lint(text)).toEqual([]);
  });

  it('is valid for ReadMe', async () => {
    const { validate } = await load('@readme/openapi-parser/dist/index.js');
    expect(await validate(await documentAt(path))).toMatchObject({ valid: true });
  });

  it('has distinct operations, and no dangling references', async () => {
    const document = await documentAt(path);
    const ids = Object.values(document.paths).map((one) => (one as Document).post.operationId as string);
    expect(ids.length).toBeGreaterThan(0);
    expect(new Set(ids).size).toBe(ids.length);
    for (const id of ids) expect(id).toMatch(/^[\w-]{1,64}$/);
    for (const [reference] of JSON.stringify(document.paths).matchAll(/"\$ref":"[^"]+"/g)) {
      const parts = reference.slice('"$ref":"#/'.length, -1).split('/');
      expect(
        parts.reduce((at, part) => at?.[part], document),
        reference,
      ).toBeDefined();
    }
    expect(JSON.stringify(document)).not.toMatch(/"\$(schema|id|defs|anchor)"|"definitions"|x-fastmcp/);
  });
});

it('the validators detect a broken document', async () => {
  const broken = await documentAt('/ns/ts/openapi.json');
  broken.paths['/tools/add'].post.responses = { 200: { content: 7 } };
  broken.paths['/tools/greet'].post.operationId = 'ts_add';
  expect(await lint(JSON.stringify(broken))).not.toEqual([]);
  const { validate } = await load('@readme/openapi-parser/dist/index.js');
  expect(await validate(broken)).toMatchObject({ valid: false });
});

/** The problems that Redocly finds. */
async function lint(source: string): Promise<string[]> {
  const { createConfig, lintFromString } = await load('@redocly/openapi-core/lib/index.js');
  const rules = { 'operation-operationId-unique': 'error', 'no-server-trailing-slash': 'off' };
  const config = await createConfig({ extends: ['spec'], rules });
  const problems = (await lintFromString({ source, config })) as { message: string; location: unknown }[];
  return problems.map(({ message, location }) => `${message} ${JSON.stringify(location).slice(0, 300)}`);
}

async function load(path: string): Promise<Document> {
  return import(pathToFileURL(tool(...path.split('/'))).href);
}

describe('a client that is generated from a document', () => {
  it('calls tools', async () => {
    const { default: exported } = await load('openapi-client-axios/index.js');
    const OpenAPIClientAxios = exported.OpenAPIClientAxios ?? exported.default ?? exported;
    const definition = await documentAt('/ns/ts/openapi.json');
    const client = await new OpenAPIClientAxios({
      definition,
      axiosConfigDefaults: { baseURL: `${gateway.origin}${definition.servers[0].url}`, headers: auth, proxy: false },
    }).init();
    expect((await client.ts_add(null, { a: 2, b: 3 })).data).toBe(5);
    expect((await client.ts_greet(null, { person: { name: 'Ada' } })).data).toEqual({ text: 'Hello Ada' });
    await expect(client.ts_add(null, { a: 'x' })).rejects.toMatchObject({ response: { status: 422 } });
  });
});

describe('a document', () => {
  it('contains what its reader needs', async () => {
    const document = await documentAt('/ns/ts/openapi.json');
    expect(document).toMatchObject({
      openapi: '3.1.0',
      info: { title: 'Toolgate: ts' },
      servers: [{ url: '/ns/ts' }],
      security: [{ bearer: [] }],
      components: { securitySchemes: { bearer: { type: 'http', scheme: 'bearer' } } },
    });
    expect(document.paths['/tools/add'].post).toMatchObject({
      operationId: 'ts_add',
      summary: 'Add',
      description: 'Adds two numbers.',
      tags: ['ts'],
      requestBody: { required: true, content: { 'application/json': { schema: { type: 'object', required: ['a'] } } } },
      responses: { 200: { content: { 'application/json': { schema: { type: 'number' } } } } },
    });
    expect(document.paths['/tools/greet'].post.summary).toBe('A greeting');
    expect((await documentAt('/ns/up/openapi.json')).info.description).toContain('Use it well.');
    expect((await documentAt('/openapi.json', { 'x-namespace': 'ts' })).servers).toEqual([{ url: '/ns/ts' }]);
    const short = await documentAt('/ts/openapi.json');
    expect([short.servers, Object.keys(short.paths)[0]]).toEqual([[{ url: '/ts' }], '/add']);
  });

  it('of a toolset says that calls must name the toolset', async () => {
    const { paths, components } = await documentAt('/openapi.json?toolset=few');
    expect(Object.keys(paths)).toEqual(['/tools/up_echo']);
    expect(components.parameters.toolset).toMatchObject({ in: 'query', required: true, schema: { enum: ['few'] } });
  });

  it.skipIf(noPython !== undefined)('contains the Python models that are used', async () => {
    const { paths, components } = await documentAt('/ns/py/openapi.json');
    const schemaOf = (path: string) => paths[path].post.requestBody.content['application/json'].schema;
    expect(schemaOf('/tools/greet').properties.person).toMatchObject({
      type: 'object',
      properties: { age: { anyOf: [{ type: 'integer' }, { type: 'null' }] } },
    });
    expect(schemaOf('/tools/count').properties.tree).toEqual({ $ref: '#/components/schemas/py_count_in_Node' });
    expect(components.schemas.py_count_in_Node.properties.children.items).toEqual({
      $ref: '#/components/schemas/py_count_in_Node',
    });
    expect(paths['/tools/add'].post.responses[200].content['application/json'].schema).toEqual({ type: 'integer' });
  });

  it('is not sent again while it is unchanged', async () => {
    const first = await gateway.ask('/openapi.json', { headers: auth });
    const etag = first.headers.get('etag')!;
    for (const known of [etag, `W/${etag}`, `"x", ${etag}`, '*']) {
      const again = await gateway.ask('/openapi.json', { headers: { ...auth, 'if-none-match': known } });
      expect([again.status, again.text, again.headers.get('etag')]).toEqual([304, '', etag]);
    }
    expect((await gateway.ask('/openapi.json', { headers: { ...auth, 'if-none-match': '"x"' } })).status).toBe(200);
    expect(first.headers.get('vary')).toContain('authorization');
  });

  it('requires a token if calls do, and reveals nothing without', async () => {
    for (const path of ['/openapi.json', '/ns/ts/openapi.json', '/ts/openapi.json', '/tools', '/namespaces']) {
      const { status, headers, text } = await gateway.ask(path);
      expect([path, status]).toEqual([path, 401]);
      expect(headers.get('www-authenticate')).toMatch(/^Bearer /);
      expect(text).not.toContain('echo');
    }
  });
});

describe('the page', () => {
  it('is one file that loads nothing from elsewhere and reveals nothing', async () => {
    for (const path of ['/docs', '/ns/ts/docs', '/ns/nope/docs', '/ts/docs']) {
      const { status, headers, text } = await gateway.ask(path);
      expect([path, status, headers.get('content-type')]).toEqual([path, 200, 'text/html; charset=utf-8']);
      expect(text).not.toMatch(/https?:|src=|echo|url\(/);
      const policy = headers.get('content-security-policy')!;
      expect(policy).toMatch(
        /^default-src 'none'; script-src 'sha256-[^']+'; style-src 'sha256-[^']+'; connect-src 'self';/,
      );
      expect(policy).not.toContain('unsafe');
    }
  });

  it('has a content policy that allows only its own script and style', async () => {
    const { headers, text } = await gateway.ask('/docs');
    const policy = headers.get('content-security-policy')!;
    for (const element of ['script', 'style']) {
      const [own, ...others] = [...text.matchAll(new RegExp(`<${element}\\b[^>]*>(.*?)</${element}>`, 'gs'))];
      const hash = createHash('sha256').update(own![1]!).digest('base64');
      expect(others).toEqual([]);
      expect(own![1]!.length).toBeGreaterThan(500);
      expect(policy).toContain(`${element}-src 'sha256-${hash}';`);
    }
  });

  it('is sent in less than 12 kB', async () => {
    const { headers, text } = await gateway.ask('/docs');
    expect(Number(headers.get('content-length'))).toBe(Buffer.byteLength(text));
    expect(Buffer.byteLength(text)).toBeLessThan(12_000);
  });
});
