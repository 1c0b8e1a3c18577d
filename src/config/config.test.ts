import { describe, expect, it } from 'vitest';
import { resolveConfig } from './config.ts';
import { configFromValue } from './load.ts';
import { NO_PINS } from './pins.ts';
import { fileSchema } from './schema.ts';
import { entriesOf } from './servers.ts';

function resolved(value: object, { env = {}, file = '/etc/app/tools.toml' as string | null } = {}) {
  const written = fileSchema.parse(value);
  return resolveConfig(written, entriesOf(written), {
    document: { name: 'tools.toml' },
    file,
    cwd: '/here',
    env,
    lenient: false,
    defaultControls: ['activate'],
    defaultNames: 'join',
    tasks: { rules: () => ({ profiles: [], rules: [] }), files: [] },
    pins: NO_PINS,
    notices: ['first'],
  });
}

it('gives a call a total time that is at least its time without a sign of life', () => {
  const totalOf = (server: object) => resolved({ servers: [{ command: 'x', ...server }] }).servers[0]!.totalTimeout;
  expect(totalOf({ timeout: '2h' })).toBe(7_200_000);
  expect(totalOf({ timeout: '2h', total_timeout: '1s' })).toBe(1_000);
});

it('takes the nearest start_timeout: of the server, of folders, of all servers, or the default', () => {
  const timesOf = (settings: object) => {
    const servers = { program: { command: 'x' }, own: { command: 'x', start_timeout: '1s' }, files: { folder: 'f' } };
    const config = resolved({ servers, ...settings });
    return [...config.servers, ...config.folders.named].map(({ startTimeout }) => startTimeout);
  };
  expect(timesOf({})).toEqual([30_000, 1_000, 60_000]);
  expect(timesOf({ start_timeout: '2m' })).toEqual([120_000, 1_000, 120_000]);
  expect(timesOf({ start_timeout: '2m', folders: { start_timeout: '3m' } })).toEqual([120_000, 1_000, 180_000]);
});

it('takes the key of the secrets from the environment, and otherwise from the file that is named', () => {
  const keyOf = (env: object) => {
    const { key, keyFile } = resolved({ secrets: { key_file: 'k' } }, { env }).vault;
    return [key(), keyFile];
  };
  expect(keyOf({})).toEqual([null, '/etc/app/k']);
  expect(keyOf({ SECRETS_KEY_FILE: 'other' })).toEqual([null, '/here/other']);
  expect(keyOf({ SECRETS_KEY: 'the key' })).toEqual(['the key', null]);
});

