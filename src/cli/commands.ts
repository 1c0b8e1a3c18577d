/** The commands and their options, as `--help` shows them. */
import { parseArgs } from 'node:util';
import { didYouMean, GatewayError } from '../index.ts';

export interface Options {
  readonly config?: string;
  readonly 'log-level'?: string;
  readonly agent?: string;
  readonly json?: boolean;
  readonly stats?: boolean;
  readonly url?: string;
  readonly host?: string;
  readonly port?: string;
  readonly 'equip-toolset'?: string;
  readonly description?: string;
  readonly language?: string;
  readonly add?: readonly string[];
  readonly remove?: readonly string[];
  readonly user?: boolean;
  readonly yes?: boolean;
  readonly server?: string;
  readonly tool?: string;
  readonly status?: string;
  readonly kind?: string;
  readonly since?: string;
  readonly until?: string;
  readonly limit?: string;
  readonly follow?: boolean;
  readonly expires?: string;
  readonly grace?: string;
  readonly for?: string;
  readonly reason?: string;
  readonly namespace?: string;
  readonly scope?: string;
  readonly key?: string;
  readonly stdin?: boolean;
  readonly out?: string;
  readonly 'new-key-file'?: string;
  readonly header?: readonly string[];
  readonly timeout?: string;
  readonly help?: boolean;
  readonly version?: boolean;
}

type OptionName = keyof Options;

interface Command {
  readonly usage: string;
  readonly summary: string;
  readonly details?: readonly string[];
  readonly options: readonly OptionName[];
  /** Where an option means something else here. */
  readonly texts?: Partial<Readonly<Record<OptionName, string>>>;
}

const optionTexts: Readonly<
  Record<
    OptionName,
    {
      readonly type: 'string' | 'boolean';
      readonly short?: string;
      readonly multiple?: true;
      readonly text: string;
      readonly value?: string;
    }
  >
> = {
  config: { type: 'string', value: 'PATH', text: 'the configuration file; otherwise it is looked for in this folder' },
  'log-level': { type: 'string', value: 'LEVEL', text: 'debug, info, warn, error or silent' },
  agent: { type: 'string', value: 'NAME', text: 'as this agent, with what its policy allows' },
  json: { type: 'boolean', text: 'print JSON' },
  stats: { type: 'boolean', text: 'how calls went in a gateway that is running, instead' },
  url: { type: 'string', value: 'URL', text: 'where that one listens (default http://127.0.0.1:8808)' },
  host: { type: 'string', value: 'HOST', text: 'the address to listen on (default 127.0.0.1)' },
  port: { type: 'string', value: 'PORT', text: 'the port to listen on (default 8808; 0 takes a free one)' },
  'equip-toolset': { type: 'string', value: 'NAME', text: 'equip this toolset at the start' },
  description: { type: 'string', value: 'TEXT', text: 'what it is for' },
  language: { type: 'string', value: 'LANGUAGE', text: 'typescript (default) or python' },
  add: { type: 'string', multiple: true, value: 'TOOL', text: 'a tool to put into the toolset; may be repeated' },
  remove: { type: 'string', multiple: true, value: 'TOOL', text: 'a tool to take out of it; may be repeated' },
  user: { type: 'boolean', text: 'save it for all your projects' },
  yes: { type: 'boolean', text: 'do not ask' },
  server: { type: 'string', value: 'KEY', text: 'only what this server was asked' },
  tool: { type: 'string', value: 'PATTERN', text: 'only tools, resources and prompts of such names' },
  status: {
    type: 'string',
    value: 'STATUS',
    text: 'only what ended like this: ok, tool_error, timeout, item_unknown, …',
  },
  kind: { type: 'string', value: 'KIND', text: 'only these: call, denial or admin' },
  since: { type: 'string', value: 'TIME', text: 'not before: 30m, 24h, 7d ago, or a date and time' },
  until: { type: 'string', value: 'TIME', text: 'before that' },
  limit: { type: 'string', short: 'n', value: 'N', text: 'the last so many; 0 for all' },
  follow: { type: 'boolean', short: 'f', text: 'go on with what is written from now on' },
  expires: {
    type: 'string',
    value: 'TIME',
    text: 'how long the token is good, such as 12h, 30d or 4w (default: for ever)',
  },
  grace: { type: 'string', value: 'TIME', text: 'how long the tokens before it stay good (default: not at all)' },
  for: {
    type: 'string',
    value: 'TIME',
    text: 'and the same agent need not ask again for the tool so long, such as 30m',
  },
  reason: { type: 'string', value: 'TEXT', text: 'why; whoever waits is told' },
  namespace: { type: 'string', value: 'NAME', text: 'for this namespace alone, before what is for all' },
  scope: { type: 'string', value: 'SCOPE', text: 'global, or a namespace: the same in other words' },
  key: { type: 'string', value: 'NAME', text: 'the name of the secret, instead of behind the command' },
  stdin: { type: 'boolean', text: 'read the value from the standard input, for programs' },
  out: { type: 'string', value: 'FILE', text: 'write the key to this new file, which nobody else can read' },
  'new-key-file': {
    type: 'string',
    value: 'FILE',
    text: 'the key to encrypt with from now on; otherwise it is asked for',
  },
  header: {
    type: 'string',
    multiple: true,
    value: 'HEADER',
    text: 'sent with every request, such as "X-Namespace: git"; may be repeated',
  },
  timeout: { type: 'string', value: 'TIME', text: 'how long to wait for the gateway (default 60s)' },
  help: { type: 'boolean', short: 'h', text: 'show this help' },
  version: { type: 'boolean', text: 'show the version' },
};

