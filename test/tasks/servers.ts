/** Servers with the tools that the rules for tasks name, and with others. */
import { serverEntry } from '../support/server.ts';

/** Every server has more than any task needs. */
export const TOOLS: Readonly<Record<string, readonly string[]>> = {
  github: [
    'get_file_contents',
    'get_file',
    'create_pull_request',
    'create_branch',
    'create_issue',
    'merge_pull_request',
    'delete_repository',
    'run_workflow',
  ],
  taskmaster: ['get_tasks', 'add_task', 'update_task_status', 'remove_task'],
  filesystem: [
    'read_file',
    'write_file',
    'list_directory',
    'create_directory',
    'search_files',
    'move_file',
    'delete_file',
  ],
  git: ['git_log', 'git_diff', 'read_file', 'git_reset'],
  'brave-search': ['brave_web_search', 'brave_local_search'],
  memory: ['create_memories', 'search_memories', 'delete_memories'],
  postgresql: ['query', 'list_tables', 'describe_table', 'drop_table'],
  sqlite: ['query', 'list_tables', 'describe_table', 'drop_table'],
  puppeteer: ['puppeteer_screenshot', 'puppeteer_navigate', 'puppeteer_evaluate'],
};

/** For `mcpServers`. git also has a resource and a prompt, and taskmaster has others. */
export function servers(): Record<string, { command: string; args: string[] }> {
  return Object.fromEntries(
    Object.entries(TOOLS).map(([name, tools]) => {
      const more = ['git', 'taskmaster'].includes(name)
        ? ['--resources', `${name}://state`, '--prompts', `${name}_help`]
        : [];
      return [name, serverEntry('basic', '--name', name, '--tools', tools.join(','), ...more)];
    }),
  );
}

/** The exposed names of the tools, by server. */
export function exposed(sets: Readonly<Record<string, readonly string[]>>): string[] {
  return Object.entries(sets)
    .flatMap(([server, tools]) => tools.map((tool) => `${server}_${tool}`))
    .sort();
}

/** The tools that a task of each profile has. */
export const PROFILES: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> = {
  development: {
    filesystem: ['read_file', 'write_file', 'list_directory', 'create_directory'],
    github: ['get_file', 'get_file_contents', 'create_pull_request', 'create_issue'],
    git: ['git_log', 'git_diff', 'read_file'],
  },
  research: {
    filesystem: ['read_file', 'search_files'],
    'brave-search': ['brave_web_search'],
    memory: ['create_memories', 'search_memories'],
  },
  analysis: {
    filesystem: ['read_file', 'list_directory'],
    postgresql: ['query', 'list_tables', 'describe_table'],
    sqlite: ['query', 'list_tables', 'describe_table'],
  },
  automation: {
    filesystem: ['read_file', 'write_file'],
    puppeteer: ['puppeteer_screenshot', 'puppeteer_navigate'],
    github: ['get_file', 'get_file_contents', 'create_issue'],
  },
};

/** The tools of every task without a profile. */
export const BASE = {
  github: ['get_file_contents'],
  taskmaster: ['get_tasks', 'add_task'],
  filesystem: ['read_file', 'write_file'],
};
