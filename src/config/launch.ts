/** How a server is reached: the keys of its entry that say so, and the program or address they become. */
import * as z from 'zod';
import { messageOf } from '../base/errors.ts';
import { canonicalJson, sha256 } from '../base/hash.ts';
import { fillIn, referTo } from '../secrets/reference.ts';
import type { ResolveContext } from './context.ts';
import { choice, flag, type Section, strictMap, text, textList, textMap } from './fields.ts';
import type { Isolation, Packages } from './folders.ts';
import { type OAuthChoice, oauthKey, resolveOAuth } from './oauth.ts';
import { parseCommandLine } from './shell.ts';

/** What a program in a sandbox sees in addition to the system and its own files. */
export interface Sandbox {
  readonly reads: readonly string[];
  readonly writes: readonly string[];
  readonly network: boolean;
  /** Paths of the gateway that it never sees. */
  readonly dataDir: string;
  readonly hides: readonly string[];
}

/** Which authorities a server's certificate may be from, and the certificate that we show: PEM files. */
export interface ClientTls {
  readonly ca: string | null;
  readonly pair: { readonly cert: string; readonly key: string } | null;
}

/**
 * How to reach a server. Its texts contain references to secrets, which are filled in at the start. Two servers with
 * equal launches are the same process or endpoint.
 */
export type Launch =
  | {
      readonly kind: 'stdio';
      /** The executable and its arguments, run without a shell; a shell line becomes `sh -c LINE`. */
      readonly file: string;
      readonly args: readonly string[];
      readonly env: Readonly<Record<string, string>>;
      readonly cwd: string;
      /** Variables of ours that it does not inherit, because they are credentials; absent if there are none. */
      readonly withheld?: readonly string[];
      /** Names, or patterns over names, of our variables that it inherits besides the ordinary ones; absent if there are none. */
      readonly inherits?: readonly string[];
      /** What it may use if it runs in a sandbox; absent if it does not. */
      readonly sandbox?: Sandbox;
      /** `npx` and `uvx` are started as written; absent if what they install may be started directly. */
      readonly keepsRunner?: true;
    }
  | {
      readonly kind: 'http';
      readonly url: string;
      readonly headers: Readonly<Record<string, string>>;
      /** Streamable HTTP, or HTTP+SSE of the first revision; absent if the gateway has to find out. */
      readonly transport?: 'http' | 'sse';
      /** Absent: the authorities of the system, and no certificate of our own. */
      readonly tls?: ClientTls;
      /** How to get a token; false for never. Absent: if the server asks for one. */
      readonly oauth?: Exclude<OAuthChoice, undefined>;
    }
  | {
      readonly kind: 'folder';
      /** The folder of tool files. Only those in `language` are meant. */
      readonly folder: string;
      readonly language: 'python' | 'typescript';
      readonly namespace: string;
      readonly dataDir: string;
      /** Environment variables of its tools, in addition to PATH, HOME and LANG. Secrets override the defaults. */
      readonly env: Readonly<Record<string, string>>;
      readonly defaults: Readonly<Record<string, string>>;
      /** Names of the secrets that it needs to start. */
      readonly secrets: readonly string[];
      /** Changes with the content of the folder. */
      readonly version: string;
      readonly isolation: Isolation;
      /** Absent: `registry`. */
      readonly packages?: Exclude<Packages, 'registry'>;
      /** False: it cannot reach the network. Absent: it can. */
      readonly network?: false;
      /** Bytes; null for any number. */
      readonly memory: number | null;
    }
  | {
      /** Functions of the program itself: nothing is started. */
      readonly kind: 'inline';
    };

/** `["*"]` is everything. */
export function inheritEnv() {
  return textList().describe(
    "Variables of Toolgate's own environment that servers get besides the ordinary ones: names, or patterns such as " +
      '`AWS_*`. An entry adds to the setting of the same name. Never passed on: the tokens and keys of Toolgate itself.',
  );
}

