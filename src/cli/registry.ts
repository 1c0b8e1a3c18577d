/** `toolgate registry`: servers of an MCP registry become servers of the configuration. */
import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import { GatewayError } from '../base/errors.ts';
import { loadConfig } from '../config/load.ts';
import { type InstallResult, installFromRegistry, searchRegistry } from '../manager/installer/install.ts';
import { serveRegistry } from '../manager/installer/local-registry.ts';
import type { ServerKind } from '../manager/installer/to-server.ts';
import { onlyName, readPort, withVerbs } from './arguments.ts';
import type { CommandIo } from './command-io.ts';
import { loadOptions, type Options } from './options.ts';
import { brief, columns, paint, plain, print, printResult, table, untilSignal, warn } from './terminal.ts';
import { trustServers } from './trust.ts';

export const registry = withVerbs('registry', { search, install, serve });

const KINDS: readonly ServerKind[] = ['npm', 'pypi', 'oci', 'remote'];
const PORT = 8811;

async function search(args: readonly string[], options: Options, io: CommandIo): Promise<number> {
  const query = args.join(' ');
  const found = await searchRegistry(query, await loadConfig(loadOptions(options, io)), work(io));
  const rows = found.map((one) => [
    paint('bold', plain(one.name), io),
    plain(one.version),
    plain(one.package_type),
    brief(one.description, Math.max(20, columns(io) - 60)),
  ]);
  return printResult(
    options,
    found,
    found.length === 0 ? `The registry has nothing for "${plain(query)}".` : table(rows),
    io,
  );
}

async function install(args: readonly string[], options: Options, io: CommandIo): Promise<number> {
  const name = onlyName(args, 'toolgate registry install io.github.owner/server');
  const { kind, namespace = defaultNamespace(name) } = options;
  if (kind !== undefined && !KINDS.includes(kind as ServerKind))
    throw new GatewayError('usage', `--kind is ${KINDS.join(', ')}, not "${kind}".`);
  const config = await loadConfig(loadOptions(options, io));
  const request = {
    package: name,
    namespace,
    mode: 'attach' as const,
    inputs: readInputs(options.input ?? []),
    kind: (kind as ServerKind | undefined) ?? null,
    version: null,
  };
  const result = (await installFromRegistry(request, config, work(io), trustServers([namespace], io))) as InstallResult;
  if (!result.installed) {
    const lines = result.inputs.map(({ name: input, description, choices }) =>
      plain(`  --input ${input}=…  ${description}${choices === undefined ? '' : ` (${choices.join(', ')})`}`),
    );
    printResult(options, result, `It needs more. Nothing was written.\n${lines.join('\n')}`, io);
    return 1;
  }
  const secrets = result.secrets_needed.map(
    (one) => `Set its secret: toolgate secrets set ${one} --namespace ${namespace}`,
  );
  const lines = [
    `Added "${namespace}" to ${result.file}: ${result.name} ${result.version}.`,
    ...result.notes,
    ...secrets,
  ];
  return printResult(options, result, plain(lines.join('\n')), io);
}

/** `io.github.owner/files-mcp` becomes `files-mcp`. */
function defaultNamespace(name: string): string {
  const last = name.split('/').at(-1) ?? name;
  return last
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+|-+$/g, '')
    .slice(0, 64);
}

function readInputs(given: readonly string[]): Record<string, string> {
  const pairs = given.map((one): [string, string] => {
    const at = one.indexOf('=');
    if (at < 1) throw new GatewayError('usage', `--input is NAME=VALUE, such as --input region=eu.`);
    return [one.slice(0, at), one.slice(at + 1)];
  });
  return Object.fromEntries(pairs);
}

async function serve(args: readonly string[], options: Options, io: CommandIo): Promise<number> {
  const folder = resolve(io.cwd(), onlyName(args, 'toolgate registry serve ./servers'));
  if (!statSync(folder, { throwIfNoEntry: false })?.isDirectory())
    throw new GatewayError('usage', `There is no folder ${folder}. Make it, and put server.json files into it.`);
  const stop = untilSignal(io);
  const local = await serveRegistry(folder, {
    host: options.host ?? '127.0.0.1',
    port: options.port === undefined ? PORT : readPort(options.port),
    problem: (message) => warn(message, io),
  });
  print(`MCP registry at ${local.url}; use it with MCP_REGISTRY_URL=${local.url}\nServing: ${folder}`, io);
  await stop;
  await local.close();
  return 0;
}

function work(io: CommandIo) {
  return { env: io.env, signal: null, progress: () => {} };
}
