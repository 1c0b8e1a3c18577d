/**
 * From an entry of the registry to a server of the configuration. The entry comes from a stranger: nothing of it goes
 * through a shell, names and versions are checked, options that would open this machine are refused, and variables of
 * this machine cannot be read.
 */
import { GatewayError } from '../../base/errors.ts';
import { isPrivateAddress, publicAddresses } from '../../base/private-address.ts';
import type { WrittenServer } from '../../config/edit-servers.ts';
import { nameProblem } from '../../secrets/secret-names.ts';
import { NPM_NAME, PYPI_NAME, VERSION } from '../builder/packages.ts';
import type {
  KeyedInput,
  ServerArgument,
  ServerInput,
  ServerJson,
  ServerPackage,
  ServerTransport,
} from './server-json.ts';

/** How a server can be reached. */
export type ServerKind = 'npm' | 'pypi' | 'oci' | 'remote';

/** Something that has to be given before the server can be written. */
export interface MissingInput {
  readonly name: string;
  readonly description: string;
  readonly choices?: readonly string[];
}

export interface Conversion {
  readonly server: WrittenServer;
  readonly kind: ServerKind;
  /** Secrets that the server refers to. */
  readonly secrets: readonly string[];
  readonly missing: readonly MissingInput[];
}

export interface ConversionOptions {
  readonly namespace: string;
  /** The kind to take if the entry has several. */
  readonly kind: ServerKind | null;
  /** Values by name. Never of secrets. */
  readonly inputs: Readonly<Record<string, string>>;
  readonly allowPrivate: boolean;
}

const RUNNERS = ['npm', 'pypi', 'oci'] as const;
/** The registries that packages are taken from. */
export const OFFICIAL: Readonly<Record<(typeof RUNNERS)[number], RegExp>> = {
  npm: /^https:\/\/registry\.npmjs\.org\/?$/,
  pypi: /^https:\/\/pypi\.org\/?(?:simple\/?)?$/,
  oci: /./,
};
const IMAGE =
  /^[a-z0-9][a-z0-9._-]*(?::\d+)?(?:\/[a-z0-9][a-z0-9._-]*)*(?::[\w][\w.-]{0,127})?(?:@sha256:[0-9a-f]{64})?$/i;
const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]*$/;
const HEADER = /^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/;

export async function toServer(entry: ServerJson, options: ConversionOptions): Promise<Conversion> {
  const { found, kind } = choose(entry, options.kind);
  const inputs = collectInputs(entry.name, options);
  const common = {
    namespace: options.namespace,
    ...(entry.description === '' ? {} : { description: safe(entry.name, entry.description) }),
  };
  const server =
    kind === 'remote'
      ? await remoteServer(found as ServerTransport, entry.name, options, inputs)
      : packageServer(found as ServerPackage, kind, entry.name, inputs);
  inputs.requireKnown();
  return { server: { ...common, ...server }, kind, secrets: [...inputs.secrets], missing: inputs.missing };
}

/** What the entry offers that can be used here. */
function choose(
  entry: ServerJson,
  wanted: ServerKind | null,
): { found: ServerPackage | ServerTransport; kind: ServerKind } {
  const packages = RUNNERS.flatMap((kind) =>
    (entry.packages ?? [])
      .filter(({ registryType, transport }) => registryType === kind && (transport?.type ?? 'stdio') === 'stdio')
      .slice(0, 1)
      .map((found) => ({ found, kind: kind as ServerKind })),
  );
  const remotes = (entry.remotes ?? [])
    .filter(({ type, url }) => url !== undefined && (type === 'streamable-http' || type === 'sse'))
    .toSorted((a, b) => Number(a.type === 'sse') - Number(b.type === 'sse'))
    .map((found) => ({ found, kind: 'remote' as const }));
  const all = [...packages, ...remotes];
  const chosen = wanted === null ? all[0] : all.find(({ kind }) => kind === wanted);
  if (chosen !== undefined) return chosen;
  const offered = [
    ...new Set([
      ...(entry.packages ?? []).map((one) => one.registryType),
      ...(entry.remotes ?? []).map((one) => one.type),
    ]),
  ];
  throw new GatewayError(
    'usage',
    `"${entry.name}" cannot be installed ${wanted === null ? 'here' : `as ${wanted}`}: it offers ${offered.join(', ') || 'no package'}. Toolgate runs npm, pypi and oci packages over stdio, and connects to remotes over streamable-http and sse.`,
  );
}

