/** The commands: what `--help` says about them (`help.ts` prints it), the options they take, and the code that runs them. */
import { parseArgs } from 'node:util';
import { GatewayError } from '../base/errors.ts';
import { didYouMean, quotedList } from '../base/text.ts';
import { type Command, type OptionName, type Options, optionSpec, type RunCommand } from './options.ts';
import { print } from './terminal.ts';

export const commands = {
  stdio: {
    usage: 'toolgate [stdio]',
    summary: 'serve MCP on standard input and output, with the configuration found in this folder; the default',
    examples: ['toolgate --config ~/tools.toml', 'claude mcp add toolgate -- toolgate --config ~/tools.toml'],
    words: 0,
    options: ['agent', 'task', 'equip-toolset', 'no-shared', 'trust', 'config', 'log-level'],
    load: async () => (await import('./stdio.ts')).stdio,
  },
  serve: {
    usage: 'toolgate serve',
    summary: 'serve MCP over HTTP, for many clients at once',
    details: [
      'The endpoint is /mcp. Tools over REST: /tools, /openapi.json, /docs. Probes: /health, /ready. Prometheus: /metrics. The dashboard is at /: see toolgate dashboard --help.',
      'Set BEARER_TOKEN to require a token, or give each agent its own: toolgate agents add NAME.',
      'With [http.tls] in the configuration it serves HTTPS, and can take client certificates.',
      'Where there are folders of tools and BEARER_TOKEN is set, it also starts the manager: see toolgate manager --help.',
      'OTEL_EXPORTER_OTLP_ENDPOINT sends traces and metrics to a collector, if OpenTelemetry is installed.',
    ],
    examples: ['toolgate serve --port 9000', 'BEARER_TOKEN=$(openssl rand -hex 32) toolgate serve --host 0.0.0.0'],
    words: 0,
    options: ['host', 'port', 'processes', 'no-manager', 'task', 'equip-toolset', 'trust', 'config', 'log-level'],
    load: async () => (await import('./serve.ts')).serve,
  },
  daemon: {
    usage: 'toolgate daemon [status|start|stop]',
    summary: 'manage the gateway in the background, which the clients on stdio in this folder share',
    details: [
      'toolgate stdio starts it by itself, and it ends some minutes after its last client (shared_idle).',
      'status shows the processes, how many clients they have, and where their log is; exit 0 if one runs, else 1.',
      'stop lets running calls finish. Clients that are still there start another gateway when they need one.',
    ],
    examples: ['toolgate daemon stop'],
    options: ['json', 'trust', 'config'],
    load: async () => (await import('./daemon.ts')).daemon,
  },
  manager: {
    usage: 'toolgate manager',
    summary: 'serve the tools with which models write, test and repair folders of tools, over HTTP',
    details: [
      'toolgate serve starts it by itself, unless told not to: --no-manager, or manager = false in the configuration.',
      'Started alone, it tells the gateway at CORE_URL of changes. Both need the same MANAGER_INTERNAL_TOKEN, and the same BEARER_TOKEN; without that, CORE_TOKEN is what it shows to the gateway.',
      'The endpoint is /mcp. It always needs a token: BEARER_TOKEN, or one of toolgate agents.',
    ],
    examples: ['CORE_URL=http://core:8808 toolgate manager --host 0.0.0.0'],
    words: 0,
    options: ['host', 'port', 'trust', 'config', 'log-level'],
    texts: { port: 'the port to listen on (default 8809; 0 picks a free one)' },
    load: async () => (await import('./manager.ts')).manager,
  },
  connect: {
    usage: 'toolgate connect URL',
    summary: 'serve MCP on standard input and output, forwarded to a gateway elsewhere',
    details: [
      "The agent's token comes from TOOLGATE_TOKEN, or from the file named by TOOLGATE_TOKEN_FILE.",
      'It survives restarts of the gateway: requests wait, and the client is told to reload its lists.',
      '--ca names the authority of a gateway with a certificate of your own; --cert and --key show a client certificate.',
    ],
    examples: ['TOOLGATE_TOKEN=… toolgate connect https://tools.example.com/mcp'],
    words: 1,
    options: ['header', 'ca', 'cert', 'key', 'timeout'],
    texts: { key: 'the private key of --cert' },
    load: async () => (await import('./connect.ts')).connect,
  },
  wait: {
    usage: 'toolgate wait [URL]',
    summary: 'wait until a gateway is ready; exit 0 when it is, 1 when it takes too long',
    details: [
      'Without an address: the gateway with this configuration on this machine, or its manager. If it has TLS, it is recognized by its own certificate, whatever the names in it. This is the health check of containers.',
    ],
    examples: ['toolgate wait http://gateway:8808 --timeout 2m', 'toolgate wait --manager --timeout 4s'],
    words: 1,
    options: ['manager', 'ca', 'cert', 'key', 'timeout', 'config'],
    texts: { key: 'the private key of --cert' },
    load: async () => (await import('./connect.ts')).wait,
  },
  status: {
    usage: 'toolgate status',
    summary: 'show the gateway that runs with this configuration: servers, clients, what is equipped, tokens',
    details: [
      'Finds every toolgate serve and toolgate stdio of this configuration, or asks the one at --url. Starts nothing.',
      'Exit 0 if one runs, 1 if none does. Needs the operator key, as toolgate approvals does.',
    ],
    examples: ['toolgate status --watch'],
    words: 0,
    options: ['watch', 'json', 'url', 'config'],
    load: async () => (await import('./status.ts')).status,
  },
  list: {
    usage: 'toolgate list [servers|tools|resources|prompts|toolsets|namespaces|agents|clients]',
    summary: 'list what the configured servers offer; * marks what is active',
    details: [
      'Shows the gateway that runs with this configuration, if one does. Otherwise the servers are started for a moment.',
      '--tokens counts what the definitions cost a model, by tool, server, toolset, agent or client; clients also shows the lists and results that were sent.',
      '--stats shows calls, errors and durations of a running gateway, also by agent. At --url it uses BEARER_TOKEN, if it is set.',
    ],
    examples: ['toolgate list', 'toolgate list servers --json'],
    words: 1,
    options: ['agent', 'json', 'tokens', 'stats', 'url', 'trust', 'config', 'log-level'],
    load: async () => (await import('./list.ts')).list,
  },
  search: {
    usage: 'toolgate search WORDS …',
    summary: 'find tools, resources and prompts by words, as a model does with the control search',
    details: [
      'Asks the gateway that runs with this configuration, if one does. Otherwise the servers are started for a moment.',
      'Best first; * marks what a new client sees. Matching words are highlighted on a terminal. Exit 1 if nothing matches.',
      '--examples shows the example queries of tools: those of the configuration, and those that agents learned from use.',
    ],
    examples: ['toolgate search create github issue', 'toolgate search --server files --tokens read'],
    options: [
      'server',
      'limit',
      'tokens',
      'examples',
      'forget',
      'agent',
      'json',
      'url',
      'trust',
      'config',
      'log-level',
    ],
    texts: {
      server: 'only of this server, or of those that match this pattern',
      limit: 'at most so many (default 10)',
    },
    load: async () => (await import('./search.ts')).search,
  },
  vectors: {
    usage: 'toolgate vectors MODEL FILE',
    summary: 'make vectors of words for the search from a model',
    details: [
      'MODEL is a folder with model.safetensors and tokenizer.json, as model2vec and sentence-transformers save static models; a .safetensors file; or a text with a word and its numbers in each line, as GloVe and fastText have it.',
      'Nothing is downloaded. search.vectors in the configuration names the file.',
    ],
    examples: ['toolgate vectors potion-base-8M words.vectors', 'toolgate vectors glove.6B.100d.txt words.vectors'],
    words: 2,
    options: ['tokenizer', 'dimensions', 'limit', 'json'],
    texts: { limit: 'keep at most so many words or pieces of words, from the beginning (default 60000)' },
    load: async () => (await import('./vectors.ts')).vectors,
  },
  toolsets: {
    usage: 'toolgate toolsets [list|show|create|edit|rename|delete|equip|unequip|import] [NAME] [TOOL …]',
    summary: 'manage named sets of tools, and choose the one that is equipped at the start',
    details: [
      'Name tools as server.tool, by their exposed names, or by patterns such as "git.*", which mean later tools too. toolgate toolset is the same.',
      'Everything happens in the gateway that runs with this configuration, if one does; clients are told that their list changed.',
      'equip and unequip are for clients that have not chosen themselves, and from the next start on. --agent, --session and --all say otherwise.',
      'import reads the toolsets saved by hypertool-mcp, from the file you name or from its usual location.',
    ],
    examples: [
      'toolgate toolsets create review git.git_diff "files.read_*"',
      'toolgate toolsets equip review --agent ci',
    ],
    options: [
      ...(['description', 'add', 'remove', 'user', 'agent', 'session', 'all', 'yes', 'json'] as const),
      ...(['url', 'trust', 'config', 'log-level'] as const),
    ],
    texts: { agent: 'only for clients of this agent' },
    names: {
      show: ['toolset'],
      edit: ['toolset'],
      rename: ['toolset'],
      delete: ['toolset'],
      equip: ['toolset'],
      create: ['new', 'reference', '…'],
    },
    load: async () => (await import('./toolsets.ts')).toolsets,
  },
  namespaces: {
    usage: 'toolgate namespaces [list|create|from-openapi|sync|delete] [NAME]',
    summary: 'manage folders of TypeScript and Python files that are served as tools',
    details: [
      'They are in tools/ of the data folder. create makes one with a first tool; a running gateway serves it at once.',
      'from-openapi FILE|URL NAME makes one of an OpenAPI document, with a tool for each operation.',
      'sync installs the dependencies of their tools. delete removes the folder and everything in it.',
      'toolgate namespace is the same.',
    ],
    examples: [
      'toolgate namespaces create weather --language python',
      'toolgate namespaces from-openapi openapi.yaml pets',
    ],
    options: ['language', 'description', 'url', 'yes', 'json', 'config'],
    texts: { url: 'where the API of an OpenAPI document is (default: where the document says)' },
    load: async () => (await import('./namespaces.ts')).namespaces,
  },
  init: {
    usage: 'toolgate init',
    summary: 'import the MCP servers of your clients, and let the clients use Toolgate instead',
    details: [
      'Looks for the files of Claude Code, Claude Desktop, Cursor, VS Code, Windsurf, Codex, Gemini CLI, opencode, Zed, Cline, Roo Code, Kiro and others, of this project and of yours.',
      'Shows what it would do and asks. Without a terminal it only shows, unless --yes is given.',
      'Writes tools.toml, or adds to the configuration that is there. Every file that it changes is kept: --undo restores each byte for byte.',
    ],
    examples: ['toolgate init', 'toolgate init --from ~/.cursor/mcp.json --yes', 'toolgate init --undo'],
    words: 0,
    options: ['from', 'point', 'move-secrets', 'undo', 'dry-run', 'yes', 'json', 'config'],
    texts: { 'dry-run': 'only show what it would do', config: 'the configuration to write (default: tools.toml)' },
    load: async () => (await import('./init.ts')).init,
  },
  add: {
    usage: 'toolgate add NAME -- COMMAND … | toolgate add NAME URL',
    summary: 'add a server to the configuration; its comments and everything else in it stay',
    details: [
      'Creates tools.toml if there is no configuration. A running gateway starts the server at once.',
      'What you add is trusted by that. Keep secrets out of the file: write ${secret:NAME} in single quotes, and run toolgate secrets set NAME.',
    ],
    examples: [
      'toolgate add files -- npx -y @modelcontextprotocol/server-filesystem .',
      'toolgate add docs https://example.com/mcp --header "X-Team: a"',
    ],
    options: ['env', 'header', 'transport', 'cwd', 'description', 'json', 'config'],
    texts: { header: 'a header for every request, such as "X-Team: a"; may be repeated' },
    load: async () => (await import('./edit-config.ts')).add,
  },
  remove: {
    usage: 'toolgate remove NAME',
    summary: 'remove a server from the configuration',
    examples: ['toolgate remove files'],
    words: 1,
    options: ['json', 'config'],
    names: ['server', '…'],
    load: async () => (await import('./edit-config.ts')).remove,
  },
  enable: {
    usage: 'toolgate enable NAME',
    summary: 'switch a server or a single tool on again',
    details: ['NAME is a server of the configuration, or a tool by its exposed name.'],
    examples: ['toolgate enable files', 'toolgate enable files_write_file'],
    words: 1,
    options: ['json', 'config'],
    names: ['server', '…'],
    load: async () => (await import('./edit-config.ts')).enable,
  },
  disable: {
    usage: 'toolgate disable NAME',
    summary: 'switch a server or a single tool off, and keep it in the configuration',
    details: [
      'NAME is a server of the configuration, or a tool by its exposed name.',
      'A server gets enabled = false. A tool is listed under denied_tools, so that no agent can use it.',
    ],
    examples: ['toolgate disable files', 'toolgate disable files_write_file'],
    words: 1,
    options: ['json', 'config'],
    names: ['server', '…'],
    load: async () => (await import('./edit-config.ts')).disable,
  },
  trust: {
    usage: 'toolgate trust [add|remove]',
    summary: 'see what the configuration in this folder runs, and trust it',
    details: [
      'A configuration that is found in a folder, not named with --config, is run only when you have trusted it.',
      'What you trust is remembered by a hash, in your own configuration folder. A changed command has to be trusted again; a description does not.',
      'remove forgets it. TOOLGATE_TRUST=1 trusts everything, for containers and CI.',
    ],
    examples: ['cd ~/cloned-project && toolgate trust'],
    words: 1,
    options: ['yes', 'config'],
    load: async () => (await import('./trust.ts')).trust,
  },
  dev: {
    usage: 'toolgate dev FOLDER',
    summary: 'serve one folder of tools while you write them: output, errors, calls and edits in one terminal',
    details: [
      'FOLDER is a path, or the name of a namespace. Only this folder is served, without policies and limits.',
      'Type NAME key=value … to call a tool. Edits are taken up at once. Ctrl-C ends everything.',
    ],
    examples: ['toolgate dev ./my-tools', 'toolgate dev weather --port 9000'],
    options: ['host', 'port', 'config'],
    texts: { port: 'the port to listen on (default 8810, or a free one)' },
    load: async () => (await import('./dev.ts')).dev,
  },
  agents: {
    usage: 'toolgate agents [list|add|rotate|revoke] [NAME]',
    summary: 'manage the agents that may connect over HTTP, each with its own token',
    details: [
      'add and rotate print the new token and nothing else; it is not stored. A running gateway notices every change.',
      'Agents and their tokens can also be written in the configuration, under [agents.NAME].',
    ],
    examples: ['toolgate agents add ci --expires 30d'],
    options: ['expires', 'grace', 'description', 'task', 'json', 'config'],
    texts: { task: 'bind it to this task: a TOML, YAML or JSON file, or a text that describes it' },
    names: { rotate: ['agent', '…'], revoke: ['agent', '…'] },
    load: async () => (await import('./agents.ts')).agents,
  },
  dashboard: {
    usage: 'toolgate dashboard [open|tokens|add|rotate|revoke] [NAME]',
    summary: 'open the page of the gateway that runs: what it serves, what is called, what waits for a decision',
    details: [
      'open prints a link that lets one browser in, once, within 5 minutes. It asks the gateway that toolgate serve runs with this configuration or, with --url, one elsewhere.',
      'add prints an admin token and nothing else: a person who has it can enter it in the page, and use its API. A session ends when its token is revoked.',
      'http.dashboard = false in the configuration switches the page off.',
    ],
    examples: ['toolgate dashboard', 'toolgate dashboard add ann --expires 30d'],
    options: ['no-browser', 'yes', 'expires', 'grace', 'description', 'json', 'url', 'config'],
    load: async () => (await import('./dashboard.ts')).dashboard,
  },
  approvals: {
    usage: 'toolgate approvals [list|show|approve|deny|key] [ID …]',
    summary: 'show the calls that wait for a person, and decide on them',
    details: [
      'Covers every gateway that runs with this configuration or, with --url, one elsewhere.',
      'list shows both ends of long arguments; show prints all of one request. What the list cuts is approved with --seen.',
      'Needs the operator key: TOOLGATE_OPERATOR_KEY, or the file created in your own configuration folder.',
      'Or a key of your own (TOOLGATE_APPROVER_KEY, or the file that key creates), for people that the configuration names.',
    ],
    options: ['for', 'reason', 'seen', 'json', 'url', 'config'],
    texts: { url: 'ask the gateway at this address instead' },
    load: async () => (await import('./approvals.ts')).approvals,
  },
  secrets: {
    usage: 'toolgate secrets [list|set|edit|remove|check|keygen|rotate] [NAME]',
    summary: 'manage keys and tokens that only the servers get to see',
    details: [
      'set asks for the value without showing it; edit opens all values in $EDITOR. A running gateway notices every change.',
      'They are encrypted with the key in SECRETS_KEY, SECRETS_KEY_FILE or secrets.key_file; keygen makes one.',
      "Write ${secret:NAME} in a server's configuration; folders of tools find secrets in their environment.",
    ],
    examples: ['toolgate secrets keygen --out ~/.toolgate.key', 'toolgate secrets set GITHUB_TOKEN'],
    options: ['namespace', 'scope', 'key', 'stdin', 'yes', 'out', 'new-key-file', 'json', 'config'],
    load: async () => (await import('./secrets.ts')).secrets,
  },
  login: {
    usage: 'toolgate login [SERVER]',
    summary: 'log in to servers that ask who you are; without a name, to all that wait for it',
    details: [
      'A browser opens, and returns to this command. With --no-browser the address is printed.',
      'What you get is encrypted with the secrets and renewed by itself. A running gateway notices it at once.',
      'Most servers need no settings. If one has to know Toolgate before: the key oauth of its entry.',
    ],
    examples: [
      'toolgate login linear',
      'toolgate login --no-browser',
      'toolgate login --url https://tools.example.com',
    ],
    words: 1,
    options: ['no-browser', 'device', 'agent', 'url', 'timeout', 'json', 'trust', 'config'],
    texts: {
      url: 'open the page of the gateway at this address, with TOOLGATE_TOKEN',
      agent: 'only for calls of this agent, where credentials = "agent"',
      timeout: 'how long to wait for you (default 5m)',
    },
    load: async () => (await import('./login.ts')).login,
  },
  logout: {
    usage: 'toolgate logout [SERVER]',
    summary: 'end a login, here and at the server',
    examples: ['toolgate logout linear', 'toolgate logout --all --yes'],
    words: 1,
    options: ['all', 'agent', 'yes', 'json', 'trust', 'config'],
    texts: { all: 'end all logins', agent: 'the login of this agent' },
    load: async () => (await import('./login.ts')).logout,
  },
  registry: {
    usage: 'toolgate registry [search|install|serve] [TEXT|NAME|FOLDER]',
    summary: 'find servers in an MCP registry, and add them to the configuration',
    details: [
      'install writes the server to the configuration, with placeholders for its secrets; a running gateway starts it at once.',
      'The registry is the official one, or the one in registry.url or MCP_REGISTRY_URL.',
      'serve makes a registry of a folder with server.json files, for networks without the official one.',
    ],
    examples: [
      'toolgate registry search weather',
      'toolgate registry install io.github.owner/server --namespace weather',
    ],
    options: ['namespace', 'kind', 'input', 'host', 'port', 'json', 'config'],
    texts: {
      namespace: 'the prefix of its tools (default: the last part of its name)',
      kind: 'npm, pypi, oci or remote, if it offers several',
      port: 'the port to listen on (default 8811; 0 picks a free one)',
    },
    load: async () => (await import('./registry.ts')).registry,
  },
  call: {
    usage: 'toolgate call NAME [key=value … | JSON]',
    summary: 'call one tool and print its result',
    details: [
      'Values are read by the types that the tool declares. Give one JSON object instead of key=value if you like.',
    ],
    examples: [
      'toolgate call memory_search_nodes query=tea',
      'toolgate call files_read_file \'{"path": "README.md"}\'',
    ],
    options: ['agent', 'json', 'url', 'trust', 'config', 'log-level'],
    names: ['tool'],
    load: async () => (await import('./call.ts')).call,
  },
  macros: {
    usage: 'toolgate macros [list|run] [NAME] [key=value … | JSON]',
    summary: 'list or run the tools of the configuration that are made of other tools',
    details: [
      'run calls one, as toolgate call does; with --dry-run it prints the steps and their arguments.',
      'toolgate macro is the same.',
    ],
    options: ['dry-run', 'agent', 'json', 'url', 'trust', 'config', 'log-level'],
    names: { run: ['macro'] },
    load: async () => (await import('./macros.ts')).macros,
  },
  lock: {
    usage: 'toolgate lock [status|diff|approve] [SERVER[.NAME] …]',
    summary: 'compare what servers offer with tools.lock, which says what you approved; exit 0 same, 1 different',
    details: [
      'approve writes tools.lock next to the configuration: all servers, or those that you name. Commit it.',
      'status lists what differs (new, gone, compatible, breaking, suspicious), diff shows it line by line.',
      'The setting lock says what a gateway does: "warn" reports it, "hold" keeps what you approved and refuses to use it.',
    ],
    examples: ['toolgate lock approve', 'toolgate lock diff github.create_issue'],
    options: ['yes', 'json', 'url', 'trust', 'config', 'log-level'],
    texts: { yes: 'approve suspicious changes without asking' },
    names: { status: ['server', '…'], diff: ['server', '…'], approve: ['server', '…'] },
    load: async () => (await import('./lock.ts')).lock,
  },
  explain: {
    usage: 'toolgate explain NAME --agent NAME',
    summary: 'explain rule by rule why an agent may use something or not; exit 0 allowed, 1 denied',
    details: ['NAME is a tool, resource, template or prompt, by any of its names.'],
    examples: ['toolgate explain files_write_file --agent ci'],
    words: 1,
    options: ['agent', 'json', 'url', 'trust', 'config', 'log-level'],
    names: ['tool'],
    load: async () => (await import('./explain.ts')).explain,
  },
  policy: {
    usage: 'toolgate policy test FILE',
    summary: 'compare the policy with a table of expected decisions; exit 0 if all are as expected, else 1',
    details: [
      'FILE is TOML, YAML or JSON with tests: agent, claims, task, tool or resource or prompt, arguments, time, expect, rule.',
      'No server is started: what servers offered last counts, and otherwise the names in the table.',
    ],
    examples: ['toolgate policy test policy-tests.toml'],
    options: ['json', 'config'],
    load: async () => (await import('./policy.ts')).policy,
  },
  plan: {
    usage: 'toolgate plan --service NAME --type TYPE --description TEXT',
    summary: 'print the configuration that a task needs, by the rules for tasks',
    details: [
      'It has the servers and the tools that the task needs, each with its reason.',
      '--json prints the plan itself: the tools, and the reasons for each.',
      '--search fills what the rules leave open with tools that match the description. Read its reasons before you use it.',
    ],
    examples: ['toolgate plan --service shop --type api --description "Add an endpoint"'],
    words: 0,
    options: [
      'service',
      'type',
      'description',
      'profile',
      'task',
      'agent',
      'format',
      'name',
      'search',
      'offline',
      'json',
      'url',
      'trust',
      'config',
      'log-level',
    ],
    texts: {
      description: 'what has to be done',
      task: 'a file with service, type, description and profile, or a text to use as the description',
      agent: 'only what this agent may use',
    },
    load: async () => (await import('./plan.ts')).plan,
  },
  audit: {
    usage: 'toolgate audit [tail|query|usage|verify|seal]',
    summary: 'read the audit: calls, denials and administrative acts',
    details: [
      'tail shows the last lines, query the ones that match, usage adds them up by agent and tool, verify finds altered and missing lines.',
      'seal prints what stands for everything written so far. Keep it elsewhere: verify --against SEAL finds whether it is still there.',
    ],
    examples: ['toolgate audit tail --follow', 'toolgate audit query --agent ci --since 24h'],
    words: 1,
    options: [
      ...(['agent', 'server', 'tool', 'status', 'kind', 'since', 'until', 'limit', 'follow', 'against'] as const),
      ...(['dry-run', 'json', 'config'] as const),
    ],
    texts: { agent: 'only calls by this agent', 'dry-run': 'only calls that a dry run of the policy let pass' },
    load: async () => (await import('./audit.ts')).audit,
  },
  doctor: {
    usage: 'toolgate doctor [--fix]',
    summary: 'check the configuration and every server; exit 0 healthy, 1 warnings, 2 broken',
    details: [
      '--fix writes the new names of renamed tools into toolsets, removes pins of what is gone and left-over locks and sockets, closes files with keys to others, and sets damaged files aside. Changed files are copied to backup/ of the data folder first.',
    ],
    examples: ['toolgate doctor --config ~/tools.toml', 'toolgate doctor --fix'],
    words: 0,
    options: ['fix', 'json', 'trust', 'config', 'log-level'],
    load: async () => (await import('./doctor.ts')).doctor,
  },
  completion: {
    usage: 'toolgate completion [bash|zsh|fish]',
    summary: 'print the script that completes commands, options and names in a shell',
    details: [
      'bash: source <(toolgate completion bash), in ~/.bashrc. zsh: the same with zsh, after compinit, in ~/.zshrc.',
      'fish: toolgate completion fish > ~/.config/fish/completions/toolgate.fish',
      'Names of servers, tools and toolsets are those of the configuration in the folder where you are. No server is started.',
    ],
    options: [],
    load: loadCompletion,
  },
  schema: {
    usage: 'toolgate schema',
    summary: 'print the JSON Schema of the configuration',
    words: 0,
    options: [],
    load: async () => {
      const { configJsonSchema } = await import('../config/schema.ts');
      return async (_args, _options, io) => print(JSON.stringify(configJsonSchema(), null, 2), io);
    },
  },
} as const satisfies Record<string, Command>;

