/** The commands and their options, as `--help` shows them. */
import { parseArgs } from 'node:util';
import { didYouMean, GatewayError } from '../internal.ts';
import { type OptionName, type Options, optionTexts } from './options.ts';

export type { Options } from './options.ts';

interface Command {
  readonly usage: string;
  readonly summary: string;
  readonly details?: readonly string[];
  readonly options: readonly OptionName[];
  /** Where an option means something else here. */
  readonly texts?: Partial<Readonly<Record<OptionName, string>>>;
}

export const commands = {
  stdio: {
    usage: 'toolgate [stdio]',
    summary: 'MCP on standard input and output, with the configuration found here',
    options: ['agent', 'task', 'equip-toolset', 'config', 'log-level'],
  },
  serve: {
    usage: 'toolgate serve',
    summary: 'MCP over HTTP, for many clients at once',
    details: [
      'The endpoint is /mcp; /tools, /openapi.json and /docs are tools over REST; /health and /ready are for probes, /metrics for Prometheus.',
      'Set BEARER_TOKEN to require a token, or give each agent its own: toolgate agents add NAME.',
      'OTEL_EXPORTER_OTLP_ENDPOINT sends traces and figures to a collector, where OpenTelemetry is installed.',
    ],
    options: ['host', 'port', 'task', 'equip-toolset', 'config', 'log-level'],
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
  macros: {
    usage: 'toolgate macros [list|run] [NAME] [key=value … | JSON]',
    summary: 'tools of the configuration that are made of other tools',
    details: [
      'run calls one, as toolgate call does; with --dry-run it prints its steps and their arguments. toolgate macro is the same.',
    ],
    options: ['dry-run', 'agent', 'json', 'config', 'log-level'],
  },
  explain: {
    usage: 'toolgate explain NAME --agent NAME',
    summary: 'why an agent may use something, or may not: rule by rule; exit 0 allowed, 1 denied',
    details: ['NAME is a tool, resource, template or prompt, by any of its names.'],
    options: ['agent', 'json', 'config', 'log-level'],
  },
  plan: {
    usage: 'toolgate plan --service NAME --type TYPE --description TEXT',
    summary: 'the configuration that a task needs, by the rules for tasks',
    details: [
      'It has the servers that the task needs, and lists of the tools that it needs, each with its reason.',
      '--json prints the plan itself: the tools, and why each of them.',
    ],
    options: [
      'service',
      'type',
      'description',
      'profile',
      'task',
      'agent',
      'format',
      'name',
      'offline',
      'json',
      'config',
      'log-level',
    ],
    texts: {
      description: 'what is to be done',
      task: 'a file with service, type, description and profile, or a text that is the description',
      agent: 'no more than what this agent may use',
    },
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
  macro: 'macros',
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
