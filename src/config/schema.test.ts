import { describe, expect, it } from 'vitest';
import { issueText, schemaIssues } from './issues.ts';
import { configJsonSchema, fileSchema } from './schema.ts';
import { entriesOf } from './servers.ts';

function problems(value: unknown): string[] {
  const { error } = fileSchema.safeParse(value);
  return error ? schemaIssues(fileSchema, error, value).map(issueText) : [];
}

function withoutNulls(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value, (_, inner) => (inner === null ? undefined : inner)));
}

const DURATION = 'expected a duration such as "250ms", "30s", "10m" or "24h", or a number of milliseconds';
const SIZE = 'expected a size such as "512KiB", "4MiB" or "1MB", or a number of bytes';

describe('the message of the schema for', () => {
  it.each<[what: string, value: unknown, problems: string[]]>([
    ['a string instead of a configuration', 'x', ['expected a map, found a string.']],
    ['null instead of a configuration', null, ['expected a map, found null.']],
    ['a mistyped key', { active_toolset: [] }, ['active_toolset: unknown key. Did you mean "active_toolsets"?']],
    [
      'a key that resembles none',
      { limits: { zzzzzzz: 1 } },
      [
        'limits.zzzzzzz: unknown key. Known keys: body, depth, message, max_result, page, replay, unread, unread_total, batch, subscriptions.',
      ],
    ],
    [
      'an invalid rate',
      {
        servers: [
          { command: 'x', rate: '30 per minute' },
          { command: 'x', rate: '0/s' },
          { command: 'x', rate: 5 },
        ],
      },
      [
        'servers[0].rate: expected a rate such as "5/s", "30/m" or "1000/h", found "30 per minute".',
        'servers[1].rate: must allow at least one call.',
        'servers[2].rate: expected a rate such as "5/s", "30/m" or "1000/h", found 5.',
      ],
    ],
    [
      'a concurrency of 0 and a negative queue',
      { servers: [{ command: 'x', concurrency: 0, queue: -1 }] },
      [
        'servers[0].concurrency: expected a whole number from 1 to 1000000, found 0.',
        'servers[0].queue: expected a whole number from 0 to 1000000, found -1.',
      ],
    ],
    [
      'a mistyped limit of a tool',
      { servers: { git: { command: 'x', tools: { 'log_*': { cach: '1s' } } } } },
      ['servers.git.tools["log_*"].cach: unknown key. Did you mean "cache"?'],
    ],
    [
      'a mistyped limit of an agent',
      { agent_policies: { bot: { limits: { rat: '1/s' }, tool_limits: { 'a.*': { concurency: 1 } } } } },
      [
        'agent_policies.bot.limits.rat: unknown key. Did you mean "rate"?',
        'agent_policies.bot.tool_limits["a.*"].concurency: unknown key. Did you mean "concurrency"?',
      ],
    ],
    [
      'a cache in the limits of an agent',
      { default_policy: { tool_limits: { 'a.*': { cache: '1s' } } } },
      [
        'default_policy.tool_limits["a.*"].cache: unknown key. Known keys: timeout, total_timeout, concurrency, queue, rate, calls_per_day, max_arguments, max_result.',
      ],
    ],
    [
      'a mistyped key of a toolset',
      { toolsets: { dev: { tool: [], tools: [] } } },
      ['toolsets.dev.tool: unknown key. Did you mean "tools"?'],
    ],
    [
      'a key of a toolset that resembles none',
      { toolsets: { dev: { zzzzzzz: 1, tools: [] } } },
      ['toolsets.dev.zzzzzzz: unknown key. Known keys: description, tools.'],
    ],
    [
      'several mistyped keys of a server',
      { servers: [{ command: 'x' }, { comand: 'x', evn: {} }] },
      ['servers[1].comand: unknown key. Did you mean "command"?', 'servers[1].evn: unknown key. Did you mean "env"?'],
    ],
    [
      'a mistyped key of a named server',
      { servers: { git: { comand: 'x' } } },
      ['servers.git.comand: unknown key. Did you mean "command"?'],
    ],
    ['servers that are a number', { servers: 3 }, ['servers: expected a list or a map of servers, found 3.']],
    ['a server that is a string', { servers: ['npx x'] }, ['servers[0]: expected a map, found a string.']],
    ['mcpServers that are a list', { mcpServers: [] }, ['mcpServers: expected a map of servers, found a list.']],
    [
      'a server that cannot be reached',
      { servers: [{ namespace: 'x' }] },
      [
        'servers[0]: needs "command" (a program to start), "url" (an address to connect to) or "folder" (a folder of tool files).',
      ],
    ],
    [
      'a server with a wrong value and no command',
      { servers: [{ timeout: 'soon' }] },
      [
        `servers[0].timeout: ${DURATION}, found "soon".`,
        'servers[0]: needs "command" (a program to start), "url" (an address to connect to) or "folder" (a folder of tool files).',
      ],
    ],
    [
      'command and url',
      { servers: [{ command: 'x', url: 'y' }] },
      ['servers[0].url: cannot be combined with "command". Keep one of the two.'],
    ],
    [
      'a command as a list',
      { servers: [{ command: ['npx'] }] },
      ['servers[0].command: expected a string (arguments go in "args"), found a list.'],
    ],
    ['an empty command', { servers: [{ command: '' }] }, ['servers[0].command: is empty. Name the program to start.']],
    [
      'a NUL',
      { servers: [{ command: 'a\0b', args: ['\0'] }] },
      [
        'servers[0].command: contains a NUL character. Remove it.',
        'servers[0].args[0]: contains a NUL character. Remove it.',
      ],
    ],
    [
      'the transport sse with a command',
      { servers: [{ command: 'x', transport: 'sse' }] },
      ['servers[0].transport: "sse" needs "url". Use "stdio" or leave it out.'],
    ],
    [
      'a folder and a command',
      { servers: [{ command: 'x', folder: 'y' }] },
      ['servers[0].folder: cannot be combined with "command". Keep one of the two.'],
    ],
    [
      'keys of other kinds with a folder',
      { servers: [{ folder: 'x', args: [], headers: {}, transport: 'stdio' }] },
      [
        'servers[0].transport: "stdio" needs "command". Leave it out.',
        'servers[0].args: has no effect with "folder": it is for servers with "command".',
        'servers[0].headers: has no effect with "folder": it is for servers with "url".',
      ],
    ],
    [
      'keys of folders with a URL',
      { servers: [{ url: 'x', env: {}, memory: '1GiB', isolation: 'off' }] },
      [
        'servers[0].env: has no effect with "url": it is for servers with "command" or "folder".',
        'servers[0].memory: has no effect with "url": it is for servers with "folder".',
        'servers[0].isolation: has no effect with "url": it is for servers with "folder".',
      ],
    ],
    [
      'an unknown isolation',
      { folders: { isolation: 'none' }, servers: [{ folder: 'x', isolation: 'maybe' }] },
      [
        'folders.isolation: expected "auto", "required" or "off", found "none".',
        'servers[0].isolation: expected "auto", "required" or "off", found "maybe".',
      ],
    ],
    [
      'an unknown transport',
      { servers: [{ url: 'x', transport: 'tcp' }] },
      ['servers[0].transport: expected "stdio", "http" or "sse", found "tcp".'],
    ],
    [
      'keys of a program with a URL',
      { servers: [{ url: 'x', args: [], transport: 'stdio' }] },
      [
        'servers[0].transport: "stdio" needs "command". Use "http" or leave it out.',
        'servers[0].args: has no effect with "url": it is for servers with "command".',
      ],
    ],
    [
      'headers with a program',
      { servers: [{ command: 'x', headers: {} }] },
      ['servers[0].headers: has no effect with "command": it is for servers with "url".'],
    ],
    [
      'a namespace with invalid characters',
      { servers: [{ command: 'x', namespace: 'a b' }] },
      ['servers[0].namespace: expected only letters, digits, "_", "." and "-", found "a b".'],
    ],
    [
      'a name with invalid characters',
      { mcpServers: { 'my server': { command: 'x' }, 'your server': { command: 'x', namespace: 'your' } } },
      [
        'mcpServers["my server"]: the name becomes the prefix of the tools: use only letters, digits, "_", "." and "-", or set "namespace".',
      ],
    ],
    [
      'a number as a variable',
      { servers: [{ command: 'x', env: { PORT: 80 } }] },
      ['servers[0].env.PORT: expected a string, found 80.'],
    ],
    [
      'an invalid name of a variable',
      { servers: [{ command: 'x', env: { 'A=B': '' } }] },
      ['servers[0].env["A=B"]: is not a name for an environment variable.'],
    ],
    [
      'an invalid name of a header',
      { servers: [{ url: 'x', headers: { 'a b': '' } }] },
      ['servers[0].headers["a b"]: is not a name for an HTTP header.'],
    ],
    [
      'a secret in the place of a map',
      { servers: [{ url: 'x', headers: 'Bearer s3cret' }] },
      ['servers[0].headers: expected a map of strings, found a string.'],
    ],
    [
      'an unknown control',
      { controls: ['activte'] },
      [
        'controls[0]: expected "activate", "equip", "toolsets", "search", "auto", "request" or "prompt", found "activte".',
      ],
    ],
    ['an unknown kind of names', { names: 'flt' }, ['names: expected "join" or "flat", found "flt".']],
    [
      'a limit that is too small',
      { name_limit: 15 },
      ['name_limit: expected a whole number from 16 to 1024, found 15.'],
    ],
    [
      'one control',
      { controls: 'activate' },
      ['controls: expected "auto" or a list such as ["activate"], found "activate".'],
    ],
    ['one pattern', { active_toolsets: 'git_*' }, ['active_toolsets: expected a list of strings, found a string.']],
    ['a boolean instead of a duration', { start_wait: true }, [`start_wait: ${DURATION}, found true.`]],
    ['a negative duration', { start_wait: -1 }, [`start_wait: ${DURATION}, found -1.`]],
    ['a date instead of a duration', { start_wait: new Date(0) }, [`start_wait: ${DURATION}, found a date.`]],
    ['a duration that no timer can hold', { start_wait: '25000h' }, ['start_wait: must be at most "596h".']],
    ['a timeout of 0', { servers: [{ command: 'x', timeout: '0s' }] }, ['servers[0].timeout: must be longer than 0.']],
    [
      'sizes',
      { limits: { body: '3tb', message: 0 } },
      [`limits.body: ${SIZE}, found "3tb".`, 'limits.message: must be more than 0.'],
    ],
    ['a long text', { limits: { body: 'x'.repeat(99) } }, [`limits.body: ${SIZE}, found a text of 99 characters.`]],
    [
      'counts',
      { limits: { depth: 1.5 }, http: { max_sessions: 0 } },
      [
        'http.max_sessions: expected a whole number from 1 to 10000000, found 0.',
        'limits.depth: expected a whole number from 1 to 10000, found 1.5.',
      ],
    ],
    ['ports', { http: { port: 70_000 } }, ['http.port: expected a whole number from 0 to 65535, found 70000.']],
    [
      'a string instead of a port',
      { http: { port: '8808' } },
      ['http.port: expected a whole number from 0 to 65535, found a string.'],
    ],
    [
      'a string instead of a boolean',
      { servers: [{ command: 'x', enabled: 'yes' }] },
      ['servers[0].enabled: expected true or false, found a string.'],
    ],
    [
      'an unknown start',
      { servers: [{ command: 'x', start: 'later' }] },
      ['servers[0].start: expected "eager" or "lazy", found "later".'],
    ],
  ])('%s', (_, value, expected) => {
    expect(problems(value)).toEqual(expected);
  });
});

