/** One server as users write it: which keys there are, and which go together. */

import * as z from 'zod';
import { duration, flag, isMap, strictMap, text, textList, textMap } from './fields.ts';
import { folderShape } from './folders-schema.ts';
import { limitsByTool, serverLimitShape, toolLimitsSchema } from './limits-schema.ts';

const NAMESPACE = /^[A-Za-z0-9_.-]*$/;
const NAMESPACE_FORM = 'only letters, digits, "_", "." and "-"';

export const serverShape = {
  namespace: text()
    .regex(NAMESPACE, { error: `expected ${NAMESPACE_FORM}` })
    .optional()
    .describe(
      'Prefix of everything the server offers: `git` makes its `status` tool `git_status`. May be empty. ' +
        'Default: the name of the entry where `servers` is a map, else empty.',
    ),
  command: text('expected a string (arguments go in "args")')
    .min(1, { error: 'is empty. Name the program to start' })
    .optional()
    .describe(
      'Starts the server. Without `args` it is a shell line, as typed in a terminal; ' +
        'with `args`, or below `mcpServers`, it is one executable.',
    ),
  args: textList().optional().describe('Arguments of the executable `command`, passed on as they are.'),
  env: textMap(/^[^=]+$/, 'is not a name for an environment variable')
    .optional()
    .describe('Environment variables for the server, beside those Toolgate itself was given.'),
  cwd: text()
    .optional()
    .describe('Working directory of the server, relative to the folder of this file. Default: that folder.'),
  url: text().optional().describe('Address of a server that is reached over HTTP, instead of `command`.'),
  folder: text()
    .min(1, { error: 'is empty. Name the folder of tool files' })
    .optional()
    .describe(
      'A folder of TypeScript or Python tool files, relative to the folder of this file, instead of `command`.',
    ),
  headers: textMap(/^[\w!#$%&'*+.^`|~-]+$/, 'is not a name for an HTTP header')
    .optional()
    .describe('HTTP headers sent with every request to `url`, for example `Authorization = "Bearer ${TOKEN}"`.'),
  transport: z
    .enum(['stdio', 'http', 'sse'], { error: 'expected "stdio", "http" or "sse"' })
    .optional()
    .describe(
      'How the server is spoken to. Default: `stdio` with `command`, `http` with `url`. ' +
        '`sse` is HTTP+SSE of the first revision, which `http` falls back to by itself.',
    ),
  description: text().prefault('').describe('What the server is for, in a sentence; shown in lists.'),
  enabled: flag().prefault(true).describe('`false` keeps the entry in the file without starting the server.'),
  required: flag().prefault(false).describe('`true` makes `/ready` wait until this server is up.'),
  start: z
    .enum(['eager', 'lazy'], { error: 'expected "eager" or "lazy"' })
    .prefault('eager')
    .describe('`eager` starts the server with Toolgate, `lazy` when it is first needed.'),
  idle_stop: duration(1)
    .optional()
    .describe('Stop the server after this long without a call. Default: never; `10m` for a lazy server.'),
  share: z
    .enum(['project', 'session'], { error: 'expected "project" or "session"' })
    .prefault('project')
    .describe(
      '`project`: all clients share the server. `session`: each has a process or connection of its own for its calls.',
    ),
  timeout: duration(1)
    .optional()
    .describe(
      'How long one call may go without a sign of life: progress starts the clock anew, and a question to a person stops it. ' +
        'Default: `5m`, or `folders.timeout` beside `folder`.',
    ),
  total_timeout: duration(1)
    .optional()
    .describe('How long one call may take in all. Default: `1h`, or `timeout` where that is longer.'),
  start_timeout: duration(1)
    .optional()
    .describe(
      'How long starting the server and listing its tools may take. Default: `30s`, or `folders.start_timeout` beside `folder`.',
    ),
  health_interval: duration(0).optional().describe('For this server, instead of the setting of the same name.'),
  ...folderShape,
  ...serverLimitShape,
  tools: limitsByTool(toolLimitsSchema)
    .optional()
    .describe('Limits of single tools, by the name that the server gives them or a pattern over it.'),
};

/** What a server is: a program, an address or a folder. */
export const WAYS = ['command', 'url', 'folder'] as const;
type Way = (typeof WAYS)[number];

const transportsOf: Readonly<Record<Way, readonly string[]>> = {
  command: ['stdio'],
  url: ['http', 'sse'],
  folder: [],
};

/** The keys that mean something only beside some of them. */
const keysOf = {
  args: ['command'],
  env: ['command', 'folder'],
  cwd: ['command'],
  headers: ['url'],
  memory: ['folder'],
  isolation: ['folder'],
} as const satisfies Readonly<Record<string, readonly Way[]>>;

/** Those that say nothing beside this one. */
export function keysWithout(way: Way): string[] {
  return Object.entries(keysOf).flatMap(([key, ways]) => ((ways as readonly Way[]).includes(way) ? [] : key));
}

const shape = strictMap(serverShape);

function checkServer(server: z.output<typeof shape>, context: z.core.$RefinementCtx): void {
  const add = (path: string[], message: string) => context.addIssue({ code: 'custom', path, message });
  const { transport } = server;
  const [way, other] = WAYS.filter((key) => server[key] !== undefined);
  if (way === undefined) {
    add(
      [],
      'needs "command" (a program to start), "url" (an address to connect to) or "folder" (a folder of tool files)',
    );
    return;
  }
  if (other !== undefined) {
    add([other], `stands beside "${way}". Keep one of the two`);
    return;
  }
  const isKnown = Object.values(transportsOf).some((all) => all.includes(transport ?? ''));
  if (transport !== undefined && isKnown && !transportsOf[way].includes(transport)) {
    const [fitting] = transportsOf[way];
    const instead = fitting === undefined ? 'Leave it out' : `Use "${fitting}" or leave it out`;
    add(['transport'], `"${transport}" needs "${transport === 'stdio' ? 'command' : 'url'}". ${instead}`);
  }
  for (const [key, ways] of Object.entries(keysOf) as [keyof typeof keysOf, readonly Way[]][]) {
    if (server[key] === undefined || ways.includes(way)) continue;
    add([key], `has no use beside "${way}": it is for servers with ${ways.map((one) => `"${one}"`).join(' or ')}`);
  }
}

export const serverSchema = shape
  .superRefine(checkServer, {
    // A wrong value in one key does not hide what is wrong between keys. An unknown key does: it may well be the
    // mistyped `command` that would be reported as missing.
    when: ({ value, issues }) => isMap(value) && !issues.some((issue) => issue.code === 'unrecognized_keys'),
  })
  .meta({
    id: 'Server',
    description:
      'An MCP server behind the gateway: a program to start (`command`), an address (`url`) or a folder of tool files (`folder`).',
    oneOf: WAYS.map((way) => ({ required: [way] })),
  });

export type ServerFile = z.output<typeof serverSchema>;

/** Servers by name. */
export const serverMap = z.record(z.string(), serverSchema, { error: 'expected a map of servers' }).superRefine(
  (servers, context) => {
    for (const [name, server] of Object.entries(servers)) {
      if (server?.namespace === undefined && !NAMESPACE.test(name)) {
        const message = `the name becomes the prefix of the tools: use ${NAMESPACE_FORM}, or set "namespace"`;
        context.addIssue({ code: 'custom', path: [name], message });
      }
    }
  },
  { when: ({ value }) => isMap(value) },
);
