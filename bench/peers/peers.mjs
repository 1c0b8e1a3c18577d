// How each peer is started in front of one upstream, and what it does on that path. `http` and `stdio` return the command for an
// upstream of that kind; a peer without one of them cannot do that path. Every peer runs with its own defaults, without telemetry and with as
// little logging as its options allow.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { folderOf } from './install.mjs';

const node = (name, program) => [process.execPath, join(folderOf(name), 'node_modules', '.bin', program)];
const python = (name, program) => [join(folderOf(name), 'python', 'bin', program)];

/** A configuration file in the folder of this run. */
function file(folder, name, value) {
  const path = join(folder, name);
  writeFileSync(path, typeof value === 'string' ? value : JSON.stringify(value));
  return path;
}

/** The usual `mcpServers`. */
const servers = ({ url, command, args }, more = {}) => ({
  mcpServers: { up: url ? { url, ...more } : { command, args } },
});

export const PEERS = {
  supergateway: {
    title: 'supergateway',
    language: 'Node',
    about:
      'bridges one stdio server to HTTP, with a process of the server for each session. No policy, no limits, no audit',
    stdio: ({ command, args }, port) => ({
      command: [
        ...node('supergateway', 'supergateway'),
        '--stdio',
        [command, ...args].map((word) => `"${word}"`).join(' '),
        ...['--outputTransport', 'streamableHttp', '--stateful', '--port', String(port), '--logLevel', 'none'],
      ],
      path: '/mcp',
    }),
  },
  'mcp-proxy-npm': {
    title: 'mcp-proxy (npm)',
    language: 'Node',
    about: 'bridges one stdio server to HTTP, in both eras. No policy, no limits, no audit',
    stdio: ({ command, args }, port) => ({
      command: [
        ...node('mcp-proxy-npm', 'mcp-proxy'),
        ...['--port', String(port), '--host', '127.0.0.1', '--server', 'stream', '--', command, ...args],
      ],
      path: '/mcp',
    }),
  },
  'mcp-hub': {
    title: 'mcp-hub',
    language: 'Node',
    about:
      'joins many servers behind one endpoint, with a REST interface to manage them. No policy, no limits, no audit',
    why: 'its MCP endpoint speaks HTTP+SSE of the first revision only, which the client of this bench does not',
  },
  'tbxark-mcp-proxy': {
    title: 'mcp-proxy (Go)',
    language: 'Go',
    about: 'joins many servers, each at an address of its own. No policy, no limits, no audit',
    http: (upstream, port, folder) => tbxark(upstream, port, folder),
    stdio: (upstream, port, folder) => tbxark(upstream, port, folder),
  },
  'mcp-proxy-pypi': {
    title: 'mcp-proxy (PyPI)',
    language: 'Python',
    about: 'bridges stdio servers to HTTP. No policy, no limits, no audit',
    stdio: ({ command, args }, port) => ({
      command: [
        ...python('mcp-proxy-pypi', 'mcp-proxy'),
        ...['--port', String(port), '--host', '127.0.0.1', '--log-level', 'ERROR', '--', command, ...args],
      ],
      path: '/mcp',
    }),
  },
  'mcp-streamablehttp-proxy': {
    title: 'mcp-streamablehttp-proxy',
    language: 'Python',
    about:
      'bridges one stdio server to HTTP, with a process of the server for each session. No policy, no limits, no audit',
    stdio: ({ command, args }, port) => ({
      command: [
        ...python('mcp-streamablehttp-proxy', 'mcp-streamablehttp-proxy'),
        ...['--host', '127.0.0.1', '--port', String(port), '--log-level', 'error', command, ...args],
      ],
      path: '/mcp',
    }),
  },
  'mcp-foxxy-bridge': {
    title: 'mcp-foxxy-bridge',
    language: 'Python',
    about: 'joins many servers behind one endpoint. No policy, no limits, no audit',
    http: (upstream, port, folder) => foxxy(upstream, port, folder),
    stdio: (upstream, port, folder) => foxxy(upstream, port, folder),
  },
  fastmcp: {
    title: 'FastMCP proxy',
    language: 'Python',
    about:
      "`fastmcp run` with a file of servers: a library's proxy. No policy, no limits, no audit unless they are programmed",
    http: (upstream, port, folder) => fastmcp(upstream, port, folder),
    stdio: (upstream, port, folder) => fastmcp(upstream, port, folder),
  },
  mcpo: {
    title: 'mcpo',
    language: 'Python',
    about:
      'offers the tools of servers over REST, not over MCP: it is called over REST here. No policy, no limits, no audit',
    rest: '/up/',
    http: (upstream, port, folder) => mcpo(upstream, port, folder),
    stdio: (upstream, port, folder) => mcpo(upstream, port, folder),
  },
  litellm: {
    title: 'LiteLLM proxy',
    language: 'Python',
    about:
      'a proxy for models that also offers the tools of MCP servers. Keys, budgets and logging, none of them switched on here',
    http: (upstream, port, folder) => litellm(upstream, port, folder),
    stdio: (upstream, port, folder) => litellm(upstream, port, folder),
  },
  contextforge: {
    title: 'ContextForge',
    language: 'Python',
    about:
      'a registry and gateway with a database, metrics and plug-ins. On SQLite here, without a login and without its user interface',
    http: (upstream, port, folder) => ({
      command: [
        ...python('contextforge', 'mcpgateway'),
        '--host',
        '127.0.0.1',
        '--port',
        String(port),
        '--log-level',
        'error',
      ],
      path: '/mcp/',
      env: {
        AUTH_REQUIRED: 'false',
        MCP_CLIENT_AUTH_ENABLED: 'false',
        TRUST_PROXY_AUTH: 'true',
        TRUST_PROXY_AUTH_DANGEROUSLY: 'true',
        ALLOW_UNAUTHENTICATED_ADMIN: 'true',
        JWT_SECRET_KEY: 'a-key-that-only-this-measurement-has-0123456789',
        AUTH_ENCRYPTION_SECRET: 'a-key-that-only-this-measurement-has-9876543210',
        DATABASE_URL: `sqlite:///${folder}/mcp.db`,
        MCPGATEWAY_UI_ENABLED: 'false',
        MCPGATEWAY_ADMIN_API_ENABLED: 'false',
        LOG_LEVEL: 'ERROR',
        OTEL_ENABLE_OBSERVABILITY: 'false',
        SSRF_ALLOW_LOCALHOST: 'true',
        SSRF_ALLOW_PRIVATE_NETWORKS: 'true',
      },
      /** Servers are added while it runs. */
      async ready(origin) {
        const response = await fetch(`${origin}/gateways`, {
          method: 'POST',
          headers: { 'content-type': 'application/json', 'x-authenticated-user': 'admin@example.com' },
          body: JSON.stringify({ name: 'up', url: upstream.url, transport: 'STREAMABLEHTTP', visibility: 'public' }),
        });
        if (!response.ok && response.status !== 409)
          throw new Error(`adding the server: ${response.status} ${await response.text()}`);
      },
    }),
  },
};

