/**
 * The configuration as users write it: the one strict schema behind the TOML, YAML and JSON spellings.
 * What is said here about a key is what `toolgate schema` prints.
 */

import * as z from 'zod';
import { ALL_REVISIONS } from '../protocol/revisions.ts';
import { auditSchema } from './audit-schema.ts';
import { count, duration, flag, size, strictMap, text, textList, toolList } from './fields.ts';
import { foldersSchema } from './folders-schema.ts';
import { agentsSchema, identityShape } from './identity-schema.ts';
import type { Path } from './issues.ts';
import { macroShape } from './macro-schema.ts';
import { policyShape } from './policy-schema.ts';
import { vaultSchema } from './secrets-key-schema.ts';
import { securitySchema } from './security-schema.ts';
import { type ServerFile, serverMap, serverSchema } from './server-schema.ts';
import { taskShape } from './task-schema.ts';

const httpSchema = strictMap({
  host: text().prefault('127.0.0.1').describe('Address to listen on.'),
  port: count(0, 65_535)
    .prefault(8808)
    .describe('Port to listen on; 0 takes any free one. The environment variable CORE_PORT goes first.'),
  allowed_origins: textList()
    .prefault([])
    .describe("Values of the header `Origin` that are let in beside the gateway's own."),
  allowed_hosts: textList()
    .prefault([])
    .describe("Host names of the header `Host` that are let in beside the gateway's own."),
  drain: duration(0)
    .prefault('20s')
    .describe('How long `toolgate serve` waits for calls under way when it is told to end.'),
  session_ttl: duration(1).prefault('24h').describe('An unused session is forgotten after this long.'),
  max_sessions: count(1, 10_000_000)
    .prefault(100_000)
    .describe('Sessions kept at one time; beyond that the one used longest ago is forgotten.'),
  sse: flag()
    .prefault(true)
    .describe(
      'Offers HTTP+SSE of the first revision too, at `/sse` and `/messages`. The environment variable ENABLE_LEGACY_MCP goes first.',
    ),
  require_namespace: flag()
    .prefault(false)
    .describe(
      'Every client has to name the namespace that it is to see, in the header `X-Namespace` or by its address.',
    ),
  mcpo: flag()
    .prefault(false)
    .describe(
      'Takes calls at `/NAMESPACE/TOOL` too, as mcpo does, with `/NAMESPACE/openapi.json` and `/NAMESPACE/docs`.',
    ),
  ...identityShape,
});

const limitsSchema = strictMap({
  body: size().prefault('4MiB').describe('Size of one request.'),
  depth: count(1, 10_000).prefault(64).describe('Nesting of one request.'),
  message: size().prefault('64MiB').describe('Size of one message of an upstream server.'),
  max_result: size()
    .optional()
    .describe('Size of one result, where neither its server nor its tool says otherwise. Default: any size.'),
  page: count(1, 1_000_000)
    .optional()
    .describe('Most items on one page of a list; clients ask for the next. Default: all on one page.'),
  replay: size()
    .prefault('4MiB')
    .describe('Bytes of events kept for each session, for five minutes, for a client that lost its stream.'),
  unread: size()
    .prefault('8MiB')
    .describe('Bytes that a client may leave unread: at the next message beyond them its stream is cut.'),
  unread_total: size()
    .prefault('256MiB')
    .describe('Bytes that all clients together may leave unread: beyond them the slowest one is cut.'),
});

const toolsetSchema = strictMap({
  description: text().prefault('').describe('What the toolset is for.'),
  tools: toolList().describe(
    'Its tools: `server.tool`, exposed names, patterns over either, or categories such as `category:read`.',
  ),
}).meta({ id: 'Toolset', description: 'A named choice of tools.' });