interface Inputs {
  readonly secrets: Set<string>;
  readonly missing: MissingInput[];
  /** The text for an input; null if there is none and none is needed. */
  value(input: ServerInput & { variables?: Record<string, ServerInput> | undefined }, name: string): string | null;
  /** Replaces `{name}` by variables. */
  fill(text: string, variables: Record<string, ServerInput> | undefined): string | null;
  requireKnown(): void;
}

function collectInputs(entry: string, { inputs, namespace }: ConversionOptions): Inputs {
  const secrets = new Set<string>();
  const missing: MissingInput[] = [];
  const used = new Set<string>();
  const lacks = (name: string, input: ServerInput) => {
    const { description = '', choices } = input;
    if (!missing.some((one) => one.name === name)) missing.push({ name, description, ...(choices && { choices }) });
    return null;
  };
  const given = (name: string, input: ServerInput): string | null => {
    if (!Object.hasOwn(inputs, name)) return null;
    used.add(name);
    const value = inputs[name]!;
    if (input.isSecret)
      throw new GatewayError(
        'usage',
        `"${name}" is a secret. Leave it out: a person sets it afterwards with toolgate secrets set.`,
      );
    if (input.choices !== undefined && !input.choices.includes(value))
      throw new GatewayError('usage', `"${name}" is one of ${input.choices.join(', ')}.`);
    if (input.format === 'number' && !/^-?\d+(?:\.\d+)?$/.test(value))
      throw new GatewayError('usage', `"${name}" is a number.`);
    if (input.format === 'boolean' && value !== 'true' && value !== 'false')
      throw new GatewayError('usage', `"${name}" is true or false.`);
    return safe(entry, value);
  };
  const fill: Inputs['fill'] = (text, variables) => {
    let isWhole = true;
    const filled = safe(entry, text).replace(/\{([^{}]+)\}/g, (whole, name: string) => {
      const input = variables?.[name];
      // The specification: what is not a variable stays as it is.
      if (input === undefined) return whole;
      const value = single(input, name);
      if (value === null) isWhole = false;
      return value ?? '';
    });
    return isWhole ? filled : null;
  };
  const single = (input: ServerInput, name: string): string | null => {
    if (input.isSecret) {
      given(name, input);
      const secret = secretName(name, namespace);
      secrets.add(secret);
      return `\${secret:${secret}}`;
    }
    const value = given(name, input) ?? input.value ?? input.default ?? null;
    if (value === null) return input.isRequired ? lacks(name, input) : null;
    return safe(entry, value);
  };
  const value: Inputs['value'] = (input, name) => {
    if (input.value !== undefined) return fill(input.value, input.variables);
    // A secret that is not required is left out: a server with a secret that is not set would not start.
    if (input.isSecret && !input.isRequired && input.default === undefined) return null;
    return single(input, name);
  };
  const requireKnown = () => {
    const unknown = Object.keys(inputs).filter((name) => !used.has(name));
    if (unknown.length > 0)
      throw new GatewayError(
        'usage',
        `"${entry}" has no input ${unknown.map((one) => JSON.stringify(one)).join(', ')}.`,
      );
  };
  return { secrets, missing, value, fill, requireKnown };
}

/** Variables in braces after a dollar would be filled in from this machine. */
function safe(entry: string, text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: those are what is refused.
  if (text.includes('${') || /[\u0000-\u0008\u000a-\u001f\u007f]/.test(text))
    throw new GatewayError(
      'usage',
      `"${entry}" has a value with "\${" or control characters, so it cannot be installed.`,
    );
  return text;
}

