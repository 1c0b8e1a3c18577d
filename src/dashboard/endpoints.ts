/**
 * Every address of the API behind the dashboard, in one table: the door makes routes of it, and the OpenAPI document is
 * made of it. The handlers are loaded with the first request.
 */

export type EndpointMethod = 'get' | 'post' | 'put' | 'delete';

export interface Endpoint {
  readonly method: EndpointMethod;
  /** Below `/admin`; `*` is one part of the path. */
  readonly path: string;
  /** What the parts of the path are. */
  readonly parts?: readonly string[];
  /** The handler. */
  readonly does: string;
  readonly summary: string;
  /** Parameters of the query. */
  readonly query?: readonly string[];
  /** The type of the body, by its name in `api-types.ts`; absent if there is none. */
  readonly body?: string;
  /** The type of the answer; absent for 204. */
  readonly answer?: string;
  /** Whether the answer is a stream of events. */
  readonly isStream?: boolean;
  /** Whether only the operator key is accepted. */
  readonly keyOnly?: boolean;
}

const WINDOW = ['q', 'offset', 'limit'];
const AUDIT = ['agent', 'server', 'tool', 'status', 'kind', 'since', 'until'];

export const ENDPOINTS = [
  {
    method: 'get',
    path: '/session',
    does: 'session',
    summary: 'Who looks, and what there is to see',
    answer: 'SessionInfo',
  },
  { method: 'delete', path: '/session', does: 'leave', summary: 'Ends the session of the page' },
  {
    method: 'post',
    path: '/links',
    does: 'makeLink',
    summary: 'A one-time link for a browser',
    answer: 'NewLink',
    keyOnly: true,
  },
  {
    method: 'put',
    path: '/recording',
    does: 'record',
    summary: 'Keeps arguments and results of calls for a while',
    body: 'RecordingRequest',
    answer: 'Recording',
  },
  {
    method: 'delete',
    path: '/recording',
    does: 'stopRecording',
    summary: 'Keeps no more arguments and results',
    answer: 'Recording',
  },
  {
    method: 'get',
    path: '/overview',
    does: 'overview',
    summary: 'Servers, sessions, calls and what models see',
    query: ['since'],
    answer: 'Overview',
  },
  { method: 'get', path: '/sessions', does: 'sessions', summary: 'The clients', query: WINDOW, answer: 'SessionPage' },
  {
    method: 'get',
    path: '/events',
    does: 'events',
    summary: 'What happens, as a stream of events',
    query: ['topics'],
    answer: 'StreamEvents',
    isStream: true,
  },
  {
    method: 'get',
    path: '/calls',
    does: 'calls',
    summary: 'The last calls, newest first',
    query: ['limit'],
    answer: 'RecentCalls',
  },
  {
    method: 'get',
    path: '/calls/*',
    parts: ['id'],
    does: 'call',
    summary: 'One call with its steps',
    answer: 'CallDetail',
  },
  {
    method: 'get',
    path: '/catalog',
    does: 'catalog',
    summary: 'Tools, resources and prompts',
    query: [...WINDOW, 'kind', 'server', 'category', 'agent', 'changed'],
    answer: 'CatalogWindow',
  },
  {
    method: 'get',
    path: '/catalog/*/*',
    parts: ['kind', 'name'],
    does: 'item',
    summary: 'One item with its definition',
    answer: 'ItemDetail',
  },
  {
    method: 'post',
    path: '/tries',
    does: 'tryIt',
    summary: 'Calls something, as an agent or as the operator',
    body: 'TryRequest',
    answer: 'TryEvents',
    isStream: true,
  },
  { method: 'delete', path: '/tries/*', parts: ['id'], does: 'cancelTry', summary: 'Cancels the call' },
  {
    method: 'post',
    path: '/tries/*/answers/*',
    parts: ['id', 'question'],
    does: 'answerTry',
    summary: 'Answers a question of the server',
    body: 'TryAnswer',
  },
  {
    method: 'get',
    path: '/toolsets',
    does: 'toolsets',
    summary: 'All toolsets, and who has them',
    answer: 'ToolsetsReport',
  },
  {
    method: 'get',
    path: '/toolsets/*',
    parts: ['name'],
    does: 'toolset',
    summary: 'One toolset with its tools',
    answer: 'ToolsetDetail',
  },
  {
    method: 'get',
    path: '/access',
    does: 'access',
    summary: 'Which agent may use what',
    query: [...WINDOW, 'kind', 'server', 'agents'],
    answer: 'AccessMatrix',
  },
  {
    method: 'get',
    path: '/access/policy',
    does: 'policy',
    summary: 'The policy as text that can be edited',
    answer: 'PolicyText',
  },
  {
    method: 'post',
    path: '/access/dry-run',
    does: 'dryRun',
    summary: 'What another policy would change',
    body: 'DryRunRequest',
    answer: 'DryRunReport',
  },
  { method: 'get', path: '/agents', does: 'agents', summary: 'The agents that have tokens', answer: 'AgentsReport' },
  {
    method: 'post',
    path: '/agents',
    does: 'addAgent',
    summary: 'Adds an agent. Its token is shown once',
    body: 'AgentRequest',
    answer: 'NewAgentToken',
  },
  {
    method: 'post',
    path: '/agents/*/rotate',
    parts: ['name'],
    does: 'rotateAgent',
    summary: 'Gives an agent another token',
    body: 'RotateRequest',
    answer: 'NewAgentToken',
  },
  {
    method: 'delete',
    path: '/agents/*',
    parts: ['name'],
    does: 'revokeAgent',
    summary: 'Revokes all tokens of an agent',
  },
  {
    method: 'get',
    path: '/namespaces',
    does: 'namespaces',
    summary: 'The folders of tools',
    answer: 'NamespacesReport',
  },
  {
    method: 'get',
    path: '/namespaces/*',
    parts: ['name'],
    does: 'namespace',
    summary: 'One folder of tools',
    answer: 'NamespaceDetail',
  },
  {
    method: 'get',
    path: '/secrets',
    does: 'secrets',
    summary: 'The names of secrets, and which are missing',
    answer: 'SecretsReport',
  },
  {
    method: 'put',
    path: '/secrets',
    does: 'setSecret',
    summary: 'Sets a secret. Nothing ever shows it',
    body: 'SecretRequest',
    answer: 'SecretRow',
  },
  { method: 'delete', path: '/secrets', does: 'removeSecret', summary: 'Removes a secret', body: 'SecretName' },
  {
    method: 'get',
    path: '/logs',
    does: 'logs',
    summary: 'What servers printed, and what happened',
    query: ['source', 'q', 'limit'],
    answer: 'LogsReport',
  },
  {
    method: 'get',
    path: '/audit',
    does: 'audit',
    summary: 'Searches the audit, newest first',
    query: ['q', ...AUDIT, 'limit', 'before'],
    answer: 'AuditPage',
  },
  {
    method: 'get',
    path: '/audit/usage',
    does: 'usage',
    summary: 'Who used what, and how often',
    query: AUDIT,
    answer: 'UsageReport',
  },
  {
    method: 'post',
    path: '/audit/verify',
    does: 'verifyAudit',
    summary: 'Checks the seals of the audit',
    answer: 'VerifyReport',
  },
  { method: 'get', path: '/logins', does: 'logins', summary: 'Servers that people log in to', answer: 'LoginsReport' },
  {
    method: 'post',
    path: '/logins/*',
    parts: ['server'],
    does: 'startLogin',
    summary: 'Begins a login',
    answer: 'StartedLoginReport',
  },
  { method: 'delete', path: '/logins/*', parts: ['server'], does: 'logOut', summary: 'Ends a login' },
  {
    method: 'get',
    path: '/registry',
    does: 'registry',
    summary: 'Searches the MCP registry',
    query: ['q'],
    answer: 'RegistryReport',
  },
  {
    method: 'post',
    path: '/registry/install',
    does: 'install',
    summary: 'Adds a server of the registry to the configuration',
    body: 'InstallServerRequest',
    answer: 'InstallServerReport',
  },
  {
    method: 'post',
    path: '/servers/*/restart',
    parts: ['server'],
    does: 'restart',
    summary: 'Starts a server again',
    answer: 'ServerCard',
  },
  { method: 'post', path: '/reload', does: 'reload', summary: 'Reads everything again', answer: 'ReloadReport' },
  { method: 'get', path: '/openapi.json', does: 'openApi', summary: 'This document', answer: 'AdminDocument' },
] as const satisfies readonly Endpoint[];

export type EndpointName = (typeof ENDPOINTS)[number]['does'];