/** Everything but the servers. */
export const settingsSchema = strictMap({
  $schema: text().optional().describe('Where editors find the schema of this file. Toolgate does not read it.'),
  active_toolsets: toolList()
    .optional()
    .describe(
      'Patterns over exposed names (`*` any characters, `?` one), or categories of tools, that say which tools and resources are active at start. ' +
        'Default: none where a control such as `activate` is on, else all.',
    ),
  controls: z
    .array(
      z.enum(['activate', 'equip', 'request', 'prompt'], {
        error: 'expected "activate", "equip", "request" or "prompt"',
      }),
      { error: 'expected a list such as ["activate"]' },
    )
    .optional()
    .describe(
      'Built-in tools that let a model change what it sees. Default: `["activate"]` in tools.toml, `["equip"]` in .mcp.json, else none.',
    ),
  selection: z
    .enum(['own', 'shared'], { error: 'expected "own" or "shared"' })
    .prefault('own')
    .describe('Whether what a client switches or equips is its own, or that of all clients.'),
  toolsets: z
    .record(z.string(), toolsetSchema, { error: 'expected a map of toolsets' })
    .optional()
    .describe('Toolsets by name, beside those that are saved: named choices of tools to equip.'),
  names: z
    .enum(['join', 'flat'], { error: 'expected "join" or "flat"' })
    .optional()
    .describe(
      'How tools and prompts are named: `join` puts the namespace and `_` in front, `flat` also makes `_` of every character but ' +
        'letters, digits and `_`. Default: `flat` in .mcp.json, else `join`.',
    ),
  name_limit: count(16, 1024)
    .optional()
    .describe('Most characters in the name of a tool or prompt; longer ones end in a hash. Default: any number.'),
  revisions: z
    .array(z.enum(ALL_REVISIONS, { error: `expected one of ${ALL_REVISIONS.join(', ')}` }), {
      error: 'expected a list of revisions such as ["2025-11-25"]',
    })
    .min(1, { error: 'is empty. Name a revision, or leave it out' })
    .optional()
    .describe(
      'The revisions of MCP that clients may speak. Default: all that Toolgate knows. The environment variable ' +
        'MCP_SUPPORTED_VERSIONS goes first.',
    ),
  start_wait: duration(0)
    .prefault('5s')
    .describe('How long a list waits for servers that are still starting before it answers with what there is.'),
  health_interval: duration(0)
    .prefault('30s')
    .describe('How often a silent server is asked whether it still answers; one that does not is restarted. 0: never.'),
  data_dir: text()
    .prefault('.toolgate')
    .describe(
      'Folder for what Toolgate keeps, relative to the folder of this file. The environment variable DATA_DIR goes first.',
    ),
  folders: foldersSchema.prefault({}).describe('How folders of tools are served.'),
  ...policyShape,
  security: securitySchema.prefault({}).describe('What a person has to approve.'),
  ...taskShape,
  ...macroShape,
  http: httpSchema.prefault({}).describe('The HTTP side: `toolgate serve`.'),
  agents: agentsSchema
    .optional()
    .describe('Agents by name, with the tokens that they show over HTTP; beside those of `toolgate agents`.'),
  limits: limitsSchema.prefault({}).describe('Sizes that nothing goes beyond.'),
  audit: auditSchema.prefault({}).describe('What is written down of calls.'),
  secrets: vaultSchema.prefault({}).describe('The key of the secrets, and what becomes of them.'),
});

export const fileSchema = settingsSchema
  .extend({
    servers: z
      .union([z.array(serverSchema), serverMap], { error: 'expected a list or a map of servers' })
      .optional()
      .describe('The MCP servers behind the gateway: a list of entries with `namespace`, or a map by name.'),
    mcpServers: serverMap
      .optional()
      .describe('The same map as MCP clients write it: `command` is always one executable with `args`.'),
  })
  .meta({ title: 'Toolgate configuration' });

export type Settings = z.output<typeof settingsSchema>;
export type ConfigFile = z.output<typeof fileSchema>;

/** One server of a file, with its place in it. */
export interface Entry {
  readonly path: Path;
  /** The entry's name where servers are a map. */
  readonly name: string | null;
  readonly server: ServerFile;
  /** Whether `command` without `args` is a shell line; else it is an executable. */
  readonly shellLine: boolean;
  /** As it is written; absent where nobody wants to know. */
  readonly written?: unknown;
}

/** The servers in the order in which they are written. */
export function entriesOf({ servers = [], mcpServers = {} }: ConfigFile): Entry[] {
  const listed = Array.isArray(servers)
    ? servers.map((server, i) => ({ path: ['servers', i], name: null, server, shellLine: true }))
    : Object.entries(servers).map(([name, server]) => ({ path: ['servers', name], name, server, shellLine: true }));
  const clientStyle = Object.entries(mcpServers).map(([name, server]) => ({
    path: ['mcpServers', name],
    name,
    server,
    shellLine: false,
  }));
  return [...listed, ...clientStyle];
}