function foxxy(upstream, port, folder) {
  // Otherwise it hides tools that are not marked as reading only.
  const bridge = { read_only_mode: false, security: { read_only_mode: false } };
  const config = file(folder, 'foxxy.json', { ...servers(upstream, { transport: 'http' }), bridge });
  return {
    command: [
      // What its command starts: the command itself would leave it behind.
      ...python('mcp-foxxy-bridge', 'python'),
      ...['-m', 'mcp_foxxy_bridge', '--bridge-config', config, '--host', '127.0.0.1', '--port', String(port)],
    ],
    path: '/mcp/',
  };
}

function tbxark(upstream, port, folder) {
  const config = file(folder, 'tbxark.json', {
    mcpProxy: {
      baseURL: `http://127.0.0.1:${port}`,
      addr: `127.0.0.1:${port}`,
      name: 'bench',
      version: '1',
      type: 'streamable-http',
    },
    mcpServers: servers(upstream, { transportType: 'streamable-http' }).mcpServers,
  });
  return { command: [join(folderOf('tbxark-mcp-proxy'), 'mcp-proxy'), '--config', config], path: '/up/mcp' };
}

function fastmcp(upstream, port, folder) {
  const config = file(folder, 'mcp.json', servers(upstream, { transport: 'http' }));
  return {
    command: [
      ...python('fastmcp', 'fastmcp'),
      ...[
        'run',
        config,
        '--transport',
        'http',
        '--host',
        '127.0.0.1',
        '--port',
        String(port),
        '--no-banner',
        '--log-level',
        'ERROR',
      ],
    ],
    path: '/mcp',
    env: { FASTMCP_CHECK_FOR_UPDATES: 'off' },
  };
}

function mcpo(upstream, port, folder) {
  const config = file(folder, 'mcpo.json', servers(upstream, { type: 'streamable-http' }));
  return {
    command: [
      ...python('mcpo', 'mcpo'),
      ...['--host', '127.0.0.1', '--port', String(port), '--config', config, '--log-level', 'ERROR'],
    ],
    path: '/up',
  };
}

function litellm({ url, command, args }, port, folder) {
  const server = url ? { url, transport: 'http' } : { transport: 'stdio', command, args };
  const config = file(folder, 'litellm.yaml', {
    model_list: [],
    mcp_servers: { up: { ...server, allow_all_keys: true } },
  });
  return {
    command: [
      ...python('litellm', 'litellm'),
      ...['--config', config, '--host', '127.0.0.1', '--port', String(port), '--telemetry', 'False'],
    ],
    path: '/mcp/',
    env: {
      LITELLM_LOG: 'ERROR',
      LITELLM_LOCAL_MODEL_COST_MAP: 'True',
      LITELLM_MODE: 'PRODUCTION',
      LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY: 'true',
      // It starts no servers unless it is told that it may.
      LITELLM_ENABLE_MCP_STDIO: 'true',
    },
  };
}