export const launchShape = {
  command: text('expected a string (arguments go in "args")')
    .min(1, { error: 'is empty. Name the program to start' })
    .optional()
    .describe(
      'Starts the server. Without `args` it is a shell line, as typed in a terminal; ' +
        'with `args`, or in `mcpServers`, it is one executable.',
    ),
  args: textList().optional().describe('Arguments of the executable `command`, passed on as they are.'),
  env: textMap(/^[^=]+$/, 'is not a name for an environment variable')
    .optional()
    .describe('Environment variables for the server, in addition to those that it inherits.'),
  inherit_env: inheritEnv().optional(),
  cwd: text()
    .optional()
    .describe('Working directory of the server, relative to the folder of this file. Default: that folder.'),
  sandbox: z
    .union(
      [
        flag(),
        strictMap({
          read: textList()
            .optional()
            .describe('Files and folders that it may read, relative to the folder of this file.'),
          write: textList().optional().describe('Files and folders that it may also write.'),
          network: flag().optional().describe('`false` keeps it from the network.'),
        }),
      ],
      { error: 'expected true, or a map with "read", "write" and "network"' },
    )
    .optional()
    .describe(
      'Runs `command` in a sandbox (bubblewrap): it sees the programs of the system, its own files, what `read` and `write` list, ' +
        'and the variables in `env`. What it starts ends with it.',
    ),
  url: text().optional().describe('URL of a server that is reached over HTTP, instead of `command`.'),
  folder: text()
    .min(1, { error: 'is empty. Name the folder of tool files' })
    .optional()
    .describe(
      'A folder of TypeScript or Python tool files, relative to the folder of this file, instead of `command`.',
    ),
  headers: textMap(/^[\w!#$%&'*+.^`|~-]+$/, 'is not a name for an HTTP header')
    .optional()
    .describe('HTTP headers sent with every request to `url`, for example `Authorization = "Bearer ${TOKEN}"`.'),
  tls: strictMap({
    ca: text()
      .optional()
      .describe('Authorities that the certificate of the server may be from, and no others: a PEM file.'),
    cert: text().optional().describe('The certificate that Toolgate shows to the server: a PEM file.'),
    key: text().optional().describe('The private key of `cert`: a PEM file without a passphrase.'),
  })
    .optional()
    .describe(
      'For a `url` with https: `ca`, `cert` and `key`, relative to the folder of this file. They are read again when they change.',
    ),
  oauth: oauthKey,
  transport: choice(['stdio', 'http', 'sse'])
    .optional()
    .describe(
      'How to talk to the server. Default: `stdio` with `command`, `http` with `url`. ' +
        '`sse` is HTTP+SSE of the first revision, which `http` falls back to by itself.',
    ),
};

type LaunchSection = Section<typeof launchShape>;

/**
 * The launch of a server with `command` or `url`; null if there is nothing to start, with an issue that says why.
 * With `isShellLine`, `command` without `args` is a line as typed in a terminal.
 */
export function resolveLaunch(server: LaunchSection, isShellLine: boolean, context: ResolveContext): Launch | null {
  return server.url === null
    ? resolveProgram(server, isShellLine, context)
    : resolveAddress(server, server.url, context);
}

function resolveProgram(server: LaunchSection, isShellLine: boolean, context: ResolveContext): Launch | null {
  const { add, textWithSecrets } = context;
  const command = server.command ?? '';
  const env = expandMap('env', server.env, context);
  const cwd = server.cwd === null ? context.folder : context.path(['cwd'], server.cwd);
  if (isShellLine && server.args === null) {
    try {
      // The shell expands the variables: a value inserted here would become code if it contained a `;`.
      const { line, variables } = secretsAsVariables(command);
      const program = parseCommandLine(line);
      // What the shell expands is as good as declared.
      const named = program.args.at(-1)?.includes(line) ? shellVariables(line) : [];
      const inherits = [...(server.inheritEnv ?? []), ...named.filter((name) => !(name in variables))];
      return {
        kind: 'stdio',
        ...program,
        env: { ...env, ...variables },
        cwd,
        ...(inherits.length > 0 && { inherits }),
      };
    } catch (error) {
      add(['command'], messageOf(error));
      return null;
    }
  }
  const file = textWithSecrets(['command'], command);
  const args = (server.args ?? []).map((arg, i) => textWithSecrets(['args', i], arg));
  if (file === '') add(['command'], 'is empty once its variables are expanded. Name the program to start');
  const inherits = server.inheritEnv ?? [];
  return { kind: 'stdio', file, args, env, cwd, ...(inherits.length > 0 && { inherits }) };
}

/** The variables that a shell line mentions. */
function shellVariables(line: string): string[] {
  return [...new Set([...line.matchAll(/\$\{?([A-Za-z_]\w*)/g)].map((match) => match[1]!))];
}

/** Null if the entry asks for none. */
export function resolveSandbox(
  { sandbox }: LaunchSection,
  own: Pick<Sandbox, 'dataDir' | 'hides'>,
  context: ResolveContext,
): Sandbox | null {
  if (sandbox === null || sandbox === false) return null;
  const { read = [], write = [], network = true } = sandbox === true ? {} : sandbox;
  const paths = (key: string, written: readonly string[]) =>
    written.map((path, i) => context.path(['sandbox', key, i], path));
  return { reads: paths('read', read), writes: paths('write', write), network, ...own };
}

/** Replaces secrets in a shell line by variables, so that their values never become code. */
function secretsAsVariables(command: string): { line: string; variables: Record<string, string> } {
  const variables: Record<string, string> = {};
  const line = command.replace(/\$\{secret:([A-Za-z_]\w*)\}/g, (_, name: string) => {
    variables[SECRET_VARIABLE + name] = referTo(name);
    return `\${${SECRET_VARIABLE}${name}}`;
  });
  return { line, variables };
}

/** The variable that holds a secret in a shell line begins like this. */
export const SECRET_VARIABLE = 'TOOLGATE_SECRET_';

function resolveAddress(
  { headers: written, transport, tls, oauth: token }: LaunchSection,
  address: string,
  context: ResolveContext,
): Launch {
  const { issues, add } = context;
  const url = context.textWithSecrets(['url'], address);
  const headers = expandMap('headers', written, context);
  // A URL that begins with a secret can be checked only when the secret is known.
  const beginsWithSecret = url.startsWith(referTo('')[0]!);
  if (issues.length === 0 && !beginsWithSecret && !isHttpUrl(fillIn(url, () => 'x')))
    add(['url'], 'is not an address that begins with http:// or https://');
  for (const [name, value] of Object.entries(headers)) {
    if (!isHeaderValue(fillIn(value, () => '')))
      add(['headers', name], 'contains a character that HTTP headers cannot have, such as a line break');
  }
  const oauth = resolveOAuth(token, context);
  if (oauth && Object.keys(headers).some((name) => /^authorization$/i.test(name)))
    add(['oauth'], 'cannot be combined with the header "Authorization". Keep one of the two');
  return {
    kind: 'http',
    url,
    headers,
    ...(oauth !== undefined && { oauth }),
    ...(transport === 'sse' && { transport }),
    ...(tls !== null && { tls: resolveClientTls(tls, url, context) }),
  };
}

function resolveClientTls(
  { ca, cert, key }: NonNullable<LaunchSection['tls']>,
  url: string,
  { path, add }: ResolveContext,
): ClientTls {
  if (/^http:/i.test(url)) add(['tls'], 'has no effect with http://. Use https://, or leave it out');
  if ((cert === undefined) !== (key === undefined)) add(['tls'], 'needs "cert" and "key" together, or neither of them');
  return {
    ca: ca === undefined ? null : path(['tls', 'ca'], ca),
    pair:
      cert === undefined || key === undefined
        ? null
        : { cert: path(['tls', 'cert'], cert), key: path(['tls', 'key'], key) },
  };
}

/** Expands a map of texts that may refer to secrets; `key` is the key of the map. */
export function expandMap(
  key: string,
  written: Readonly<Record<string, string>> | null,
  { textWithSecrets }: ResolveContext,
): Record<string, string> {
  return Object.fromEntries(
    Object.entries(written ?? {}).map(([name, one]) => [name, textWithSecrets([key, name], one)]),
  );
}

/** The same for equal launches, in any order of their variables. */
export function launchHash(launch: Launch & { readonly share?: 'session' }): string {
  return sha256(canonicalJson(launch)).slice(0, 32);
}

export function isHttpUrl(text: string): boolean {
  return URL.canParse(text) && /^https?:$/.test(new URL(text).protocol);
}

export function isHeaderValue(text: string): boolean {
  return [...text].every((char) => char === '\t' || (char >= ' ' && char !== '\x7f' && char <= '\xff'));
}
