/**
 * Walks of an agent through many real servers: it searches, reads definitions or activates, and calls. CATALOGS=FOLDER names
 * a folder with the catalogs of real servers, one JSON file each; without it there is nothing to walk through.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type Door, enter, type Guest } from '../support/doors.ts';
import { waitFor } from '../support/processes.ts';
import { server, serversToml } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';

const folder = process.env.CATALOGS ?? '';
const isThere = folder !== '' && existsSync(folder);

interface Tool {
  readonly name: string;
  readonly description?: string;
  readonly inputSchema: {
    readonly required?: string[];
    readonly properties?: Record<string, { type?: string | string[] }>;
  };
}

interface ServedCatalog {
  readonly name: string;
  readonly tools: readonly Tool[];
}

/** Each task is a list of queries as a model would write them, each with the tools that are right for it. */
const TASKS: readonly (readonly (readonly [query: string, ...right: string[]])[])[] = [
  [
    ['create github issue', 'github_create_issue'],
    ['send slack message to channel', 'slack_slack_post_message'],
  ],
  [
    ['search github code', 'github_search_code'],
    ['open github pull request', 'github_create_pull_request'],
  ],
  [
    ['merge gitlab merge request', 'gitlab_merge_merge_request'],
    ['approve merge request gitlab', 'gitlab_approve_merge_request'],
  ],
  [
    ['list branches gitlab', 'gitlab_list_branches'],
    ['protect a branch', 'gitlab_protect_branch'],
  ],
  [
    ['git commit staged changes', 'git_git_commit'],
    ['git push to remote', 'git_git_push'],
  ],
  [['who last changed each line of a file in git', 'git_git_blame']],
  [
    ['find flaky tests circleci', 'circleci_find_flaky_tests'],
    ['build failure logs', 'circleci_get_build_failure_logs'],
  ],
  [['rerun ci workflow', 'circleci_rerun_workflow']],
  [
    ['kubernetes pod logs', 'kubernetes_kubectl_logs'],
    ['scale a kubernetes deployment', 'kubernetes_kubectl_scale'],
  ],
  [['install helm chart', 'kubernetes_install_helm_chart']],
  [['run command inside pod', 'kubernetes_exec_in_pod']],
  [
    ['search sentry issues', 'sentry_search_issues'],
    ['root cause analysis of sentry issue', 'sentry_analyze_issue_with_seer'],
  ],
  [
    ['driving directions google maps', 'google-maps_maps_directions'],
    ['coordinates of an address', 'google-maps_maps_geocode'],
  ],
  [['elevation of a location', 'google-maps_maps_elevation']],
  [
    ['read text file', 'filesystem_read_text_file', 'filesystem_read_file'],
    ['write file', 'filesystem_write_file'],
  ],
  [
    ['list directory with sizes', 'filesystem_list_directory_with_sizes'],
    ['move file', 'filesystem_move_file'],
  ],
  [['remember facts about a person in knowledge graph', 'memory_create_entities', 'memory_add_observations']],
  [
    ['pie chart', 'chart_generate_pie_chart'],
    ['mind map', 'chart_generate_mind_map'],
  ],
  [['word cloud', 'chart_generate_word_cloud_chart']],
  [
    ['airtable list records', 'airtable_list_records'],
    ['create airtable record', 'airtable_create_record'],
  ],
  [
    ['notion create page', 'notion_API-post-page'],
    ['add comment notion page', 'notion_API-create-a-comment'],
  ],
  [
    ['send teams chat message', 'ms365_send-chat-message'],
    ['create onedrive folder', 'ms365_create-onedrive-folder'],
  ],
  [
    ['send outlook email', 'ms365_send-mail'],
    ['create calendar event', 'ms365_create-calendar-event'],
  ],
  [
    ['excel worksheet list', 'ms365_list-excel-worksheets'],
    ['create excel chart', 'ms365_create-excel-chart'],
  ],
  [
    ['mongodb insert documents', 'mongodb_insert-many', 'mongodb-atlas_insert-many'],
    ['list mongodb databases', 'mongodb_list-databases', 'mongodb-atlas_list-databases'],
  ],
  [
    ['list atlas clusters', 'mongodb-atlas_atlas-list-clusters'],
    ['pause atlas cluster', 'mongodb-atlas_atlas-pause-resume-cluster'],
  ],
  [['run sql query postgres', 'postgres_query', 'dbhub_execute_sql', 'supabase_execute_sql']],
  [
    ['apply database migration supabase', 'supabase_apply_migration'],
    ['deploy edge function', 'supabase_deploy_edge_function'],
  ],
  [['set redis key', 'redis_set']],
  [['elasticsearch list indices', 'elasticsearch_list_indices']],
  [
    [
      'navigate browser to url',
      'playwright_browser_navigate',
      'ea-playwright_playwright_navigate',
      'puppeteer_puppeteer_navigate',
      'chrome-devtools_navigate_page',
    ],
    [
      'take screenshot of page',
      'playwright_browser_take_screenshot',
      'ea-playwright_playwright_screenshot',
      'puppeteer_puppeteer_screenshot',
      'chrome-devtools_take_screenshot',
    ],
  ],
  [
    ['lighthouse audit', 'chrome-devtools_lighthouse_audit'],
    ['list network requests', 'chrome-devtools_list_network_requests', 'playwright_browser_network_requests'],
  ],
  [
    ['install app on phone', 'mobile_mobile_install_app'],
    ['swipe on screen', 'mobile_mobile_swipe_on_screen'],
  ],
  [
    [
      'search the web',
      'brave_brave_web_search',
      'brave-old_brave_web_search',
      'exa_web_search_exa',
      'tavily_tavily_search',
      'firecrawl_firecrawl_search',
    ],
  ],
  [
    ['news search', 'brave_brave_news_search'],
    ['youtube transcript', 'fetch_fetch_youtube_transcript'],
  ],
  [
    ['crawl a website', 'firecrawl_firecrawl_crawl', 'tavily_tavily_crawl'],
    ['search research papers', 'firecrawl_firecrawl_research_search_papers'],
  ],
  [
    ['create postman collection', 'postman_createCollection'],
    ['create mock server postman', 'postman_createMock'],
  ],
  [
    ['library documentation', 'context7_query-docs', 'context7_resolve-library-id'],
    ['lint javascript files', 'eslint_lint-files'],
  ],
  [
    ['next task to work on', 'task-master_next_task', 'task-master-all_next_task'],
    ['set task status', 'task-master_set_task_status', 'task-master-all_set_task_status'],
  ],
  [
    ['validate n8n workflow', 'n8n_validate_workflow'],
    ['save annotated pdf', 'pdf_save_pdf'],
  ],
];