it('has every default filled in', () => {
  expect(resolved({ servers: [{ namespace: 'git', command: 'git-server repo' }] })).toEqual({
    file: '/etc/app/tools.toml',
    servers: [
      {
        key: 'git',
        namespace: 'git',
        launch: { kind: 'stdio', file: 'git-server', args: ['repo'], env: {}, cwd: '/etc/app' },
        launchHash: expect.stringMatching(/^[0-9a-f]{32}$/),
        description: '',
        enabled: true,
        required: false,
        start: 'eager',
        idleStop: null,
        timeout: 300_000,
        totalTimeout: 3_600_000,
        share: 'project',
        startTimeout: 30_000,
        healthInterval: 30_000,
        limits: {
          timeout: null,
          totalTimeout: null,
          concurrency: 256,
          queue: 256,
          rate: null,
          callsPerDay: null,
          maxArguments: null,
          maxResult: null,
        },
        tools: [],
      },
    ],
    activeToolsets: null,
    controls: ['activate'],
    searchesMany: true,
    callThrough: 'auto',
    catalog: null,
    markActive: true,
    equipped: null,
    selection: 'own',
    toolsets: [],
    names: 'join',
    uriStyle: 'auto',
    nameLimit: null,
    watch: true,
    shared: true,
    sharedIdle: 300_000,
    startWait: 5000,
    revisions: ['2026-07-28', '2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'],
    pins: NO_PINS,
    policy: null,
    security: {
      confirm: [],
      approvers: { client: null, operator: true, people: [], require: 1 },
      people: [],
      timeout: 300_000,
      onTimeout: 'deny',
      grants: [{ place: 'security.grants', agents: null, tools: ['*'], duration: 3_600_000, approval: true }],
      prompts: [],
    },
    dataDir: '/etc/app/.toolgate',
    store: null,
    folders: {
      watch: true,
      debounce: 300,
      timeout: 60_000,
      startTimeout: 60_000,
      concurrency: 64,
      memory: 1_073_741_824,
      isolation: 'auto',
      packages: 'registry',
      named: [],
    },
    http: {
      host: '127.0.0.1',
      port: 8808,
      allowedOrigins: [],
      allowedHosts: [],
      dashboard: true,
      drain: 20_000,
      sessionTtl: 86_400_000,
      maxSessions: 100_000,
      maxConnections: null,
      maxConnectionsPerAddress: null,
      sse: true,
      requireNamespace: false,
      requireClientId: false,
      mcpo: false,
      publicUrl: null,
      admins: ['default'],
      trustAgentHeader: false,
      tls: null,
      jwt: [],
      manager: { token: expect.any(Function), networks: ['172.30.0.10/32', '127.0.0.1/32'] },
    },
    agents: [],
    limits: {
      body: 4_194_304,
      depth: 64,
      message: 67_108_864,
      page: null,
      maxResult: null,
      replay: 4_194_304,
      unread: 8_388_608,
      unreadTotal: 268_435_456,
      batch: 100,
      subscriptions: 1000,
    },
    audit: {
      enabled: null,
      dir: '/etc/app/.toolgate/logs',
      retention: 30,
      arguments: false,
      before: false,
      results: false,
      maxValue: 16_384,
      onFailure: 'continue',
      key: expect.any(Function),
      copies: [],
      heads: '/etc/app/.toolgate/audit-heads.json',
    },
    vault: { key: expect.any(Function), keyFile: null, allowInsecure: false, redactResults: true },
    manager: { enabled: null, port: 8809, coreUrl: null, coreCa: null, publicUrl: null },
    repositories: { from: 'public', size: 268_435_456, timeout: 300_000, quota: 1_073_741_824, keep: 604_800_000 },
    registry: { url: 'https://registry.modelcontextprotocol.io', timeout: 20_000, allowPrivate: false },
    search: { examples: {}, learn: true, vectors: null, vectorWeight: 0.2 },
    secrets: expect.any(Function),
    written: expect.any(Function),
    tasks: { rules: expect.any(Function), files: [] },
    macros: [],
    notices: ['first'],
    broken: [],
  });
});

it('keeps everything that is written', () => {
  expect(
    resolved(
      {
        active_toolsets: ['git_*', '${NAME}_*'],
        controls: [],
        start_wait: 0,
        data_dir: '../${NAME}',
        servers: {
          a: {
            url: 'http://x',
            description: 'd',
            enabled: false,
            required: true,
            start: 'lazy',
            idle_stop: '1s',
            timeout: '2s',
            start_timeout: 3,
            health_interval: '4s',
            share: 'session',
          },
        },
        http: {
          host: '${NAME}.example',
          port: 0,
          allowed_origins: ['http://${NAME}'],
          allowed_hosts: ['${NAME}'],
          session_ttl: '1h',
          max_sessions: 1,
        },
        limits: { body: 1, depth: 2, message: '3KiB' },
      },
      { env: { NAME: 'n' } },
    ),
  ).toMatchObject({
    activeToolsets: ['git_*', 'n_*'],
    controls: [],
    startWait: 0,
    dataDir: '/etc/n',
    servers: [
      {
        description: 'd',
        enabled: false,
        required: true,
        start: 'lazy',
        idleStop: 1000,
        timeout: 2000,
        startTimeout: 3,
        healthInterval: 4000,
        share: 'session',
      },
    ],
    http: {
      host: 'n.example',
      port: 0,
      allowedOrigins: ['http://n'],
      allowedHosts: ['n'],
      sessionTtl: 3_600_000,
      maxSessions: 1,
    },
    limits: { body: 1, depth: 2, message: 3072 },
  });
});

it('stops a lazy server after ten minutes unless told otherwise', () => {
  expect(resolved({ servers: [{ command: 'x', start: 'lazy' }] }).servers[0]?.idleStop).toBe(600_000);
});

it('is deeply frozen', () => {
  const config = resolved({ servers: [{ command: 'x', args: ['y'], env: { A: 'b' } }] });
  const open: unknown[] = [config];
  let count = 0;
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (typeof next !== 'object' || next === null) continue;
    expect(Object.isFrozen(next)).toBe(true);
    open.push(...Object.values(next));
    count++;
  }
  expect(count).toBeGreaterThan(9);
});

