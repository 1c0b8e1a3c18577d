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
  readonly add?: readonly string[];
  readonly remove?: readonly string[];
  readonly user?: boolean;
  readonly yes?: boolean;
  readonly help?: boolean;
  readonly version?: boolean;
}

type OptionName = keyof Options;

interface Command {
  readonly usage: string;
  readonly summary: string;
  readonly details?: readonly string[];
  readonly options: readonly OptionName[];
}

const optionTexts: Readonly<
  Record<
    OptionName,
    { readonly type: 'string' | 'boolean'; readonly multiple?: true; readonly text: string; readonly value?: string }
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
  description: { type: 'string', value: 'TEXT', text: 'what the toolset is for' },
  add: { type: 'string', multiple: true, value: 'TOOL', text: 'a tool to put into the toolset; may be repeated' },
  remove: { type: 'string', multiple: true, value: 'TOOL', text: 'a tool to take out of it; may be repeated' },
  user: { type: 'boolean', text: 'save it for all your projects' },
  yes: { type: 'boolean', text: 'do not ask' },
  help: { type: 'boolean', text: 'show this help' },
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
      'The endpoint is /mcp; /health and /ready are for probes, /metrics for Prometheus. Set BEARER_TOKEN to require a token.',
    ],
    options: ['host', 'port', 'equip-toolset', 'config', 'log-level'],
  },
  list: {
    usage: 'toolgate list [servers|tools|resources|prompts]',
    summary: 'what the configured servers offer; * marks what is active',
    details: ['--stats asks a running toolgate serve, with BEARER_TOKEN if it is set: calls, errors, durations.'],
    options: ['agent', 'json', 'stats', 'url', 'config', 'log-level'],
  },
  toolsets: {
    usage: 'toolgate toolsets [list|show|create|edit|delete|equip|unequip|import] [NAME] [TOOL …]',
    summary: 'named choices of tools, and which one is equipped at the start',
    details: [
      'Tools are named as server.tool or as they are exposed, or by patterns such as "git.*".',
      'import takes the toolsets that hypertool-mcp has saved, from the file that is named or from its usual place.',
    ],
    options: ['description', 'add', 'remove', 'user', 'yes', 'json', 'config', 'log-level'],
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

export function parseCommandLine(argv: readonly string[]): Invocation {
  const first = argv[0] ?? '';
  const named = first !== '' && !first.startsWith('-');
  if (named && !Object.hasOwn(commands, first)) {
    throw new GatewayError(
      'usage',
      `There is no command "${first}".${didYouMean(first, Object.keys(commands))} See toolgate --help.`,
    );
  }
  const command = (named ? first : 'stdio') as CommandName;
  const allowed: readonly OptionName[] = [...commands[command].options, 'help', 'version'];
  const config = Object.fromEntries(
    allowed.map((name) => {
      const { type, multiple = false } = optionTexts[name];
      return [name, { type, multiple, ...(name === 'help' ? { short: 'h' } : {}) }];
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
    const { value, text } = optionTexts[option];
    return [`--${option}${value === undefined ? '' : ` ${value}`}`, text] as const;
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