const tokens = (text: string) => Math.ceil(text.length / 4);

function served(): { catalogs: readonly ServedCatalog[]; cwd: string; config: string } {
  const catalogs = readdirSync(folder).map((file): ServedCatalog => {
    const { name, tools } = JSON.parse(readFileSync(join(folder, file), 'utf8'));
    return { name, tools };
  });
  const cwd = tempFolder(
    Object.fromEntries(catalogs.map(({ name, tools }) => [`${name}.json`, JSON.stringify(tools)])),
  );
  const commands = catalogs.map(({ name, tools }) => [
    name,
    server(
      'basic',
      '--name',
      name,
      '--raw-tools',
      join(cwd, `${name}.json`),
      '--tools',
      tools.map((one) => one.name).join(','),
    ),
  ]);
  return { catalogs, cwd, config: `controls = "auto"\n${serversToml(Object.fromEntries(commands))}` };
}

async function textOf(guest: Guest, name: string, args: object): Promise<string> {
  const { result, error } = await guest.raw('tools/call', JSON.stringify({ name, arguments: args }));
  const { content, isError } = JSON.parse(result ?? `{"isError":true,"content":[{"text":${JSON.stringify(error)}}]}`);
  expect(isError, content[0].text).toBeFalsy();
  return content[0].text;
}

