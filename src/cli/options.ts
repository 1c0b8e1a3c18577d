/** The options of all commands: how they are parsed, their types, and their `--help` texts. */
import type { LoadOptions } from '../config/find.ts';
import type { CommandIo } from './command-io.ts';

interface OptionSpec {
  readonly type: 'string' | 'boolean';
  readonly short?: string;
  readonly multiple?: true;
  /** The placeholder for its value in `--help`. */
  readonly value?: string;
  readonly text: string;
}

export const optionTable = {
  config: { type: 'string', value: 'PATH', text: 'the configuration file (default: the first one in this folder)' },
  'log-level': { type: 'string', value: 'LEVEL', text: 'debug, info, warn, error or silent' },
  agent: { type: 'string', value: 'NAME', text: 'act as this agent, under its policy' },
  json: { type: 'boolean', text: 'print JSON' },
  tokens: { type: 'boolean', text: 'also show how many tokens each costs a model' },
  forget: { type: 'boolean', text: 'forget the examples that were learned from use' },
  examples: { type: 'boolean', text: 'show the example queries of tools instead' },
  tokenizer: {
    type: 'string',
    value: 'FILE',
    text: 'the tokenizer of the model, if it is not tokenizer.json next to it',
  },
  dimensions: { type: 'string', value: 'N', text: 'keep only the first N numbers of each vector' },
  stats: { type: 'boolean', text: 'show the call metrics of a running gateway instead' },
  url: { type: 'string', value: 'URL', text: 'ask the gateway at this address, with its operator key' },
  host: { type: 'string', value: 'HOST', text: 'the address to listen on (default 127.0.0.1)' },
  port: { type: 'string', value: 'PORT', text: 'the port to listen on (default 8808; 0 picks a free one)' },
  'no-shared': { type: 'boolean', text: 'start a gateway for this client alone, whatever the configuration says' },
  manager: { type: 'boolean', text: 'the manager in place of the gateway' },
  processes: {
    type: 'string',
    value: 'N',
    text: 'run so many processes on one port, or "auto" for one per core (default 1)',
  },
  'no-manager': { type: 'boolean', text: 'do not start the manager' },
  'equip-toolset': { type: 'string', value: 'NAME', text: 'equip this toolset at the start' },
  description: { type: 'string', value: 'TEXT', text: 'what it is for' },
  language: { type: 'string', value: 'LANGUAGE', text: 'typescript (default) or python' },
  service: { type: 'string', value: 'NAME', text: 'the service that the task is about' },
  type: { type: 'string', value: 'TYPE', text: 'the type of service or work: api, frontend, research, …' },
  profile: { type: 'string', value: 'NAME', text: 'the profile to start from, regardless of the type' },
  task: {
    type: 'string',
    value: 'FILE',
    text: 'offer only what this task needs: a TOML, YAML or JSON file, or a text that describes it',
  },
  format: { type: 'string', value: 'FORMAT', text: 'toml (default), json or configmap' },
  name: { type: 'string', value: 'NAME', text: 'the name of the ConfigMap' },
  input: {
    type: 'string',
    multiple: true,
    value: 'NAME=VALUE',
    text: 'a value that the server asks for; may be repeated',
  },
  search: { type: 'boolean', text: 'also take tools that the search finds for the description' },
  offline: { type: 'boolean', text: 'start no servers; use the tool names written in the rules' },
  'dry-run': { type: 'boolean', text: 'call nothing; print what would be called' },
  add: { type: 'string', multiple: true, value: 'TOOL', text: 'a tool to add to the toolset; may be repeated' },
  remove: { type: 'string', multiple: true, value: 'TOOL', text: 'a tool to remove from it; may be repeated' },
  session: { type: 'string', value: 'ID', text: 'only for this client, by its id in toolgate status' },
  all: { type: 'boolean', text: 'for all clients, also those that have chosen themselves' },
  user: { type: 'boolean', text: 'save it for all your projects' },
  seen: { type: 'boolean', text: 'you have read all of it, with toolgate approvals show' },
  trust: { type: 'boolean', text: "run what this folder's configuration names without asking, this time" },
  yes: { type: 'boolean', text: 'do not ask for confirmation' },
  server: { type: 'string', value: 'KEY', text: 'only calls to this server' },
  tool: { type: 'string', value: 'PATTERN', text: 'only tools, resources and prompts whose names match' },
  status: {
    type: 'string',
    value: 'STATUS',
    text: 'only what ended with this status: ok, tool_error, timeout, item_unknown, …',
  },
  kind: { type: 'string', value: 'KIND', text: 'only this kind: call, begun, denial or admin' },
  against: { type: 'string', value: 'SEAL', text: 'a seal that toolgate audit seal printed earlier' },
  since: { type: 'string', value: 'TIME', text: 'not older than this: 30m, 24h, 7d, or a date and time' },
  until: { type: 'string', value: 'TIME', text: 'older than this' },
  limit: { type: 'string', short: 'n', value: 'N', text: 'only the last N; 0 for all' },
  watch: { type: 'boolean', text: 'keep showing it, whenever something changes' },
  fix: { type: 'boolean', text: 'repair what can be repaired without a decision, and say what was done' },
  follow: { type: 'boolean', short: 'f', text: 'keep printing new lines as they are written' },
  expires: {
    type: 'string',
    value: 'TIME',
    text: 'how long the token is valid, such as 12h, 30d or 4w (default: forever)',
  },
  grace: { type: 'string', value: 'TIME', text: 'how long the old tokens stay valid (default: not at all)' },
  for: {
    type: 'string',
    value: 'TIME',
    text: 'let the same agent use the tool without asking again for this long, such as 30m',
  },
  reason: { type: 'string', value: 'TEXT', text: 'the reason, shown to the caller that waits' },
  namespace: { type: 'string', value: 'NAME', text: 'only for this namespace; takes precedence over a global secret' },
  scope: { type: 'string', value: 'SCOPE', text: 'global, or a namespace: another way to write --namespace' },
  key: { type: 'string', value: 'NAME', text: 'the name of the secret: another way to write NAME' },
  stdin: { type: 'boolean', text: 'read the value from standard input, for scripts' },
  out: { type: 'string', value: 'FILE', text: 'write the key to this new file, which only you can read' },
  'new-key-file': {
    type: 'string',
    value: 'FILE',
    text: 'a file with the new key (default: you are asked for it)',
  },
  header: {
    type: 'string',
    multiple: true,
    value: 'HEADER',
    text: 'a header for every request, such as "X-Namespace: git"; may be repeated',
  },
  env: {
    type: 'string',
    short: 'e',
    multiple: true,
    value: 'KEY=VALUE',
    text: 'a variable for the program; may be repeated',
  },
  transport: { type: 'string', short: 't', value: 'KIND', text: 'stdio, http or sse (default: by what you give)' },
  cwd: { type: 'string', value: 'FOLDER', text: 'the folder that the program starts in' },
  from: { type: 'string', value: 'FILE', text: 'read only this file' },
  point: { type: 'boolean', text: 'let the clients use Toolgate in place of these servers' },
  'move-secrets': { type: 'boolean', text: 'move secrets in plain text to the secrets store' },
  undo: { type: 'boolean', text: 'take the last init of this configuration back' },
  'no-browser': { type: 'boolean', text: 'print the address to open, and start no browser' },
  device: { type: 'boolean', text: 'log in on another device, with a code, where the server offers that' },
  ca: { type: 'string', value: 'FILE', text: "authorities that the gateway's certificate may be from, in PEM form" },
  cert: { type: 'string', value: 'FILE', text: 'the client certificate to show, in PEM form' },
  timeout: { type: 'string', value: 'TIME', text: 'how long to wait for the gateway (default 60s)' },
  help: { type: 'boolean', short: 'h', text: 'show this help' },
  version: { type: 'boolean', short: 'v', text: 'show the version' },
} as const satisfies Record<string, OptionSpec>;

