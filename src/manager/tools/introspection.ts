/** The manager's tools that run a tool once, and that show how manager and core are. */
import * as z from 'zod';
import { IDENTITY } from '../../base/version.ts';
import { findPython } from '../../workers/python-interpreter.ts';
import { type ManagerContext, type ManagerTool, managerTool, READS, reporter } from '../manager-context.ts';

const HOUR = 3_600_000;

export function introspectionTools(manager: ManagerContext): ManagerTool[] {
  const startedAt = Date.now();
  return [
    managerTool({
      name: 'test_tool',
      title: 'Test a tool',
      description: `Execute a single tool with test input and return the result. Use this to verify that a translated tool works correctly. The tool runs in a process of its own, in the sandbox of the core's workers, with its namespace's secrets and dependencies. It really does what it does: a tool that deletes something deletes it.

If the tool fails, the error message and traceback are returned so you can fix the translation.

Returns on success: {"success": true, "result": {...tool output...}}
Returns on error: {"success": false, "error": "KeyError: 'GITHUB_TOKEN'", "traceback": "Traceback (most recent call last):\\n  ..."}`,
      inputSchema: z.strictObject({
        namespace: z.string().describe('Namespace the tool is in.'),
        tool_name: z.string().describe('Name of the tool to test. Example: "list_issues"'),
        input: z
          .record(z.string(), z.unknown())
          .describe(
            'Input arguments as a JSON object. Example: {"owner": "anthropics", "repo": "claude-code", "state": "open"}',
          ),
      }),
      annotations: { readOnlyHint: false, destructiveHint: true, openWorldHint: true },
      execute: ({ namespace, tool_name: tool, input }, context) =>
        manager.test({
          namespace,
          tool,
          input,
          agent: context.agent ?? 'default',
          signal: context.signal,
          progress: reporter(context),
        }),
    }),
    managerTool({
      name: 'health',
      title: 'Health',
      description: `Check the health of both the manager and the core server. Returns uptime, Python version, and connectivity status.

Returns: {"manager_uptime": "2h 15m", "core_reachable": true, "python_version": "3.12.1", "namespaces_loaded": 5, "total_tools": 23}. "python_version" is null if there is no Python; "problem" says why the core cannot be reached.`,
      inputSchema: z.strictObject({}),
      annotations: READS,
      async execute() {
        const [python, core] = await Promise.all([
          findPython(manager.env, null).then(
            ({ version }) => version,
            () => null,
          ),
          manager.core.namespaces().catch((error: Error) => error),
        ]);
        const namespaces = core instanceof Error ? [] : core;
        return {
          manager_uptime: uptimeText(Date.now() - startedAt),
          core_reachable: !(core instanceof Error),
          python_version: python,
          namespaces_loaded: namespaces.length,
          total_tools: namespaces.reduce((sum, one) => sum + one.tool_count, 0),
          node_version: process.versions.node,
          toolgate_version: IDENTITY.version,
          ...(core instanceof Error && { problem: core.message }),
        };
      },
    }),
    managerTool({
      name: 'server_config',
      title: 'Configuration',
      description: `Show the current server configuration. Only shows non-sensitive values (never shows BEARER_TOKEN or SECRETS_KEY).

Returns: {"core_port": 8808, "manager_port": 8809, "data_dir": "/data", "log_level": "info", "cors_origins": "*", "mcp_session_ttl_hours": 24}`,
      inputSchema: z.strictObject({}),
      annotations: READS,
      execute() {
        const { dataDir, http, folders, revisions } = manager.config();
        const { port, protocol } = new URL(manager.core.url);
        return {
          core_port: Number(port) || (protocol === 'https:' ? 443 : 80),
          manager_port: manager.port(),
          data_dir: dataDir,
          log_level: manager.logLevel,
          cors_origins: http.allowedOrigins.join(','),
          mcp_session_ttl_hours: http.sessionTtl / HOUR,
          core_url: manager.core.url,
          enable_legacy_mcp: http.sse,
          enable_fs_watcher: folders.watch,
          mcp_supported_versions: revisions,
          isolation: folders.isolation,
        };
      },
    }),
  ];
}

/** `2h 15m`, `3d 4h`, `12s` */
function uptimeText(ms: number): string {
  const seconds = Math.floor(ms / 1_000);
  const units: readonly (readonly [string, number])[] = [
    ['d', Math.floor(seconds / 86_400)],
    ['h', Math.floor(seconds / 3_600) % 24],
    ['m', Math.floor(seconds / 60) % 60],
  ];
  const shown = units.filter(([, count]) => count > 0).map(([unit, count]) => `${count}${unit}`);
  return shown.length === 0 ? `${seconds}s` : shown.slice(0, 2).join(' ');
}
