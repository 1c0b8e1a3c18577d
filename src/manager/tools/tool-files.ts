/** The manager's tools for tool files. */
import * as z from 'zod';
import { findManaged } from '../managed-namespace.ts';
import { type ManagerContext, type ManagerTool, managerTool, READS, REMOVES, WRITES } from '../manager-context.ts';
import { toolsInSource } from '../namespace-list.ts';
import { deleteTool, listVersions, readToolSource, restoreTool, writeTool } from '../tool-source.ts';

const namespace = z.string().describe('Namespace the file belongs to. Example: "github"');
const filename = z.string().describe('Name of the file, without a folder. Example: "issues.py" or "issues.ts"');

const PATTERNS = `IMPORTANT: Follow this exact pattern for every Python tool (.py):

    from fastmcp.tools import tool

    @tool
    async def my_tool(param: str, count: int = 10) -> dict:
        """Clear description of what this tool does.

        Args:
            param: What this parameter is for.
            count: What this parameter controls. Defaults to 10.

        Returns:
            Description of what is returned.
        """
        # implementation here
        return {"result": "value"}

And this one for every TypeScript tool (.ts, .mts, .js, .mjs):

    import { z } from 'zod';

    export const my_tool = {
      description: 'Clear description of what this tool does.',
      inputSchema: z.object({
        param: z.string().describe('What this parameter is for.'),
        count: z.number().default(10).describe('What this parameter controls.'),
      }),
      async execute({ param, count }) {
        // implementation here
        return { result: 'value' };
      },
    };`;

const written = z.strictObject({
  namespace: z.string().describe('Target namespace. Example: "github"'),
  filename: z
    .string()
    .describe('Filename to write. Must end in .py (Python) or .ts, .mts, .js, .mjs (TypeScript). Example: "issues.py"'),
  code: z.string().describe('Complete source code for the file.'),
});

export function toolFileTools(manager: ManagerContext): ManagerTool[] {
  const listTools = managerTool({
    name: 'list_tools',
    title: 'List tools',
    description: `List all tools in a specific namespace. Returns each tool's name, its description (from the docstring), and which file it is defined in. Use this to understand what tools exist before modifying them. It also works for namespaces that are not up: then the tools are read from the source.

Returns: a list of objects, each with:
- name (string): tool name, e.g. "list_issues"
- description (string): tool description from its docstring
- filename (string): file that contains this tool, e.g. "issues.py"; empty if it is not known`,
    inputSchema: z.strictObject({
      namespace: z.string().describe('Namespace to list tools for. Example: "github"'),
    }),
    outputSchema: z.array(z.object({ name: z.string(), description: z.string(), filename: z.string() })),
    annotations: READS,
    async execute({ namespace: name }) {
      const managed = await findManaged(manager.config(), name);
      const { tools } = await toolsInSource(managed, manager.env);
      const found = tools.map(({ name: tool, description, filename: file }) => ({
        name: tool,
        description,
        filename: file,
      }));
      // Tools that are made when a file runs are known to the core only.
      const core = await manager.core.namespaces().catch(() => []);
      const files = managed.found.parts.flatMap((part) => part.files);
      const more = core
        .filter((one) => one.name === name)
        .flatMap((one) => one.tools)
        .filter((tool) => found.every((one) => one.name !== tool.name))
        // The core may still serve a file that is gone.
        .filter((tool) => tool.filename === '' || files.includes(tool.filename));
      return [...found, ...more];
    },
  });

  const getToolSource = managerTool({
    name: 'get_tool_source',
    title: 'Read a tool file',
    description: `Read the full source code of a tool file. Use this to inspect existing tools, understand their implementation, or before modifying them.

Returns: {"filename": "issues.py", "source": "import os\\nfrom fastmcp.tools import tool\\n..."}`,
    inputSchema: z.strictObject({ namespace, filename }),
    annotations: READS,
    execute: async ({ namespace: name, filename: file }) => ({
      filename: file,
      source: await readToolSource(manager.config(), name, file),
    }),
  });

  const write = async ({ namespace: name, filename: file, code }: z.output<typeof written>) =>
    writeTool(manager.config(), manager.env, name, file, code);

  const writeToolTool = managerTool({
    name: 'write_tool',
    title: 'Write a tool file',
    description: `Write a tool file to a namespace. The file must contain at least one tool: a Python function decorated with @tool from fastmcp, or an exported TypeScript tool. The code is validated before writing, without running it:
1. Syntax check (must be valid Python or TypeScript)
2. Must contain at least one @tool decorator, or export at least one tool
3. Must have type hints on all parameters, or an inputSchema
4. Must have a docstring on each @tool function, or a description

If validation fails, the file is NOT written and the error is returned, with line numbers. If the file existed, its earlier version is kept: restore_tool brings it back. After writing, call reload_core() to make the tool available.

${PATTERNS}

Returns on success: {"written": true, "filename": "issues.py", "tools_found": ["list_issues", "create_issue"]}
Returns on validation error: {"written": false, "error": "No @tool decorator found", "details": "..."}

After calling: Call reload_core() to make changes live.`,
    inputSchema: written,
    annotations: WRITES,
    execute: write,
  });

  const generateTool = managerTool({
    name: 'generate_tool',
    title: 'Write a translated tool file',
    description: `This is an alias for write_tool, specifically named for the translation workflow. Write a translated tool file to a namespace. Same validation rules as write_tool apply. See write_tool for full details.

Returns: Same as write_tool.`,
    inputSchema: written,
    annotations: WRITES,
    execute: write,
  });

  const deleteToolTool = managerTool({
    name: 'delete_tool',
    title: 'Delete a tool file',
    description: `Delete a tool file from a namespace. All tools defined in that file will be removed. After deleting, call reload_core() to update the core. Its last version is kept: restore_tool brings it back.

Returns: {"deleted": true, "filename": "issues.py"}`,
    inputSchema: z.strictObject({ namespace, filename }),
    annotations: REMOVES,
    async execute({ namespace: name, filename: file }) {
      await deleteTool(manager.config(), name, file);
      return { deleted: true, filename: file };
    },
  });

  const listToolVersions = managerTool({
    name: 'list_tool_versions',
    title: 'List versions of a tool file',
    description: `List the earlier versions of a tool file, the newest first. write_tool, delete_tool and restore_tool keep the version that they replace; the last 20 are kept.

Returns: a list of objects: [{"version": "2026-02-13T10-15-00-000Z", "filename": "issues.py"}]. Pass "version" to restore_tool.`,
    inputSchema: z.strictObject({ namespace, filename }),
    outputSchema: z.array(z.object({ version: z.string(), filename: z.string() })),
    annotations: READS,
    execute: ({ namespace: name, filename: file }) => listVersions(manager.config(), name, file),
  });

  const restoreToolTool = managerTool({
    name: 'restore_tool',
    title: 'Restore a tool file',
    description: `Bring back an earlier version of a tool file, also of one that was deleted. The present version is kept as well. After restoring, call reload_core().

Returns: {"restored": true, "filename": "issues.py", "version": "2026-02-13T10-15-00-000Z"}`,
    inputSchema: z.strictObject({
      namespace,
      filename,
      version: z.string().optional().describe('A version from list_tool_versions. Omitted: the newest.'),
    }),
    annotations: WRITES,
    async execute({ namespace: name, filename: file, version }) {
      return { restored: true, filename: file, version: await restoreTool(manager.config(), name, file, version) };
    },
  });

  return [listTools, getToolSource, writeToolTool, deleteToolTool, listToolVersions, restoreToolTool, generateTool];
}