describe('keys of servers', () => {
  const keys = (value: object) => resolved(value).servers.map((server) => server.key);
  const command = 'x';

  const made = expect.stringMatching(/^server-[0-9a-f]{8}$/);

  it('are the namespace, or made from what the server runs if that is empty or taken', () => {
    const list = [{ namespace: 'a', command }, { command: 'y' }, { namespace: 'a', command: 'z' }];
    expect(keys({ servers: list })).toEqual(['a', made, made]);
  });

  it('without a namespace stay the same wherever the entry is, and with other settings', () => {
    const [one, two] = [{ command: 'one' }, { command: 'two', args: ['${X:-1}'] }];
    const before = keys({ servers: [one, two] });
    expect(new Set(before).size).toBe(2);
    const other = { ...one, timeout: '1m', env: { TOKEN: 'new' }, description: 'text', args: [] };
    expect(keys({ servers: [{ command: 'new' }, two, other] }).slice(1)).toEqual(before.toReversed());
  });

  it('of entries that run the same with other variables do not change places', () => {
    const [dev, prod] = [
      { command, env: { AT: 'dev' } },
      { command, env: { AT: 'prod' } },
    ];
    const [first, second] = keys({ servers: [dev, prod] });
    expect(first).not.toBe(second);
    expect(keys({ servers: [prod, dev] })).toEqual([second, first]);
    // Neither of them is the other if only one is left.
    expect(keys({ servers: [prod] })).toEqual([made]);
    expect(keys({ servers: [prod] })).not.toContain(first);
  });

  it('are the name of the entry if its namespace is empty or taken', () => {
    expect(
      keys({ servers: { a: { namespace: '', command }, b: { namespace: 'a', command }, c: { command } } }),
    ).toEqual(['a', 'b', 'c']);
  });

  it('are unique for any namespaces', () => {
    const [own] = keys({ servers: [{ command }] });
    const list = [{ namespace: own, command: 'y' }, { command }, { namespace: own, command: 'z' }];
    expect(keys({ servers: list })).toEqual([own, `${own}-2`, made]);
    const same = keys({ servers: [{ command }, { command }, { command }] });
    expect(new Set(same).size).toBe(3);
  });

  it('do not depend on servers that are left out', () => {
    const config = resolved({ servers: [{ command: 'toolgate' }, { command }] });
    expect(config.servers.map((server) => server.key)).toEqual(keys({ servers: [{ command }] }));
    expect(config.notices).toEqual([
      'first',
      'tools.toml: servers[0]: left out: it would start Toolgate itself again.',
    ]);
  });
});

describe('the environment', () => {
  it('overrides the file by DATA_DIR, relative to the working directory', () => {
    expect(resolved({ data_dir: 'x' }, { env: { DATA_DIR: 'y' } }).dataDir).toBe('/here/y');
    expect(resolved({ data_dir: '${NONE}' }, { env: { DATA_DIR: '/y' } }).dataDir).toBe('/y');
    expect(resolved({ data_dir: 'x' }, { env: { DATA_DIR: '' } }).dataDir).toBe('/etc/app/x');
  });

  it('takes PORT as its port only if nothing else names one, and only if it is one', () => {
    expect(resolved({}, { env: { PORT: '9501' } }).http.port).toBe(9501);
    expect(resolved({ http: { port: 1 } }, { env: { PORT: '9501' } }).http.port).toBe(1);
    expect(resolved({}, { env: { PORT: '9501', CORE_PORT: '9999' } }).http.port).toBe(9999);
    for (const PORT of ['', 'tcp://10.0.0.1:80', '70000']) expect(resolved({}, { env: { PORT } }).http.port).toBe(8808);
  });

  it('overrides the file by CORE_PORT', () => {
    expect(resolved({ http: { port: 1 } }, { env: { CORE_PORT: '9999' } }).http.port).toBe(9999);
    expect(resolved({ http: { port: 1 } }, { env: { CORE_PORT: '' } }).http.port).toBe(1);
  });

  it('overrides the file by ENABLE_LEGACY_MCP', () => {
    const sse = (written: boolean, variable: string) =>
      resolved({ http: { sse: written } }, { env: { ENABLE_LEGACY_MCP: variable } }).http.sse;
    expect([sse(true, 'false'), sse(false, 'true'), sse(false, ''), sse(true, '')]).toEqual([false, true, false, true]);
    expect(() => sse(true, 'no')).toThrow('the environment variable ENABLE_LEGACY_MCP is not true or false.');
  });

  it.each(['x', '65536', '-1', '1.5', ' 80', '0x50'])('is refused as a port: %j', (CORE_PORT) => {
    expect(() => resolved({}, { env: { CORE_PORT } })).toThrow(
      'tools.toml: the environment variable CORE_PORT is not a port from 0 to 65535. Correct it.',
    );
  });

  it('overrides the file by LOG_RETENTION_DAYS, which is checked', () => {
    const read = (value: object, days?: string) =>
      configFromValue(value, { cwd: '/', env: { LOG_RETENTION_DAYS: days } }).audit.retention;
    expect(read({})).toBe(30);
    expect(read({ audit: { retention: '7d' } })).toBe(7);
    expect(read({ audit: { retention: 90 } })).toBe(90);
    expect(read({ audit: { retention: '7d' } }, '3')).toBe(3);
    expect(() => read({}, 'many')).toThrow('LOG_RETENTION_DAYS is not a number of days');
    for (const retention of ['30', '0d', '1h', 0, true])
      expect(() => read({ audit: { retention } }), String(retention)).toThrow('audit.retention: ');
  });

  it('may lack the variables of a server that is switched off', () => {
    const [server] = configFromValue({ servers: [{ url: '${NONE}', enabled: false }] }, { cwd: '/', env: {} }).servers;
    expect(server).toMatchObject({ enabled: false, launch: { url: '${NONE}' } });
  });
});