function secretName(name: string, namespace: string): string {
  const plain = name.replace(/[^A-Za-z0-9]+/g, '_').toUpperCase();
  const own = `${namespace.replace(/[^A-Za-z0-9]+/g, '_').toUpperCase()}_${plain}`;
  // A name such as "token" says nothing among the secrets of other servers.
  return nameProblem(plain) === null && plain.includes('_') ? plain : own;
}

function packageServer(
  found: ServerPackage,
  kind: Exclude<ServerKind, 'remote'>,
  entry: string,
  inputs: Inputs,
): Pick<WrittenServer, 'command' | 'args' | 'env'> {
  const refuse = (why: string): never => {
    throw new GatewayError('usage', `"${entry}" cannot be installed: ${why}.`);
  };
  if (found.registryBaseUrl !== undefined && !OFFICIAL[kind].test(found.registryBaseUrl))
    return refuse(`its package is in another registry, ${found.registryBaseUrl}. Write its entry yourself`);
  const version = found.version ?? '';
  if (version !== '' && !VERSION.test(version)) return refuse(`${JSON.stringify(version)} is not one version`);
  const env: Record<string, string> = {};
  for (const variable of found.environmentVariables ?? []) {
    if (!VARIABLE.test(variable.name)) return refuse(`${JSON.stringify(variable.name)} is not the name of a variable`);
    const value = inputs.value(variable, variable.name);
    if (value !== null) env[variable.name] = value;
  }
  const own = argumentsOf(found.packageArguments ?? [], inputs);
  const withEnv = Object.keys(env).length > 0 ? { env } : {};
  switch (kind) {
    case 'npm': {
      if (found.identifier.length > 214 || !NPM_NAME.test(found.identifier))
        return refuse('the name of its package is not valid');
      requirePlain(found, ['-y', '--yes'], refuse);
      return {
        command: 'npx',
        args: ['-y', `${found.identifier}${version === '' ? '' : `@${version}`}`, ...own],
        ...withEnv,
      };
    }
    case 'pypi': {
      if (!PYPI_NAME.test(found.identifier)) return refuse('the name of its package is not valid');
      requirePlain(found, [], refuse);
      return {
        command: 'uvx',
        args: [`${found.identifier}${version === '' ? '' : `==${version}`}`, ...own],
        ...withEnv,
      };
    }
    case 'oci':
      return dockerServer(found, entry, env, own, inputs, refuse);
  }
  kind satisfies never;
}

/** Options of the package runner itself could install something else than the package. */
function requirePlain(found: ServerPackage, allowed: readonly string[], refuse: (why: string) => never): void {
  for (const { name, value } of found.runtimeArguments ?? []) {
    const option = name ?? value ?? '';
    if (!allowed.includes(option))
      refuse(`it starts its package with the option ${JSON.stringify(option)}. Write its entry yourself`);
  }
}

/** Options of docker that open nothing of this machine, apart from folders that the user names. */
const DOCKER_FLAGS = /^(?:run|-i|--interactive|--rm|--init|-i=true|--rm=true)$/;
const MOUNTS = ['-v', '--volume', '--mount'];

