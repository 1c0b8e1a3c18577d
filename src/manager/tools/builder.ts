/** The manager's tools that look at repositories, to translate their tools. */
import * as z from 'zod';
import type { ToolContext } from '../../tools/define-tool.ts';
import { analyzeRepo } from '../builder/analyze-repo.ts';
import { readRepoFile } from '../builder/read-repo-file.ts';
import type { Work } from '../builder/repositories.ts';
import {
  type ManagerContext,
  type ManagerTool,
  managerTool,
  READS,
  READS_OUTSIDE,
  reporter,
} from '../manager-context.ts';

export function builderTools(manager: ManagerContext): ManagerTool[] {
  const workOf = (context: ToolContext): Work => ({
    dataDir: manager.config().dataDir,
    env: manager.env,
    signal: context.signal,
    progress: reporter(context),
  });
  return [
    managerTool({
      name: 'analyze_repo',
      title: 'Analyze a repository',
      description: `Clone a git repository and analyze its structure. Returns information about the repository's language, framework, what tools it defines, what dependencies it has, and what external APIs it calls. Use this as the first step when translating a tool repository.

The repo is cloned to a temporary working area. It is NOT installed or executed. A package of npm or PyPI can be analyzed in the same way: its archive is downloaded and read.

Step-by-step translation workflow:
1. Call analyze_repo to understand the source repository
2. Call read_repo_file for each relevant source file
3. Understand what each tool does (API calls, logic, parameters)
4. Call create_namespace for the target namespace
5. Call add_requirement for any packages needed (e.g. httpx)
6. Call write_tool (or generate_tool) for each translated tool file
7. Call install_requirements to install the dependencies
8. Call reload_core to load the new tools
9. Call test_tool for each tool to verify the translation works
10. Call configure_namespace, check_secrets and prepare_secret for any required API tokens

Returns: {"repo_url": "...", "language": "typescript", "framework": "mcp-sdk", "files": ["src/index.ts", "src/tools/issues.ts"], "tools_found": [{"name": "list_issues", "file": "src/tools/issues.ts", "description": "List GitHub issues", "parameters": [...]}], "dependencies": {"@octokit/rest": "^20.0.0"}, "apis_called": ["api.github.com"], "secrets_needed": ["GITHUB_TOKEN"]}`,
      inputSchema: z.strictObject({
        repo_url: z
          .string()
          .describe(
            'Git repository URL. Examples: "https://github.com/modelcontextprotocol/server-github", "https://github.com/someone/my-mcp-server". Or a package: "npm:@modelcontextprotocol/server-memory", "pypi:mcp-server-git@2026.1.14"',
          ),
      }),
      annotations: READS_OUTSIDE,
      execute: ({ repo_url: url }, context) => analyzeRepo(url, manager.config().repositories, workOf(context)),
    }),
    managerTool({
      name: 'read_repo_file',
      title: 'Read a file of a repository',
      description: `Read the source code of a specific file from a previously analyzed repository. Use this to understand the implementation details of each tool before translating it.

Returns: {"path": "src/tools/issues.ts", "content": "import { Octokit } from..."}`,
      inputSchema: z.strictObject({
        repo_url: z.string().describe('Same repo URL used in analyze_repo.'),
        path: z.string().describe('File path within the repo. Example: "src/tools/issues.ts"'),
      }),
      annotations: READS,
      execute: ({ repo_url: url, path }, context) => readRepoFile(url, path, workOf(context)),
    }),
  ];
}