describe('folders', () => {
  it('are listed apart from the servers, with the settings of all folders as defaults', () => {
    const { servers, folders } = resolved(
      {
        folders: { timeout: '2m', concurrency: 8, memory: '256MiB', isolation: 'required', watch: false },
        servers: {
          git: { folder: './tools/${NAME}', env: { TOKEN: '${TOKEN}' }, required: true },
          slow: {
            folder: '/srv/slow',
            timeout: '5m',
            start_timeout: '1m',
            memory: '1GiB',
            isolation: 'off',
            concurrency: 1,
          },
          other: { command: 'x' },
        },
      },
      { env: { NAME: 'git', TOKEN: 'abc' } },
    );
    expect(servers.map(({ key }) => key)).toEqual(['other']);
    expect(folders).toMatchObject({ watch: false, debounce: 300 });
    expect(folders.named).toMatchObject([
      {
        key: 'git',
        namespace: 'git',
        folder: '/etc/app/tools/git',
        env: { TOKEN: 'abc' },
        required: true,
        timeout: 120_000,
        startTimeout: 60_000,
        limits: { concurrency: 8 },
        memory: 268_435_456,
        isolation: 'required',
      },
      { folder: '/srv/slow', timeout: 300_000, limits: { concurrency: 1 }, memory: 1_073_741_824, isolation: 'off' },
    ]);
  });

  it('follow the environment rather than the file', () => {
    const { folders } = resolved(
      { folders: { watch: true, timeout: '2m' } },
      {
        env: {
          ENABLE_FS_WATCHER: 'false',
          FS_WATCHER_DEBOUNCE_MS: '1500',
          TOOL_CALL_TIMEOUT_SECONDS: '2.5',
          NAMESPACE_MAX_CONCURRENCY: '3',
        },
      },
    );
    expect(folders).toMatchObject({ watch: false, debounce: 1500, timeout: 2500, concurrency: 3 });
    expect(() => resolved({}, { env: { ENABLE_FS_WATCHER: '1', TOOL_CALL_TIMEOUT_SECONDS: 'long' } })).toThrow(
      /ENABLE_FS_WATCHER is not true or false.*TOOL_CALL_TIMEOUT_SECONDS is not a number from 0.001 to 2000000/s,
    );
  });
});

it('knows the tokens of agents as secrets, written out or in a variable, so that they are redacted', () => {
  const agents = { a: { token: 'literal-token-0123456789' }, b: { token: ['${B_TOKEN}', 'another-token-0123456789'] } };
  const secrets = resolved({ agents }, { env: { B_TOKEN: 'token-of-the-variable' } }).secrets();
  expect(secrets).toEqual(
    expect.arrayContaining(['literal-token-0123456789', 'token-of-the-variable', 'another-token-0123456789']),
  );
});
