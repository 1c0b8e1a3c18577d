/**
 * The words by which tools are categorized if their annotations do not say what they do. Verbs are in their plain form;
 * `category.ts` removes endings.
 */

/** What a tool with this verb usually does. */
export const VERBS = {
  destructive:
    'delete remove drop destroy purge erase wipe truncate uninstall kill terminate revoke discard unlink rm del clean cleanup ' +
    'clear reset rollback overwrite prune expunge trash unpublish deprovision evict decommission exec eval evaluate',
  write:
    'create add insert update upsert set put post patch write edit modify change replace rename move copy send reply forward ' +
    'publish upload push commit merge fork apply deploy install upgrade start stop restart pause resume restore enable disable ' +
    'toggle assign unassign invite approve unapprove reject close open reopen archive unarchive lock unlock pin unpin mark ' +
    'subscribe unsubscribe register schedule cancel trigger run execute invoke submit save store record import init initialize ' +
    'configure connect disconnect reconnect login logout click fill press type hover drag tap swipe select navigate resize ' +
    'handle interact emulate transfer share upsert link attach detach tag comment react sort expand generate build make scale ' +
    'rollout rotate grant allow deny block mute launch allocate release book order pay charge refund transition checkout stash ' +
    'rebase cherry stage download confirm accept decline dismiss snooze draft compress gzip convert mint feedback manage format clone',
  read:
    'get list read search find fetch describe show view query lookup look count check verify validate inspect analyze analyse ' +
    'explain compare diff log blame status info stat stats retrieve resolve browse preview export scrape crawl extract map ' +
    'summarize summarise summarizer monitor watch poll wait ping health help echo discover detect test lint screenshot ' +
    'snapshot capture audit trace aggregate calculate compute estimate parse geocode research think answer ask suggest recommend ' +
    'scan enumerate peek tail head history version whoami tree schema documentation docs detail details ' +
    'report metadata reflog elevation direction directions distance transcript context summary',
} as const;

/** Reading verbs that are also nouns: `monitor_create` creates a monitor. */
export const THINGS =
  'monitor search log status report schema test history version context summary map query trace audit snapshot';

/** A tool with one word of each list runs what it is given, and may do anything. */
export const RUNNING = 'execute run exec eval evaluate call';
export const ANYTHING = 'sql code script command shell bash python javascript js snippet raw arbitrary statement';

/** Phrases that say that a change loses something. */
export const LOSING = [
  'permanently',
  'irreversibl',
  'cannot be undone',
  "can't be undone",
  'overwrite an existing',
  'overwrite existing',
  'completely overwrite',
  'drop/clear',
  'or delete',
  'or remove',
];

/** Phrases that say that a tool only reads. */
export const LOOKING = ['read-only', 'readonly', 'read only', 'select query'];

/** What servers and their tools are about. If several domains score equally, the first in this order counts. */
export const DOMAINS: Readonly<Record<string, string>> = {
  files: 'file filesystem directory folder path fs drive dropbox s3 storage onedrive gzip zip',
  code: 'git github gitlab bitbucket repository repo commit branch pull merge code eslint lint diff patch blob',
  database:
    'database db sql sqlite postgres postgresql mysql mongodb mongo redis elasticsearch elastic table record collection query ' +
    'airtable supabase bigquery snowflake dbhub schema index clickhouse duckdb',
  browser: 'browser page puppeteer playwright chrome devtools selenium dom click tab screenshot element',
  web: 'web url website search crawl scrape fetch brave exa tavily firecrawl perplexity serp internet news http html',
  messages:
    'mail email gmail outlook message slack teams discord telegram whatsapp sms channel thread inbox chat notification',
  calendar: 'calendar event meeting appointment schedule attendance invite',
  documents:
    'document doc docs pdf notion page block confluence wiki note onenote excel sheet spreadsheet word sharepoint markdown ' +
    'documentation context7 library',
  projects:
    'task todo planner issue ticket jira linear asana trello project milestone sprint backlog taskmaster subtask epic',
  infrastructure:
    'kubernetes kubectl k8s docker container pod helm cluster deploy deployment aws azure gcp cloud terraform server vm ' +
    'pipeline circleci ci cd build node namespace',
  observability:
    'sentry datadog grafana prometheus metric log error trace alert incident monitoring dashboard newrelic',
  memory: 'memory knowledge graph entity relation observation remember recall vector embedding',
  maps: 'map maps geocode place direction route elevation distance location geographic coordinate address',
  devices: 'device mobile android ios screen app emulator simulator sensor light home',
  media: 'chart image video audio diagram photo picture graph plot music youtube speech render',
  finance: 'payment invoice stripe price stock currency bank account order charge refund customer subscription paypal',
  people: 'user contact people person employee manager team member profile directory org',
  automation: 'workflow automation n8n zapier node trigger template make',
  apis: 'api postman openapi swagger endpoint mock environment sdk collection request',
};
