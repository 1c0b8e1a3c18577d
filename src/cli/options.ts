/** The options of all commands, and what `--help` says of them. */

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
  readonly service?: string;
  readonly type?: string;
  readonly profile?: string;
  readonly task?: string;
  readonly format?: string;
  readonly name?: string;
  readonly offline?: boolean;
  readonly 'dry-run'?: boolean;
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

export type OptionName = keyof Options;

export const optionTexts: Readonly<
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
  service: { type: 'string', value: 'NAME', text: 'the service that the task is about' },
  type: { type: 'string', value: 'TYPE', text: 'what kind of service or work: api, frontend, research, …' },
  profile: { type: 'string', value: 'NAME', text: 'the profile that it begins with, whatever its type' },
  task: {
    type: 'string',
    value: 'FILE',
    text: 'only what this task needs: TOML, YAML or JSON, or a text that describes it',
  },
  format: { type: 'string', value: 'FORMAT', text: 'toml (default), json or configmap' },
  name: { type: 'string', value: 'NAME', text: 'the name of the ConfigMap' },
  offline: { type: 'boolean', text: 'start no servers; take the tools by the names that rules give' },
  'dry-run': { type: 'boolean', text: 'call nothing; print what would be called' },
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
