/** The manager's tools for namespaces, and the one that tells the core. */
import * as z from 'zod';
import { GatewayError } from '../../base/errors.ts';
import { createEmptyNamespace, deleteNamespace, requireName } from '../../workers/namespace-folders.ts';
import type { CoreNamespace } from '../core.ts';
import { findOwn, whileLocked } from '../managed-namespace.ts';
import {
  type ManagerContext,
  type ManagerTool,
  managerTool,
  READS,
  REMOVES,
  reporter,
  WRITES,
} from '../manager-context.ts';
import { summarizeNamespaces } from '../namespace-list.ts';
import { writeMetadata } from '../namespace-metadata.ts';

export function namespaceTools(manager: ManagerContext): ManagerTool[] {
  const listNamespaces = managerTool({
    name: 'list_namespaces',
    title: 'List namespaces',
    description: `List all available tool namespaces. Returns each namespace's name, how many tools it contains, whether it has a requirements.txt (or package.json) file, and whether all required secrets are configured. Use this as your first step to understand what is currently installed.

Namespaces that are installing, that wait for a secret or that failed are listed too: "state" and "reason" say so, "files" are their tool files, and "problems" name what is wrong, with file and line.

Returns: a list of objects, each with:
- name (string): namespace name, e.g. "github"
- tool_count (integer): number of tools
- has_requirements (boolean): whether a requirements.txt or package.json exists
- secrets_status (string): "ok" | "missing" | "placeholders" | "no_secrets_needed"
- state (string): "up", "starting", "locked" (waits for a secret), "down", "crash_loop", "empty", or "not_loaded" until reload_core() was called; "unknown" if the core does not answer`,
    inputSchema: z.strictObject({}),
    outputSchema: z.array(z.looseObject({ name: z.string() })),
    annotations: READS,
    async execute() {
      const [summaries, served] = await Promise.all([
        summarizeNamespaces(manager.config(), manager.env),
        manager.core.namespaces().catch(() => null),
      ]);
      return summaries.map(({ namespace, tools, problems, hasRequirements, secretsStatus }) => {
        const loaded = served?.find(({ name }) => name === namespace.name);
        const all = [...new Set([...problems, ...(loaded?.problems ?? [])])];
        const { description } = namespace.found.metadata;
        return {
          name: namespace.name,
          tool_count: loaded?.state === 'up' ? loaded.tool_count : tools.length,
          has_requirements: hasRequirements,
          secrets_status: secretsStatus,
          ...stateOf(served, loaded),
          files: namespace.found.parts.flatMap(({ files }) => files),
          ...(description !== '' && { description }),
          ...(all.length > 0 && { problems: all }),
        };
      });
    },
  });

  const createNamespace = managerTool({
    name: 'create_namespace',
    title: 'Create a namespace',
    description: `Create a new empty namespace. This creates a directory on the volume where you can then write tool files into. After creating a namespace, use write_tool to add tools, then reload_core to make them available. Use configure_namespace to describe it and to declare the secrets it needs.

Returns: {"created": true, "path": "/data/tools/github"}
Errors: the name already exists (the error names the existing path); the name is invalid (uppercase, dots, spaces).`,
    inputSchema: z.strictObject({
      name: z
        .string()
        .describe(
          'Namespace name. Must be lowercase, may contain hyphens. Cannot be "_system" (reserved). Examples: "github", "my-tools", "devops".',
        ),
    }),
    annotations: WRITES,
    async execute({ name }) {
      const create = () => createEmptyNamespace(manager.config().dataDir, name);
      return { created: true, path: await manager.creating(create) };
    },
  });

  const deleteNamespaceTool = managerTool({
    name: 'delete_namespace',
    title: 'Delete a namespace',
    description: `Permanently delete a namespace, all its tool files, and its installed dependencies. This cannot be undone. The namespace will disappear from the core after the next reload.

Returns: {"deleted": true, "name": "github"}
After calling: call reload_core() to update the core server.`,
    inputSchema: z.strictObject({ name: z.string().describe('Namespace to delete. Cannot be "_system".') }),
    annotations: REMOVES,
    async execute({ name }) {
      requireName(name);
      const config = manager.config();
      await findOwn(config, name);
      const isDeleted = await whileLocked(config, name, () => deleteNamespace(config.dataDir, name));
      if (!isDeleted) throw new GatewayError('usage', `There is no namespace "${name}" any more.`);
      return { deleted: true, name };
    },
  });

  const configureNamespace = managerTool({
    name: 'configure_namespace',
    title: 'Describe a namespace',
    description: `Write the tooldock.yaml of a namespace: its description, the NAMES of the secrets that its tools need, and non-secret environment variables. Keys that you leave out stay as they are; an empty value removes a key. Never put a secret value into "env": declare its name in "secrets", then call prepare_secret.

Returns: {"configured": true, "namespace": "github", "description": "...", "secrets": ["GITHUB_TOKEN"], "env": {"GITHUB_API_URL": "https://api.github.com"}}
After calling: call check_secrets(namespace), then reload_core().`,
    inputSchema: z.strictObject({
      namespace: z.string().describe('Namespace to describe. Example: "github"'),
      description: z.string().max(2_000).optional().describe('What its tools are for. Example: "GitHub API tools"'),
      version: z.string().max(100).optional().describe('Example: "1.0.0"'),
      author: z.string().max(200).optional(),
      secrets: z
        .array(z.string())
        .optional()
        .describe('NAMES of required secrets, all of them. Example: ["GITHUB_TOKEN"]'),
      env: z
        .record(z.string(), z.string())
        .optional()
        .describe('Non-secret variables, all of them. Example: {"GITHUB_API_URL": "https://api.github.com"}'),
    }),
    annotations: WRITES,
    async execute({ namespace, ...changes }) {
      const given = Object.fromEntries(Object.entries(changes).filter(([, value]) => value !== undefined));
      const { description, version, author, secrets, env } = await writeMetadata(manager.config(), namespace, given);
      return { configured: true, namespace, description, version, author, secrets, env };
    },
  });

  const reloadCore = managerTool({
    name: 'reload_core',
    title: 'Reload the core',
    description: `Signal the core server to rescan all namespaces and reload tools. Call this after any change: creating/deleting namespaces, writing/deleting tools, installing dependencies, or configuring secrets. The core will:
1) rescan namespace directories,
2) ensure each namespace environment exists,
3) sync it if the requirements changed,
4) restart only changed workers,
5) atomically swap the active tools.

The core process stays up; only namespace workers recycle as needed. Installing packages may take minutes; progress is reported.

Returns: {"reloaded": true, "namespaces": ["shared", "github"], "workers_restarted": ["github"], "deps_synced": ["github"]}. If something is wrong, "problems" lists it: files that did not load, with line, and namespaces that are down, wait for a secret or are in a crash loop. Fix each with get_tool_source and write_tool, or check_secrets, and reload again.`,
    inputSchema: z.strictObject({}),
    annotations: { ...WRITES, idempotentHint: true },
    execute: (_, context) => manager.core.reload(context.signal, reporter(context)),
  });

  return [listNamespaces, createNamespace, deleteNamespaceTool, configureNamespace, reloadCore];
}

function stateOf(served: readonly CoreNamespace[] | null, loaded: CoreNamespace | undefined) {
  if (served === null) return { state: 'unknown', reason: 'The core does not answer; see health.' };
  if (loaded === undefined) return { state: 'not_loaded', reason: 'Call reload_core().' };
  return { state: loaded.state, ...(loaded.reason !== undefined && { reason: loaded.reason }) };
}
