/** `toolgate search`: what a model would find, in the terminal. */
import { describe, expect, it } from 'vitest';
import { runCli } from '../support/cli.ts';
import { server, serversToml } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';

const TOOLS = [
  { name: 'create_issue', description: 'Opens an issue in a repository', inputSchema: { type: 'object' } },
  { name: 'list_issues', description: 'Lists the issues of a repository', inputSchema: { type: 'object' } },
  { name: 'merge', description: 'Merges a branch', inputSchema: { type: 'object' } },
];
const cwd = tempFolder({ 'git.json': JSON.stringify(TOOLS) });
const config = `
active_toolsets = ["git_merge"]
[search.examples]
"git.merge" = ["land my work"]
[agent_policies.reader]
tool_overrides = { git = ["list_issues"] }
${serversToml({
  git: server('basic', '--name', 'git', '--raw-tools', `${cwd}/git.json`, '--prompts', 'review'),
})}`;
const search = (...args: string[]) => runCli(['search', ...args], { config, env: { NO_COLOR: '1' } });

describe('toolgate search', () => {
  it('prints what matches, best first, and marks what is active', async () => {
    const { code, stdout } = await search('open', 'an', 'issue');
    expect(code).toBe(0);
    expect(stdout.split('\n').slice(0, 2)).toEqual([
      '  git_create_issue  Opens an issue in a repository',
      '  git_list_issues   Lists the issues of a repository',
    ]);
    expect((await search('branch')).stdout).toBe('* git_merge  Merges a branch\n');
    expect((await search('review')).stdout).toContain('git_review  prompt:');
  });

  it('highlights words in any form', async () => {
    const { stdout } = await runCli(['search', 'merging'], { config, env: { FORCE_COLOR: '1' } });
    expect(stdout).toContain('\u001b[1mmerge\u001b[22m');
    expect(stdout).toContain('\u001b[1mMerges\u001b[22m a branch');
  });

  it('uses examples, and prints tokens and JSON', async () => {
    const { stdout } = await search('land', 'my', 'work', '--tokens', '--limit', '1');
    expect(stdout).toMatch(/^\* git_merge {2}\d+ tokens {2}Merges a branch\n$/);
    const { items, more } = JSON.parse((await search('issue', '--limit', '1', '--json')).stdout);
    expect(items).toEqual([
      {
        name: 'git_create_issue',
        kind: 'tool',
        server: 'git',
        active: false,
        description: 'Opens an issue in a repository',
        line: 'git_create_issue() - Opens an issue in a repository',
        tokens: expect.any(Number),
      },
    ]);
    expect(more).toEqual({ git: 1 });
  });

  it('shows only what an agent may use', async () => {
    const { stdout } = await search('repository', 'issue', '--agent', 'reader');
    expect(stdout).toBe('  git_list_issues  Lists the issues of a repository\n');
  });

  it('lists examples, and forgets what was learned', async () => {
    const { stdout } = await search('--examples');
    expect(stdout).toBe('git.merge  configured  land my work\n');
    const { learn, file } = JSON.parse((await search('--examples', '--json')).stdout);
    expect([learn, file]).toEqual([true, expect.stringContaining('search-examples.json')]);
    expect((await search('--forget')).stdout).toBe('Nothing was learned.\n');
  });

  it('fills a plan where rules leave something open, with reasons', async () => {
    const plan = (...more: string[]) =>
      runCli(['plan', '--description', 'Open an issue', '--json', ...more], { config: `${config}\n` });
    type Planned = { tools: { name: string; reasons: string[] }[] };
    const { tools: ruled } = JSON.parse((await plan()).stdout) as Planned;
    const { tools } = JSON.parse((await plan('--search')).stdout) as Planned;
    expect(ruled.map(({ name }) => name)).not.toContain('git_create_issue');
    expect(tools.find(({ name }) => name === 'git_create_issue')?.reasons).toEqual([
      'search: match 1 for the description',
    ]);
    expect(tools.slice(0, ruled.length)).toEqual(ruled);
    expect((await plan('--search', '--offline')).stderr).toContain('leave out --offline');
  });

  it.each([
    [[], 'What do you look for?'],
    [['x', '--limit', '0'], '--limit is a number from 1 to 100, not "0".'],
    [['x', '--server', 'gti'], 'There is no server "gti". Did you mean "git"?'],
    [['zzzz'], 'nothing matches "zzzz"'],
  ])('explains what is wrong with %j', async (args, message) => {
    const { code, stdout, stderr } = await search(...args);
    expect(code).toBeGreaterThan(0);
    expect(stdout).toBe('');
    expect(stderr).toContain(message);
  });
});