export type CommandName = keyof typeof commands;

/** Completion is a command that looks at all commands. */
async function loadCompletion(): Promise<RunCommand> {
  const { createCompletion } = await import('./completion.ts');
  return createCompletion(commands, (word) => {
    const name = commandOf(word);
    return name === null ? null : { command: commands[name], verbs: verbsOf(commands[name]) };
  });
}

export interface Invocation {
  readonly command: CommandName;
  readonly args: readonly string[];
  readonly options: Options;
}

const ALIASES: Readonly<Record<string, CommandName>> = {
  toolset: 'toolsets',
  namespace: 'namespaces',
  agent: 'agents',
  secret: 'secrets',
  macro: 'macros',
};

/** The command that a word names, also by its other name; null if there is none. */
export function commandOf(word: string): CommandName | null {
  if (Object.hasOwn(commands, word)) return word as CommandName;
  return Object.hasOwn(ALIASES, word) ? ALIASES[word]! : null;
}

/** The words of which a command takes one first, as its usage says. */
export function verbsOf({ usage }: Command): readonly string[] {
  const group = /^toolgate [\w-]+ \[([a-z-]+(?:\|[a-z-]+)+)\]/.exec(usage)?.[1];
  return group === undefined ? [] : group.split('|');
}

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
      const { type, short, multiple = false } = optionSpec(name);
      return [name, { type, multiple, ...(short !== undefined && { short }) }];
    }),
  );
  try {
    const { values, positionals } = parseArgs({
      args: argv.slice(named ? 1 : 0),
      options: config,
      allowPositionals: true,
    });
    requireFewWords(command, positionals, values as Options);
    return { command, args: positionals, options: values as Options };
  } catch (error) {
    if (error instanceof GatewayError) throw error;
    throw new GatewayError('usage', optionError(error, command, allowed));
  }
}

/** A word that nothing reads is a mistake, such as `toolgate list servers tools`. */
function requireFewWords(command: CommandName, words: readonly string[], { help, version }: Options): void {
  const { words: most = Number.POSITIVE_INFINITY }: Command = commands[command];
  const extra = words.slice(most);
  if (extra.length === 0 || help === true || version === true) return;
  throw new GatewayError(
    'usage',
    `toolgate ${command} does not take ${quotedList(extra, 'and')}. See toolgate ${command} --help.`,
  );
}

function optionError(error: unknown, command: CommandName, allowed: readonly string[]): string {
  const { code, message } = error as NodeJS.ErrnoException;
  const see = `See toolgate ${command} --help.`;
  if (code !== 'ERR_PARSE_ARGS_UNKNOWN_OPTION') return `${message}. ${see}`;
  const option = /'(-[^']*)'/.exec(message)?.[1] ?? '';
  if (command === 'add')
    return `toolgate add has no option ${option}. If it belongs to the program, write -- before the program: toolgate add NAME -- COMMAND … ${see}`;
  return `toolgate ${command} has no option ${option}.${didYouMean(option.replace(/^-+/, ''), allowed)} ${see}`;
}
