/**
 * What an analysis finds in published servers: downloaded from their registries, compared with what each of them lists when it
 * runs. The lists below were taken from these versions.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import type { RepositoriesConfig } from '../../src/config/repositories.ts';
import { analyzeRepo, type RepoAnalysis } from '../../src/manager/builder/analyze-repo.ts';
import { gitRepository } from '../support/repository.ts';
import { tempFolder } from '../support/temp.ts';

const CONFIG: RepositoriesConfig = {
  // A network may resolve the public registries to a mirror of its own.
  from: 'local',
  size: 256 * 1024 * 1024,
  timeout: 120_000,
  quota: 1e9,
  keep: 3_600_000,
};

const analyze = (url: string, folder = ''): Promise<RepoAnalysis> =>
  analyzeRepo(url, CONFIG, { dataDir: tempFolder(), env: process.env, signal: null, progress: () => {} }, folder);

it.each([
  [
    'npm:@modelcontextprotocol/server-filesystem@2026.8.31',
    'mcp-sdk',
    'create_directory directory_tree edit_file get_file_info list_allowed_directories list_directory list_directory_with_sizes move_file read_file read_media_file read_multiple_files read_text_file search_files write_file',
  ],
  [
    'npm:@modelcontextprotocol/server-everything@2026.8.31',
    'mcp-sdk',
    'echo get-annotated-message get-env get-resource-links get-resource-reference get-roots-list get-structured-content get-sum get-tiny-image gzip-file-as-resource simulate-research-query toggle-simulated-logging toggle-subscriber-updates trigger-elicitation-request trigger-elicitation-request-async trigger-long-running-operation trigger-sampling-request trigger-sampling-request-async trigger-url-elicitation',
  ],
  [
    'npm:@modelcontextprotocol/server-memory@2026.8.31',
    'mcp-sdk',
    'add_observations create_entities create_relations delete_entities delete_observations delete_relations open_nodes read_graph search_nodes',
  ],
  [
    'pypi:mcp-server-git@2026.10.19',
    'fastmcp',
    'git_add git_branch git_checkout git_commit git_create_branch git_diff git_diff_staged git_diff_unstaged git_log git_reset git_show git_status',
  ],
  ['pypi:mcp-server-fetch@2026.10.24', 'fastmcp', 'fetch'],
  ['pypi:mcp-server-time@2026.10.19', 'fastmcp', 'convert_time get_current_time'],
  ['pypi:duckduckgo-mcp-server@0.7.0', 'fastmcp', 'expand_link fetch_content search'],
  [
    'pypi:awslabs.iam-mcp-server@1.1.2',
    'fastmcp',
    'add_user_to_group attach_group_policy attach_user_policy create_access_key create_group create_role create_user delete_access_key delete_group delete_role_policy delete_user delete_user_policy detach_group_policy detach_user_policy get_group get_managed_policy_document get_role_policy get_user get_user_policy list_groups list_policies list_role_policies list_roles list_user_policies list_users put_role_policy put_user_policy remove_user_from_group simulate_principal_policy',
  ],
])(
  '%s',
  async (url, framework, listed) => {
    const found = await analyze(url);
    expect(found.framework).toBe(framework);
    expect([...new Set(found.tools_found.map(({ name }) => name))].sort()).toEqual(listed.split(' ').sort());
    expect(found.tools_found.filter(({ description }) => description === '')).toEqual([]);
  },
  180_000,
);

// Published modules of Go come with its own tool only.
it.skipIf(spawnSync('go', ['version']).status !== 0)(
  'the memory server of the Go SDK',
  async () => {
    const module = 'github.com/modelcontextprotocol/go-sdk@v1.8.0';
    const env = { ...process.env, GOMODCACHE: tempFolder(), GOFLAGS: '-modcacherw' };
    const downloaded = execFileSync('go', ['mod', 'download', '-json', module], {
      cwd: tempFolder(),
      env,
      encoding: 'utf8',
    });
    const { Dir: dir } = JSON.parse(downloaded) as { Dir: string };
    const below = join(dir, 'examples/server/memory');
    const files = readdirSync(below).filter((name) => statSync(join(below, name)).isFile());
    const repo = gitRepository(Object.fromEntries(files.map((name) => [name, readFileSync(join(below, name))])));
    const found = await analyze(repo);
    expect({ language: found.language, framework: found.framework }).toEqual({ language: 'go', framework: 'mcp-sdk' });
    expect(found.tools_found.map(({ name }) => name).sort()).toEqual([
      'add_observations',
      'create_entities',
      'create_relations',
      'delete_entities',
      'delete_observations',
      'delete_relations',
      'open_nodes',
      'read_graph',
      'search_nodes',
    ]);
  },
  180_000,
);