export const commands = {
  stdio: {
    usage: 'toolgate [stdio]',
    summary: 'MCP on standard input and output, with the configuration found here',
    options: ['agent', 'equip-toolset', 'config', 'log-level'],
  },
  serve: {
    usage: 'toolgate serve',
    summary: 'MCP over HTTP, for many clients at once',
    details: [
      'The endpoint is /mcp; /tools, /openapi.json and /docs are tools over REST; /health and /ready are for probes, /metrics for Prometheus.',
      'Set BEARER_TOKEN to require a token, or give each agent its own: toolgate agents add NAME.',
      'OTEL_EXPORTER_OTLP_ENDPOINT sends traces and figures to a collector, where OpenTelemetry is installed.',
    ],
    options: ['host', 'port', 'equip-toolset', 'config', 'log-level'],
  },
  connect: {
    usage: 'toolgate connect URL',
    summary: 'MCP on standard input and output, passed on to a gateway elsewhere',
    details: [
      'The token of the agent is taken from TOOLGATE_TOKEN, or from the file that TOOLGATE_TOKEN_FILE names.',
      'It outlasts restarts of the gateway: requests wait for it, and the client is told to look at its lists again.',
    ],
    options: ['header', 'timeout'],
  },
  wait: {
    usage: 'toolgate wait URL',
    summary: 'until the gateway there is ready: exit 0, or 1 when it takes too long',
    options: ['timeout'],
  },
  list: {
    usage: 'toolgate list [servers|tools|resources|prompts|toolsets|namespaces|agents]',
    summary: 'what the configured servers offer; * marks what is active',
    details: [
      '--stats asks a running toolgate serve, with BEARER_TOKEN if it is set: calls, errors, durations; also of agents.',
    ],
    options: ['agent', 'json', 'stats', 'url', 'config', 'log-level'],
  },
  toolsets: {
    usage: 'toolgate toolsets [list|show|create|edit|delete|equip|unequip|import] [NAME] [TOOL …]',
    summary: 'named choices of tools, and which one is equipped at the start',
    details: [
      'Tools are named as server.tool or as they are exposed, or by patterns such as "git.*". toolgate toolset is the same.',
      'import takes the toolsets that hypertool-mcp has saved, from the file that is named or from its usual place.',
    ],
    options: ['description', 'add', 'remove', 'user', 'yes', 'json', 'config', 'log-level'],
  },
  namespaces: {
    usage: 'toolgate namespaces [list|create|sync|delete] [NAME]',
    summary: 'folders of TypeScript and Python files that are served as tools',
    details: [
      'They are in tools/ of the data folder. create makes one with a first tool; a running gateway serves it at once.',
      'sync prepares what their tools depend on. delete removes the folder with everything in it. toolgate namespace is the same.',
    ],
    options: ['language', 'description', 'yes', 'json', 'config'],
  },
  agents: {
    usage: 'toolgate agents [list|add|rotate|revoke] [NAME]',
    summary: 'who is let in over HTTP, each with a token of its own',
    details: [
      'add and rotate print the new token and nothing else; it is not kept. A running gateway notices every change.',
      'Agents and their tokens may stand in the configuration too, under [agents.NAME].',
    ],
    options: ['expires', 'grace', 'description', 'json', 'config'],
  },
  approvals: {
    usage: 'toolgate approvals [list|approve|deny] [ID …]',
    summary: 'what waits for a person, and the decision on it',
    details: [
      'Of every gateway that runs with this configuration; with --url, of one elsewhere.',
      'It takes the operator key: TOOLGATE_OPERATOR_KEY, or the file that is made in your own configuration folder.',
    ],
    options: ['for', 'reason', 'json', 'url', 'config'],
    texts: { url: 'ask the gateway at this address instead' },
  },
  secrets: {
    usage: 'toolgate secrets [list|set|edit|remove|check|keygen|rotate] [NAME]',
    summary: 'keys and tokens that servers are given and nobody else sees',
    details: [
      'set asks for the value without showing it; edit opens all of them in $EDITOR. They are encrypted with the key in',
      'SECRETS_KEY, SECRETS_KEY_FILE or secrets.key_file, which keygen makes. A running gateway notices every change.',
      'Write ${secret:NAME} in the configuration of a server; folders of tools find them in their environment.',
    ],
    options: ['namespace', 'scope', 'key', 'stdin', 'yes', 'out', 'new-key-file', 'json', 'config'],
  },
  call: {
    usage: 'toolgate call NAME [key=value … | JSON]',
    summary: 'call one tool and print what it answers',
    details: ['Values are read by the type that the tool declares; a whole JSON object may be given instead.'],
    options: ['agent', 'json', 'config', 'log-level'],
  },
  explain: {
    usage: 'toolgate explain NAME --agent NAME',
    summary: 'why an agent may use something, or may not: rule by rule; exit 0 allowed, 1 denied',
    details: ['NAME is a tool, resource, template or prompt, by any of its names.'],
    options: ['agent', 'json', 'config', 'log-level'],
  },
  audit: {
    usage: 'toolgate audit [tail|query|usage|verify]',
    summary: 'what was written down of calls, denials and administrative acts',
    details: [
      'tail shows the last lines, query those that fit, usage adds them up by agent and tool, verify looks for changed lines.',
    ],
    options: ['agent', 'server', 'tool', 'status', 'kind', 'since', 'until', 'limit', 'follow', 'json', 'config'],
    texts: { agent: 'only what this agent asked' },
  },
  doctor: {
    usage: 'toolgate doctor',
    summary: 'check the configuration and every server; exit 0 well, 1 warnings, 2 broken',
    options: ['json', 'config', 'log-level'],
  },
  schema: {
    usage: 'toolgate schema',
    summary: 'print the JSON Schema of the configuration',
    options: [],
  },
} as const satisfies Record<string, Command>;