it('accepts an empty configuration and fills in every default', () => {
  expect(withoutNulls(fileSchema.parse({}))).toEqual({
    callThrough: 'auto',
    markActive: true,
    lock: 'warn',
    inheritEnv: [],
    watch: true,
    shared: true,
    sharedIdle: 300_000,
    selection: 'own',
    startWait: 5000,
    uriStyle: 'auto',
    taskRuleFiles: ['default'],
    healthInterval: 30_000,
    resolvePackages: true,
    dataDir: '.toolgate',
    security: { approvalTimeout: 300_000, reachableConfig: 'warn', onTimeout: 'deny' },
    folders: {
      watch: true,
      debounce: 300,
      timeout: 60_000,
      concurrency: 64,
      memory: 1_073_741_824,
      isolation: 'auto',
      packages: 'registry',
    },
    http: {
      host: '127.0.0.1',
      allowedOrigins: [],
      allowedHosts: [],
      dashboard: true,
      drain: 20_000,
      sessionTtl: 86_400_000,
      maxSessions: 100_000,
      sse: true,
      requireNamespace: false,
      requireClientId: false,
      mcpo: false,
      admins: ['default'],
      trustAgentHeader: false,
    },
    limits: {
      body: 4_194_304,
      depth: 64,
      message: 67_108_864,
      replay: 4_194_304,
      unread: 8_388_608,
      unreadTotal: 268_435_456,
      batch: 100,
      subscriptions: 1000,
    },
    audit: {
      retention: 30,
      arguments: false,
      before: false,
      results: false,
      maxValue: 16_384,
      copies: [],
      onFailure: 'continue',
    },
    repositories: { from: 'public', size: 268_435_456, timeout: 300_000, quota: 1_073_741_824, keep: 604_800_000 },
    registry: { url: 'https://registry.modelcontextprotocol.io', timeout: 20_000, allowPrivate: false },
    search: { examples: {}, learn: true, vectorWeight: 0.2 },
    secrets: { redactResults: true },
  });
});