function dockerServer(
  found: ServerPackage,
  entry: string,
  env: Record<string, string>,
  own: readonly string[],
  inputs: Inputs,
  refuse: (why: string) => never,
): Pick<WrittenServer, 'command' | 'args' | 'env'> {
  const named = found.identifier.replace(/^docker\.io\//, '');
  const image =
    found.version === undefined || /[:@][^/]*$/.test(named) ? found.identifier : `${found.identifier}:${found.version}`;
  if (!IMAGE.test(image)) refuse('the name of its image is not valid');
  const options: string[] = [];
  for (const argument of found.runtimeArguments ?? []) {
    const option = argument.name ?? argument.value ?? '';
    if (DOCKER_FLAGS.test(option) || option === found.identifier || option === image) continue;
    if (option === '-e' || option === '--env') {
      // `-e KEY={secret}` would show the secret in the list of processes. In the environment it does not.
      const [, key = '', rest] = /^([A-Za-z_]\w*)(?:=(.*))?$/s.exec(argument.value ?? '') ?? [];
      if (key === '') return refuse(`${JSON.stringify(argument.value ?? '')} is not a variable`);
      const value = rest === undefined ? null : inputs.fill(rest, argument.variables);
      if (value !== null) env[key] = value;
    } else if (MOUNTS.includes(option) && Object.keys(argument.variables ?? {}).length > 0) {
      const value = inputs.value(argument, argument.valueHint ?? option);
      if (value === null) continue;
      if (/docker\.sock|(?:^|=|,)\/(?::|,|$)/.test(value)) return refuse('it would see all of this machine');
      options.push(option, value);
    } else return refuse(`it starts its container with the option ${JSON.stringify(option)}. Write its entry yourself`);
  }
  const variables = Object.keys(env).flatMap((key) => ['-e', key]);
  return {
    command: 'docker',
    args: ['run', '-i', '--rm', ...variables, ...options, safe(entry, image), ...own],
    ...(Object.keys(env).length > 0 && { env }),
  };
}

function argumentsOf(args: readonly ServerArgument[], inputs: Inputs): string[] {
  return args.flatMap((argument) => {
    const name = argument.valueHint ?? argument.name?.replace(/^-+/, '') ?? 'argument';
    const value = inputs.value(argument, name);
    if (argument.type === 'positional') return value === null ? [] : [value];
    const flag = argument.name ?? '';
    if (value === null) return [];
    if (argument.format === 'boolean') return value === 'true' ? [flag] : [];
    return flag.startsWith('--') ? [`${flag}=${value}`] : [flag, value];
  });
}

async function remoteServer(
  found: ServerTransport,
  entry: string,
  { allowPrivate }: ConversionOptions,
  inputs: Inputs,
): Promise<Pick<WrittenServer, 'url' | 'transport' | 'headers'>> {
  const url = inputs.fill(found.url ?? '', found.variables);
  const headers: Record<string, string> = {};
  for (const header of (found.headers ?? []) as KeyedInput[]) {
    if (!HEADER.test(header.name)) throw new GatewayError('usage', `"${entry}" has a header whose name is not valid.`);
    const value = inputs.value(header, header.name);
    if (value !== null) headers[header.name] = value;
  }
  // Checked once everything is known.
  if (url !== null && inputs.missing.length === 0) await requireAddress(url, entry, allowPrivate);
  return {
    url: url ?? '',
    transport: found.type === 'sse' ? 'sse' : 'http',
    ...(Object.keys(headers).length > 0 && { headers }),
  };
}

async function requireAddress(url: string, entry: string, allowPrivate: boolean): Promise<void> {
  const parsed = URL.canParse(url) ? new URL(url) : null;
  if (parsed === null || !/^https?:$/.test(parsed.protocol) || parsed.username !== '')
    throw new GatewayError(
      'usage',
      `"${entry}" has an address that is not valid: ${JSON.stringify(url.slice(0, 200))}.`,
    );
  if (allowPrivate) return;
  const remedy = 'Set registry.allow_private = true if servers of your own network may be installed.';
  if (parsed.protocol !== 'https:') throw new GatewayError('usage', `"${entry}" is not at an https address. ${remedy}`);
  const host = parsed.hostname.replace(/^\[(.*)\]$/, '$1');
  // A name that is unknown here may be known where the gateway runs, and it is checked there by TLS.
  const addresses = await publicAddresses(host, remedy).catch((error: GatewayError) => {
    if (error.message.includes('is not known')) return [];
    throw error;
  });
  if (addresses.some(isPrivateAddress))
    throw new GatewayError('usage', `"${entry}" leads to a private address. ${remedy}`);
}
