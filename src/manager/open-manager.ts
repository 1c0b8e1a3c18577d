/**
 * The manager: a gateway whose only tools are those that manage folders of tools. It has the doors, the credentials, the
 * policy, the approvals and the audit of every gateway. Policies know its tools as those of the server `_system`.
 */
import { join } from 'node:path';
import { removeTemporaries } from '../base/files.ts';
import { localOrigin } from '../base/loopback.ts';
import { IDENTITY } from '../base/version.ts';
import type { Config } from '../config/config.ts';
import type { EnvVars } from '../config/expand.ts';
import { NO_PINS } from '../config/pins.ts';
import { createGateway, type Gateway } from '../gateway/gateway.ts';
import type { GatewayOptions, Host } from '../gateway/root.ts';
import { inlineConfig } from '../sources/inline.ts';
import { readTool } from '../tools/read-tool.ts';
import { removeLeftNamespaces } from '../workers/namespace-folders.ts';
import { scanNamespaces } from '../workers/namespaces.ts';
import { type Core, openCore } from './core.ts';
import type { ManagerContext, ManagerTool } from './manager-context.ts';
import { testTool } from './run-tool.ts';
import { builderTools } from './tools/builder.ts';
import { dependencyTools } from './tools/dependencies.ts';
import { installerTools } from './tools/installer.ts';
import { introspectionTools } from './tools/introspection.ts';
import { namespaceTools } from './tools/namespaces.ts';
import { secretTools } from './tools/secrets.ts';
import { toolFileTools } from './tools/tool-files.ts';

export interface ManagerOptions {
  readonly env: EnvVars;
  readonly logLevel: string;
  /** The token that it shows to the core; null if it has none. */
  readonly coreToken: string | null;
  /** Creates a namespace. */
  creating<T>(create: () => Promise<T>): Promise<T>;
  /** What a person has to do before servers that are added to the configuration run; null if nothing. */
  readonly trustAdvice: string | null;
  readonly gateway: Omit<GatewayOptions, 'host' | 'folders' | 'env'>;
}

export interface Manager {
  readonly gateway: Gateway;
  readonly core: Core;
  /** It listens on this port now. */
  listens(port: number): void;
  /** The configuration of its gateway, made from one that was read again. */
  adjust(config: Config): Config;
  close(): Promise<void>;
}

/** The name of its server in policies. It cannot be the name of a namespace. */
export const SERVER = '_system';
/** An installation may take long without a word. */
const TIMEOUT = 30 * 60_000;

const INSTRUCTIONS = `These tools manage namespaces: folders of Python or TypeScript tools that the core serves. Start with list_namespaces.

To write a tool: create_namespace, write_tool, reload_core, test_tool. If something fails, read "error", "details", "problems" and "traceback", correct the code with get_tool_source and write_tool, and reload again.

To translate a repository: analyze_repo lists the ten steps.

To make tools of an API with an OpenAPI document: install_from_openapi, then reload_core.

To use a package: add_requirement, then reload_core.

To use a secret: declare its name with configure_namespace, call check_secrets, call prepare_secret for each missing one, tell the user to run the command in its "instructions", wait until the user has done so, then call reload_core and check_secrets. Never ask for the value of a secret, and never accept one.`;

export async function openManager(config: Config, options: ManagerOptions): Promise<Manager> {
  const { env } = options;
  const core = await openCore({
    url: config.manager.coreUrl ?? localOrigin(config.http.host, config.http.port, config.http.tls !== null),
    token: options.coreToken,
    ca: config.manager.coreCa,
    cert: config.http.tls?.cert ?? null,
    managerToken: config.http.manager.token(),
  });
  void removeLeftNamespaces(config.dataDir).catch(() => {});
  void removeDrafts(config).catch(() => {});
  const host: Host = {
    identity: { ...IDENTITY, name: `${IDENTITY.name}-manager` },
    instructions: INSTRUCTIONS,
    naming: { names: 'join', nameLimit: null },
    control: null,
    joined: () => sets.of([id]),
    left() {},
  };
  const gateway = createGateway(managerConfig(config), { ...options.gateway, env, host });
  const sets = gateway.sets!;
  let port = config.manager.port;
  // Its gateway serves none of the folders that the file names, but they are managed.
  let managed = config;
  const tools = managerTools({
    config: () => managed,
    env,
    core,
    port: () => port,
    logLevel: options.logLevel,
    creating: options.creating,
    trustAdvice: options.trustAdvice,
    async test(run) {
      // A secret may have been set a moment ago.
      await gateway.vault.reload();
      return testTool({ ...managed, policy: gateway.config.policy }, sets, run);
    },
  });
  const items = await Promise.all(tools.map((tool) => readTool(tool, tool.name, '')));
  const id = sets.open(inlineConfig(SERVER, '', 'Manages folders of tools.', TIMEOUT), items);
  return {
    gateway,
    core,
    listens(at) {
      port = at;
    },
    adjust(read) {
      managed = read;
      return managerConfig(read);
    },
    async close() {
      await gateway.close();
      await core.close();
    },
  };
}

/** All tools, in the order in which they are listed. */
export function managerTools(context: ManagerContext): ManagerTool[] {
  return [
    ...namespaceTools(context),
    ...toolFileTools(context),
    ...dependencyTools(context),
    ...secretTools(context),
    ...builderTools(context),
    ...installerTools(context),
    ...introspectionTools(context),
  ];
}

/** The same credentials, policy, limits and audit, but none of the servers. */
function managerConfig(config: Config): Config {
  return {
    ...config,
    servers: [],
    broken: [],
    activeToolsets: null,
    controls: [],
    toolsets: [],
    macros: [],
    // Its tools change with Toolgate only.
    pins: NO_PINS,
    folders: { ...config.folders, named: [] },
    http: {
      ...config.http,
      port: config.manager.port,
      requireNamespace: false,
      mcpo: false,
      dashboard: false,
      publicUrl: config.manager.publicUrl,
      manager: { token: () => null, networks: [] },
    },
  };
}

/** What a manager that was killed while it wrote left behind. */
async function removeDrafts({ dataDir }: Config): Promise<void> {
  const { namespaces } = await scanNamespaces(dataDir);
  await removeTemporaries(namespaces.flatMap(({ folder }) => [folder, join(folder, '.history')]));
}