export type CommandName = keyof typeof commands;

export interface Invocation {
  readonly command: CommandName;
  readonly args: readonly string[];
  readonly options: Options;
}

/** What else commands are called. */
const ALIASES: Readonly<Record<string, CommandName>> = {
  toolset: 'toolsets',
  namespace: 'namespaces',
  agent: 'agents',
  secret: 'secrets',
};

export function parseCommandLine(argv: readonly string[]): Invocation {
  const first = argv[0] ?? '';
  const named = first !== '' && !first.startsWith('-');
  if (named && !Object.hasOwn(commands, first) && !Object.hasOwn(ALIASES, first)) {
    throw new GatewayError(
      'usage',
      `There is no command "${first}".${didYouMean(first, Object.keys(commands))} See toolgate --help.`,
    );
  }
  const command = named ? (ALIASES[first] ?? (first as CommandName)) : 'stdio';
  const allowed: readonly OptionName[] = [...commands[command].options, 'help', 'version'];
  const config = Object.fromEntries(
    allowed.map((name) => {
      const { type, short, multiple = false } = optionTexts[name];
      return [name, { type, multiple, ...(short !== undefined && { short }) }];
    }),
  );
  try {
    const { values, positionals } = parseArgs({
      args: argv.slice(named ? 1 : 0),
      options: config,
      allowPositionals: true,
    });
    return { command, args: positionals, options: values as Options };
  } catch (error) {
    throw new GatewayError('usage', optionError(error, command, allowed));
  }
}

function optionError(error: unknown, command: CommandName, allowed: readonly string[]): string {
  const { code, message } = error as NodeJS.ErrnoException;
  const see = `See toolgate ${command} --help.`;
  if (code !== 'ERR_PARSE_ARGS_UNKNOWN_OPTION') return `${message}. ${see}`;
  const option = /'(-[^']*)'/.exec(message)?.[1] ?? '';
  return `toolgate ${command} has no option ${option}.${didYouMean(option.replace(/^-+/, ''), allowed)} ${see}`;
}

export function helpText(): string {
  const rows = Object.values(commands).map(({ usage, summary }) => [usage, summary] as const);
  const width = Math.max(...rows.map(([usage]) => usage.length));
  return [
    'Toolgate: one gateway for all the MCP tools an agent uses.',
    '',
    ...rows.map(([usage, summary]) => `  ${usage.padEnd(width)}  ${summary}`),
    '',
    'Every command takes --help. The configuration is --config PATH, $TOOLGATE_CONFIG, or the first of',
    'tools.toml, toolgate.toml, toolgate.yaml, toolgate.yml, toolgate.json, .mcp.json in this folder.',
  ].join('\n');
}

export function commandHelp(name: CommandName): string {
  const command: Command = commands[name];
  const rows = [...command.options, 'help' as const].map((option) => {
    const { short, value, text } = optionTexts[option];
    const names = short === undefined ? `--${option}` : `--${option}, -${short}`;
    return [`${names}${value === undefined ? '' : ` ${value}`}`, command.texts?.[option] ?? text] as const;
  });
  const width = Math.max(...rows.map(([option]) => option.length));
  return [
    `${command.usage}`,
    '',
    `${command.summary[0]!.toUpperCase()}${command.summary.slice(1)}.`,
    ...(command.details ?? []),
    '',
    ...rows.map(([option, text]) => `  ${option.padEnd(width)}  ${text}`),
  ].join('\n');
}