/** The array of tools as it was sent, without its closing bracket. */
async function listOf(guest: Guest): Promise<string> {
  const { result } = await guest.raw('tools/list', '{}');
  const start = result!.indexOf('"tools":[') + '"tools":['.length;
  return result!.slice(start, result!.lastIndexOf(']'));
}

/** Arguments as a schema wants them at its first level. */
function fitting({ required = [], properties = {} }: Tool['inputSchema']): Record<string, unknown> {
  const values: Record<string, unknown> = { object: {}, array: [], boolean: true, integer: 1, number: 1, null: null };
  return Object.fromEntries(required.map((key) => [key, values[[properties[key]?.type].flat()[0] ?? ''] ?? 'x']));
}

describe.skipIf(!isThere)('40 walks over the catalogs of real servers', () => {
  it.each(['stdio', 'modern http'] as const satisfies Door[])('over %s', { timeout: 300_000 }, async (door) => {
    const { catalogs, cwd, config } = served();
    const guest = await enter(door, { cwd, config });
    const all = catalogs.reduce((sum, { tools }) => sum + tools.length, 0);
    // Over stdio a client may list before all servers have started.
    await waitFor(async () => (await listOf(guest)).includes(`(${catalogs.at(-1)!.tools.length})`));
    const definitions = new Map<string, Tool>(
      catalogs.flatMap(({ name, tools }) => tools.map((tool) => [`${name}_${tool.name}`, tool] as const)),
    );
    const allTokens = tokens(JSON.stringify([...definitions.values()]));
    const first = tokens(await listOf(guest));
    const spent: number[] = [];
    const missed: string[] = [];
    let needs = 0;
    for (const [at, task] of TASKS.entries()) {
      const before = await listOf(guest);
      const found = await textOf(guest, 'search_tools', { queries: task.map(([query]) => query) });
      // As if each task were a conversation of its own: what earlier ones activated does not count.
      let cost = first + tokens(found);
      const picked = task.flatMap(([query, ...right]) => {
        needs++;
        const tool = right.find((name) => new RegExp(`^${name}[( ]`, 'm').test(found));
        if (tool === undefined) missed.push(`${query}: ${right.join(', ')}`);
        return tool ?? [];
      });
      if (picked.length === 0) continue;
      // One half reads the definitions and calls through call_tool, the other half activates and calls directly.
      const activates = at % 2 === 0;
      const described = await textOf(guest, 'describe_tools', { names: picked, ...(activates && { activate: true }) });
      cost += tokens(described);
      const after = await listOf(guest);
      expect(after.startsWith(before), 'a list grows at its end').toBe(true);
      if (activates) cost += tokens(after.slice(before.length));
      else expect(after).toBe(before);
      for (const name of picked) {
        const args = fitting(definitions.get(name)!.inputSchema);
        const [called, given] = activates ? [name, args] : ['call_tool', { name, arguments: args }];
        cost += tokens(await textOf(guest, called, given));
      }
      spent.push(cost);
    }
    const mean = Math.round(spent.reduce((sum, one) => sum + one, 0) / spent.length);
    const catalogTokens = tokens(
      [...definitions].map(([name, { description = '' }]) => `${name} - ${description.slice(0, 132)}`).join('\n'),
    );
    console.info(
      `${door}: ${all} tools; all of them ${allTokens} tokens, a catalog of them ${catalogTokens}, a walk ${mean}; ` +
        `${needs - missed.length} of ${needs} tools found with the first search${missed.length === 0 ? '' : `, not: ${missed.join('; ')}`}`,
    );
    expect((needs - missed.length) / needs).toBeGreaterThan(0.9);
    expect(mean).toBeLessThan(allTokens / 50);
  });
});
