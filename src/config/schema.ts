/**
 * The configuration as users write it: one strict schema for TOML, YAML and JSON. `toolgate schema` prints the
 * descriptions of the keys here and in the files of the sections.
 */
import * as z from 'zod';
import { ALL_REVISIONS } from '../protocol/revisions.ts';
import { agentsSchema } from './agents.ts';
import { auditSchema } from './audit.ts';
import { choice, count, duration, flag, section, text } from './fields.ts';
import { foldersSchema } from './folders.ts';
import { httpSchema } from './http.ts';
import { inheritEnv } from './launch.ts';
import { limitsSchema } from './limits.ts';
import { macrosSchema } from './macros.ts';
import { managerSchema } from './manager.ts';
import { policyShape } from './policy.ts';
import { registrySchema } from './registry.ts';
import { repositoriesSchema } from './repositories.ts';
import { searchSchema } from './search.ts';
import { secretsSchema } from './secrets-key.ts';
import { securitySchema } from './security.ts';
import { serversShape } from './servers.ts';
import { storeSchema } from './store.ts';
import { taskShape } from './tasks.ts';
import { toolsetShape } from './toolsets.ts';

/** Everything but the servers. */
export const settingsShape = {
  $schema: text().optional().describe('Where editors find the schema of this file. Toolgate does not read it.'),
  ...toolsetShape,
  names: choice(['join', 'flat'])
    .optional()
    .describe(
      'How tools and prompts are named: `join` puts the namespace and `_` in front, `flat` also replaces every character except ' +
        'letters, digits and `_` by `_`. Default: `flat` in .mcp.json, else `join`.',
    ),
  name_limit: count(16, 1024)
    .optional()
    .describe('Maximum length of the name of a tool or prompt; longer names end in a hash. Default: no limit.'),
  uri_style: choice(['auto', 'join', 'scheme'])
    .prefault('auto')
    .describe(
      'How resources are listed: `join` puts the namespace and `_` in front of a URI, `scheme` makes the namespace a part ' +
        'of its scheme (`git+file:///a`), which is a legal URL. `auto` lists legal URLs for clients that are known to ' +
        'refuse others. Every client may use either form.',
    ),
  revisions: z
    .array(z.enum(ALL_REVISIONS, { error: `expected one of ${ALL_REVISIONS.join(', ')}` }), {
      error: 'expected a list of revisions such as ["2025-11-25"]',
    })
    .min(1, { error: 'is empty. Name a revision, or leave it out' })
    .optional()
    .describe(
      'The revisions of MCP that clients may speak. Default: all that Toolgate knows. The environment variable ' +
        'MCP_SUPPORTED_VERSIONS overrides this.',
    ),
  watch: z
    .union([z.boolean(), z.literal('confirm')], { error: 'expected true, false or "confirm"' })
    .prefault(true)
    .describe(
      'Whether an edit of this file is applied at once. `confirm`: an edit that adds or changes a server, or changes ' +
        'what is allowed, waits for SIGHUP or `/reload`. `false`: every edit does.',
    ),
  shared: flag()
    .prefault(true)
    .describe(
      'Whether every `toolgate` on stdio in this project uses one gateway, which runs in the background. `false`: each ' +
        'has a gateway and servers of its own.',
    ),
  shared_idle: duration(0)
    .prefault('5m')
    .describe('How long that gateway goes on without a client. 0: until `toolgate daemon stop`.'),
  lock: choice(['warn', 'hold', 'off'])
    .prefault('warn')
    .describe(
      'What happens to definitions of servers that differ from `tools.lock`, the file next to this one that ' +
        '`toolgate lock approve` writes. `warn`: they are reported. `hold`: the approved ones stay listed and cannot ' +
        'be used, and new ones are left out. `off`: nothing.',
    ),
  start_wait: duration(0)
    .prefault('5s')
    .describe('How long a list waits for servers that are still starting before it answers with what is available.'),
  start_timeout: duration(1)
    .optional()
    .describe(
      'How long starting a server and listing its tools may take. A server may have its own. Default: `30s`, or `60s` for a folder.',
    ),
  health_interval: duration(0)
    .prefault('30s')
    .describe(
      'How often a silent server is asked whether it still answers; if it does not, it is restarted. 0: never.',
    ),
  resolve_packages: flag()
    .prefault(true)
    .describe(
      'Starts what `npx` and `uvx` install directly, so that they do not stay in memory. `false` starts them as written.',
    ),
  inherit_env: inheritEnv().prefault([]),
  data_dir: text()
    .prefault('.toolgate')
    .describe(
      'Folder for the data that Toolgate keeps, relative to the folder of this file. The environment variable DATA_DIR overrides this.',
    ),
  store: storeSchema
    .optional()
    .describe(
      'The engine that several replicas of this gateway share: the address of Redis or Valkey, such as "redis://host:6379", ' +
        'or a map. Default: there is one replica, and nothing is shared.',
    ),
  folders: foldersSchema.prefault({}).describe('How folders of tools are served.'),
  ...policyShape,
  security: securitySchema.prefault({}).describe('What a person has to approve.'),
  ...taskShape,
  search: searchSchema.prefault({}).describe('What helps the search to find tools.'),
  macros: macrosSchema.optional().describe('Tools made of other tools, by name.'),
  http: httpSchema.prefault({}).describe('The HTTP side: `toolgate serve`.'),
  manager: managerSchema
    .optional()
    .describe(
      'The manager: tools with which models write, test and install tools. `false`: `toolgate serve` starts none.',
    ),
  agents: agentsSchema
    .optional()
    .describe(
      'Agents by name, with the tokens that they present over HTTP, in addition to those of `toolgate agents`.',
    ),
  limits: limitsSchema.prefault({}).describe('Maximum sizes.'),
  audit: auditSchema.prefault({}).describe('What is recorded about calls.'),
  repositories: repositoriesSchema.prefault({}).describe('Repositories that are cloned to be read.'),
  registry: registrySchema.prefault({}).describe('The MCP registry that servers are installed from.'),
  secrets: secretsSchema.prefault({}).describe('The key of the secrets, and where secrets are removed from.'),
};

export const settingsSchema = section(settingsShape);
export const fileSchema = section({ ...settingsShape, ...serversShape }, { title: 'Toolgate configuration' });

export type Settings = z.output<typeof settingsSchema>;
export type ConfigFile = z.output<typeof fileSchema>;

/** The JSON Schema of the configuration, as editors use it. */
export function configJsonSchema(): Record<string, unknown> {
  // It describes what users write, before defaults and units are resolved.
  return z.toJSONSchema(fileSchema, { io: 'input', target: 'draft-2020-12' });
}
