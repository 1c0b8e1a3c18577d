/** The manager's tools for the MCP registry and for OpenAPI documents. */
import * as z from 'zod';
import type { ToolContext } from '../../tools/define-tool.ts';
import { namespaceFromOpenApi } from '../builder/from-openapi.ts';
import { type InstallWork, installFromRegistry, installFromRepo, searchRegistry } from '../installer/install.ts';
import {
  INSTALLS,
  type ManagerContext,
  type ManagerTool,
  managerTool,
  READS_OUTSIDE,
  reporter,
} from '../manager-context.ts';

export function installerTools(manager: ManagerContext): ManagerTool[] {
  const workOf = (context: ToolContext): InstallWork => ({
    env: manager.env,
    signal: context.signal,
    progress: reporter(context),
  });
  return [
    managerTool({
      name: 'search_registry',
      title: 'Search the MCP registry',
      description: `Search the MCP server registry for installable tool servers. Returns a list of matching servers with their name, description, package type, and source URL. Use this when the user wants to find and install existing MCP servers.

Returns: a list of objects: [{"name": "io.github.owner/server-github", "description": "GitHub API tools", "package": "@modelcontextprotocol/server-github", "package_type": "npm", "source_url": "https://github.com/modelcontextprotocol/server-github"}]`,
      inputSchema: z.strictObject({
        query: z.string().describe('Search term. Examples: "github", "slack", "database"'),
      }),
      outputSchema: z.array(z.looseObject({ name: z.string() })),
      annotations: READS_OUTSIDE,
      execute: ({ query }, context) => searchRegistry(query, manager.config(), workOf(context)),
    }),
    managerTool({
      name: 'install_from_registry',
      title: 'Install from the MCP registry',
      description: `Install a server of the MCP registry. With mode "attach" (the default) the server is written to the configuration and runs as it is, next to the others. With mode "translate" its source code is cloned (or its package downloaded, if it names no repository) and analyzed, as analyze_repo does; nothing of it is installed or run, and it is NOT translated automatically: you must then use read_repo_file and write_tool to translate each tool.

Returns with "attach": {"installed": true, "name": "...", "namespace": "github", "file": "...", "server": {...}, "secrets_needed": ["GITHUB_TOKEN"]}. Tell the user what "notes" say. For each needed secret, call prepare_secret with that namespace and tell the user to run the command in "instructions"; then call reload_core().
Returns if something is missing: {"installed": false, "error": "...", "inputs": [{"name": "region", "description": "..."}]}. Ask the user, and call again with "inputs". Never pass a secret as an input.
Returns with "translate": Same as analyze_repo. Pass its "repo_url" to read_repo_file. Next steps: Follow the translation workflow (read source, write tools, test).`,
      inputSchema: z.strictObject({
        package: z
          .string()
          .describe('Name or package from the search results. Example: "@modelcontextprotocol/server-github"'),
        namespace: z.string().describe('Target namespace name. Example: "github"'),
        mode: z
          .enum(['attach', 'translate'])
          .default('attach')
          .describe('"attach" runs the server, "translate" reads its source.'),
        inputs: z
          .record(z.string(), z.string())
          .default({})
          .describe('Values that the server asks for, by name; never secrets. Example: {"region": "eu"}'),
        kind: z
          .enum(['npm', 'pypi', 'oci', 'remote'])
          .optional()
          .describe(
            'Which of its packages to run, if it has several. With "translate": read its npm or pypi package in place of its repository.',
          ),
        version: z.string().optional().describe('Default: the latest.'),
      }),
      annotations: INSTALLS,
      async execute({ kind = null, version = null, ...request }, context) {
        const result = await installFromRegistry({ ...request, kind, version }, manager.config(), workOf(context));
        const { trustAdvice } = manager;
        // A model is not the user: what it adds to a configuration that was found waits for the user.
        if (trustAdvice === null || !('installed' in result) || !result.installed) return result;
        return {
          ...result,
          notes: [...result.notes, `It does not run before the user trusts it. Tell the user: ${trustAdvice}`],
        };
      },
    }),
    managerTool({
      name: 'install_from_repo',
      title: 'Translate a repository',
      description: `Begin the translation process for a git repository URL. Clones the repo and runs analyze_repo. Same as install_from_registry with mode "translate", but takes a URL instead of a package name. Nothing is installed or executed.

Returns: Same as analyze_repo. Next steps: Follow the translation workflow: read_repo_file, create_namespace with this namespace, write_tool, reload_core, test_tool.`,
      inputSchema: z.strictObject({
        repo_url: z
          .string()
          .describe('Git URL. Example: "https://github.com/someone/my-tools". Or a package, as for analyze_repo.'),
        namespace: z.string().describe('Target namespace name.'),
      }),
      annotations: READS_OUTSIDE,
      execute: ({ repo_url: url, namespace }, context) =>
        installFromRepo(url, namespace, manager.config(), workOf(context)),
    }),
    managerTool({
      name: 'install_from_openapi',
      title: 'Make tools of an OpenAPI document',
      description: `Create a namespace with one tool for each operation of an OpenAPI document (3.0 or 3.1, JSON or YAML). The tools are TypeScript files that you can read with get_tool_source and change with write_tool.

Returns: {"created": true, "namespace": "pets", "path": "...", "tools_found": ["list_pets", "get_pet"], "base_url": "https://api.example.com", "secrets_needed": ["PETS_API_KEY"], "notes": []}. For each needed secret, call prepare_secret with that namespace and tell the user to run the command in "instructions". Then call reload_core(), and try a tool with test_tool.`,
      inputSchema: z.strictObject({
        document: z.string().describe('The address of the document. Example: "https://api.example.com/openapi.json"'),
        namespace: z.string().describe('Name of the new namespace. Example: "pets"'),
        base_url: z
          .string()
          .optional()
          .describe('Where the API is, if the document does not say so. Example: "https://api.example.com/v1"'),
      }),
      annotations: INSTALLS,
      execute: ({ document: source, namespace, base_url: baseUrl = null }, { signal }) => {
        const { dataDir, repositories } = manager.config();
        const request = {
          source,
          namespace,
          baseUrl,
          cwd: dataDir,
          mayReadFiles: false,
          mayReachPrivate: repositories.from !== 'public',
          signal,
        };
        return manager.creating(() => namespaceFromOpenApi(request, dataDir));
      },
    }),
  ];
}