it('has null for what is absent, in camel case', () => {
  const { nameLimit, http } = fileSchema.parse({ http: { public_url: 'x' } });
  expect([nameLimit, http.publicUrl, http.jwt]).toEqual([null, 'x', null]);
});

it('fills in the defaults of a server', () => {
  expect(withoutNulls(fileSchema.parse({ servers: [{ command: 'x' }] }).servers)).toEqual([
    {
      command: 'x',
      description: '',
      enabled: true,
      required: false,
      start: 'eager',
      share: 'project',
      queue: 256,
    },
  ]);
});

it('accepts servers as a list, as a map and in the form of MCP clients', () => {
  const server = { command: 'x' };
  const list = entriesOf(fileSchema.parse({ servers: [server], mcpServers: { b: server } }));
  expect(list.map(({ path, name, isShellLine }) => [path, name, isShellLine])).toEqual([
    [['servers', 0], null, true],
    [['mcpServers', 'b'], 'b', false],
  ]);
  const map = entriesOf(fileSchema.parse({ servers: { a: server } }));
  expect(map.map(({ path, name, isShellLine }) => [path, name, isShellLine])).toEqual([[['servers', 'a'], 'a', true]]);
});

interface JsonSchema {
  readonly [key: string]: unknown;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly $defs?: Readonly<Record<string, JsonSchema>>;
}