export type OptionName = keyof typeof optionTable;

type ValueOf<Spec> = Spec extends { type: 'boolean' }
  ? boolean
  : Spec extends { multiple: true }
    ? readonly string[]
    : string;

export type Options = { readonly [Name in OptionName]?: ValueOf<(typeof optionTable)[Name]> };

/** A command, or one of its verbs. Returns the exit code. */
export type RunCommand = (args: readonly string[], options: Options, io: CommandIo) => Promise<number>;

export function optionSpec(name: OptionName): OptionSpec {
  return optionTable[name];
}

/** Where the configuration of a command is looked for. */
export function loadOptions(options: Options, io: CommandIo): LoadOptions {
  return { cwd: io.cwd(), env: io.env, ...(options.config === undefined ? {} : { path: options.config }) };
}

/** What a word on the command line names. `reference` is a tool as toolsets name it. */
export type NameKind = 'agent' | 'macro' | 'reference' | 'server' | 'tool' | 'toolset' | 'new';

/** What the words name, one after the other. `…`: more of the kind before it. */
export type NameKinds = readonly (NameKind | '…')[];

export interface Command {
  readonly usage: string;
  readonly summary: string;
  /** Paragraphs. */
  readonly details?: readonly string[];
  readonly examples?: readonly string[];
  /** The most words that may follow; any number if absent. */
  readonly words?: number;
  readonly options: readonly OptionName[];
  /** What follows the command, or each of its verbs, for completion. */
  readonly names?: NameKinds | Readonly<Record<string, NameKinds>>;
  /** Texts for options that mean something else here. */
  readonly texts?: Partial<Readonly<Record<OptionName, string>>>;
  /** Each command is loaded only when it is used, because every agent waits for the start-up. */
  readonly load: () => Promise<RunCommand>;
}