const schema = configJsonSchema() as JsonSchema;

describe('the JSON Schema', () => {
  it('is a schema of draft 2020-12 with a title and no id', () => {
    expect(schema).toMatchObject({
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      title: 'Toolgate configuration',
      type: 'object',
      additionalProperties: false,
    });
    expect(schema).not.toHaveProperty('$id');
  });

  it('describes what is written, not what it is resolved to', () => {
    expect(schema).not.toHaveProperty('required');
    expect(schema.properties?.start_wait).toMatchObject({
      default: '5s',
      anyOf: [{ type: 'string' }, { type: 'number' }],
    });
    expect(schema.$defs?.Server).toMatchObject({
      additionalProperties: false,
      oneOf: [{ required: ['command'] }, { required: ['url'] }, { required: ['folder'] }],
      properties: { transport: { enum: ['stdio', 'http', 'sse'] }, start: { default: 'eager' } },
    });
  });

  describe('every key is documented', () => {
    const maps: Record<string, JsonSchema | undefined> = {
      'the root': schema,
      http: schema.properties?.http,
      limits: schema.properties?.limits,
      audit: schema.properties?.audit,
      security: schema.properties?.security,
      folders: schema.properties?.folders,
      'a server': schema.$defs?.Server,
    };
    it.each(Object.keys(maps))('in %s', (name) => {
      const keys = Object.entries(maps[name]?.properties ?? {});
      expect(keys.length).toBeGreaterThan(2);
      for (const [key, { description }] of keys)
        expect([key, description]).toEqual([key, expect.stringMatching(/\.$/)]);
    });
  });
});
