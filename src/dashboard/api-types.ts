/**
 * What the API behind the dashboard sends and takes, below `/admin/`. It has types only and imports nothing, so that the
 * page and other programs can use it as it is. Times are ISO 8601 unless a comment says milliseconds; sizes are bytes.
 */

/** The body of every answer with a status of 400 or more. */
export interface ApiError {
  readonly success: false;
  readonly result: null;
  readonly code: string;
  readonly message: string;
  /** What the error has in addition, such as `line` for a text that cannot be read. */
  readonly [detail: string]: unknown;
}

/** Changes with a cookie need this header, with any value. A page of another origin cannot send it. */
export type PageHeader = 'x-toolgate-page';

/* ------------------------------------------------------------------ session */

/** `GET /admin/session`: who looks, and what there is to see. */
export interface SessionInfo {
  readonly version: string;
  /** Whose key or token it is: `operator`, or the name of an admin token. */
  readonly who: string;
  /** When the session ends by itself; null for a request with a key. */
  readonly expires: string | null;
  readonly started: string;
  /** The configuration file; null without one. */
  readonly file: string | null;
  /** The address of the MCP endpoint; null if it is not known. */
  readonly url: string | null;
  readonly features: {
    /** Whether the audit is written, so that there is something to search. */
    readonly audit: boolean;
    readonly registry: boolean;
    readonly policy: boolean;
    readonly namespaces: boolean;
    /** Whether secrets can be set: there is a key to encrypt them with. */
    readonly secrets: boolean;
    /** Whether toolsets can be equipped. */
    readonly toolsets: boolean;
  };
  readonly recording: Recording;
  /** Null unless there are others. */
  readonly replica: ReplicaInfo | null;
}

/** The replica that answers. Send its id as `x-toolgate-replica`, and every other one passes the request on to it. */
export interface ReplicaInfo {
  readonly id: string;
  /** How many there are. */
  readonly count: number;
}

/** `POST /admin/links` (operator key): a link that lets one browser in, once. */
export interface NewLink {
  readonly url: string;
  readonly expires: string;
}

/** `PUT /admin/recording`: whether arguments and results of calls are kept for the page. Never longer than a day. */
export interface RecordingRequest {
  readonly arguments: boolean;
  readonly results: boolean;
  /** For how many minutes, 1 to 1440. */
  readonly minutes: number;
}

export interface Recording {
  readonly arguments: boolean;
  readonly results: boolean;
  /** `audit`: the configuration says so. `page`: switched on in the page. */
  readonly by: 'audit' | 'page' | null;
  readonly until: string | null;
}

/* ----------------------------------------------------------------- overview */

/** `GET /admin/overview?since=`. `since` leaves out the ticks before that time, which a page has already. */
export interface Overview {
  readonly version: string;
  readonly pid: number;
  readonly started: string;
  readonly file: string | null;
  readonly url: string | null;
  readonly servers: readonly ServerCard[];
  readonly sessions: SessionCounts;
  /** What a new client sees, by agent; one row with `agent: null` if all agents see the same. */
  readonly firstLists: readonly FirstListRow[];
  /** All tools of the catalog, and about how many tokens their definitions cost. */
  readonly catalog: { readonly version: number; readonly tools: number; readonly tokens: number };
  readonly totals: CallTotals;
  /** The last seconds, oldest first; empty if nobody has looked lately. */
  readonly ticks: readonly Tick[];
  /** Calls that wait for a person. */
  readonly approvals: number;
  readonly problems: readonly SourceProblem[];
  readonly process: ProcessFigures;
}

export interface SourceProblem {
  readonly source: string;
  readonly message: string;
}

export interface ProcessFigures {
  readonly rss: number;
  readonly heapUsed: number;
  /** CPU seconds since the start. */
  readonly cpu: number;
}

export type ServerStateWord =
  | 'starting'
  | 'up'
  | 'asleep'
  | 'down'
  | 'crash_loop'
  | 'locked'
  | 'broken'
  | 'untrusted'
  | 'closed';

export interface ServerCard {
  readonly key: string;
  readonly namespace: string;
  /** `stdio`, `http`, `sse`, `folder`, `inline`. */
  readonly kind: string;
  readonly description: string;
  readonly state: ServerStateWord;
  /** Why it is in that state; its own name when it is up. */
  readonly detail: string;
  readonly since: string;
  /** Revision of the protocol; null while it is not known. */
  readonly revision: string | null;
  readonly era: 'modern' | 'legacy' | null;
  readonly pid: number | null;
  readonly restarts: number;
  /** Its last states, the current one at the end. */
  readonly history: readonly { readonly time: string; readonly state: ServerStateWord; readonly detail: string }[];
  /** How long its last start took, in milliseconds; null if it has not been up. */
  readonly startMs: number | null;
  readonly checks: { readonly asked: number; readonly missed: number };
  readonly breaker: {
    readonly state: 'closed' | 'open' | 'trying';
    readonly failures: number;
    readonly until: string | null;
  };
  readonly places: { readonly running: number; readonly waiting: number };
  readonly required: boolean;
  readonly present: boolean;
  readonly isolation: string | null;
  readonly tools: number;
  readonly tokens: number;
  /** Of its process; null if it has none here, or the system does not say. */
  readonly process: { readonly rss: number; readonly cpu: number } | null;
  /** The end of what it wrote to its standard error. */
  readonly stderr: string;
  readonly problems: readonly BrokenFile[];
  readonly login: LoginState | null;
}

export interface BrokenFile {
  readonly file: string;
  readonly line: number | null;
  readonly message: string;
  /** Whether the last good version of the file is used in its place. */
  readonly isKept: boolean;
}

export interface SessionCounts {
  readonly all: number;
  readonly byAgent: readonly { readonly agent: string; readonly sessions: number }[];
}

/** `GET /admin/sessions?q=&offset=&limit=` */
export interface SessionPage extends Page {
  readonly sessions: readonly SessionRow[];
}

export interface SessionRow {
  /** For `{ session: id }` of `toolsets-equip`. */
  readonly id: string;
  readonly agent: string;
  readonly door: string;
  readonly client: string | null;
  readonly version: string | null;
  readonly since: string;
  readonly revision: string | null;
  readonly toolset: string | null;
  readonly namespace: string | null;
  readonly tools: number;
  readonly tokens: number;
  readonly activated: readonly string[];
  readonly deactivated: readonly string[];
  readonly enabled: readonly string[];
}

export interface FirstListRow {
  readonly agent: string | null;
  readonly shown: number;
  readonly tokens: number;
  readonly tools: number;
  readonly own: number;
  readonly toolset: string | null;
  readonly until: 'activate' | 'search' | 'equip' | 'enable' | null;
}

/** Since the start of the gateway. */
export interface CallTotals {
  readonly calls: number;
  readonly errors: number;
  readonly refused: number;
  readonly inFlight: number;
  readonly refusals: readonly { readonly code: string; readonly count: number }[];
  readonly agents: readonly {
    readonly agent: string;
    readonly calls: number;
    readonly errors: number;
    readonly refused: number;
    readonly inFlight: number;
  }[];
}

/** One second of calls. */
export interface Tick {
  /** The second, in milliseconds since 1970. */
  readonly t: number;
  readonly calls: number;
  readonly errors: number;
  readonly refused: number;
  readonly inFlight: number;
  readonly bytesIn: number;
  readonly bytesOut: number;
  /** Milliseconds; null without calls. */
  readonly p50: number | null;
  readonly p95: number | null;
  readonly p99: number | null;
}

/** What every list with windows has. `limit` is at most 500. */
export interface Page {
  /** How many match in all. */
  readonly total: number;
  readonly offset: number;
}

/* -------------------------------------------------------------------- calls */

export type CallOutcome =
  | 'running'
  | 'ok'
  | 'tool_error'
  | 'error'
  | 'failed'
  | 'timeout'
  | 'cancelled'
  | 'cached'
  | 'refused';

export interface CallRow {
  /** Grows with each call. A row comes once when it begins to wait or run long, and again with its end. */
  readonly id: number;
  /** When it came in, in milliseconds since 1970. */
  readonly at: number;
  readonly agent: string;
  readonly door: string;
  readonly method: string;
  /** The exposed name, or what was asked for if nothing has that name. */
  readonly name: string;
  readonly server: string;
  /** The tool that it was made through, such as `toolman_call`; null for none. */
  readonly through: string | null;
  readonly outcome: CallOutcome;
  /** The code of the error; null if there is none. */
  readonly error: string | null;
  /** From the request to the answer, in milliseconds; null while it runs. */
  readonly ms: number | null;
  readonly bytesIn: number;
  readonly bytesOut: number;
  /** The limits that stopped, delayed or cut it: `rate`, `concurrency`, `calls_per_day`, `max_result` and so on. */
  readonly limits: readonly string[];
  /** The id of its trace; null if it has none. */
  readonly trace: string | null;
}

/** `GET /admin/calls?limit=`: the last calls, at most 2,000, newest first. Only those since somebody began to look. */
export interface RecentCalls {
  readonly calls: readonly CallRow[];
  /** Calls that are no longer kept. */
  readonly skipped: number;
  /** How many have ended since somebody began to look. */
  readonly ended: number;
}

/** `GET /admin/calls/ID`; 404 when it is no longer kept. */
export interface CallDetail extends CallRow {
  readonly steps: readonly CallStep[];
  /** The error in words; null if there is none. */
  readonly message: string | null;
  /** As JSON text, without secrets, shortened with `…`; null if it is not recorded. */
  readonly arguments: string | null;
  readonly result: string | null;
  /** Calls that it made: the steps of a macro. */
  readonly client: string | null;
}

/** One bar of the waterfall. */
export interface CallStep {
  /** `lookup`, `wait` (approval, limits, start of the server, middleware), `server`, `deliver`. */
  readonly step: 'lookup' | 'wait' | 'server' | 'deliver';
  /** Milliseconds since the call came in. */
  readonly from: number;
  readonly to: number;
  readonly detail: string;
}

/* ------------------------------------------------------------------ catalog */

export type ItemKind = 'tool' | 'resource' | 'template' | 'prompt';

/** `GET /admin/catalog?kind=&q=&server=&category=&agent=&changed=1&offset=&limit=` */
export interface CatalogWindow extends Page {
  readonly version: number;
  readonly items: readonly CatalogRow[];
  /** Of everything that matches, not of this window. */
  readonly tokens: number;
  readonly servers: readonly { readonly server: string; readonly items: number }[];
  readonly categories: readonly { readonly category: string; readonly items: number }[];
  /** Why items may be missing: one sentence for each server. */
  readonly missing: readonly string[];
}

export interface CatalogRow {
  readonly name: string;
  readonly kind: ItemKind;
  readonly server: string;
  readonly title: string | null;
  readonly description: string;
  readonly category: string | null;
  readonly tokens: number;
  /** Whether a new client sees it. */
  readonly active: boolean;
  /** How it differs from what was approved; null if it does not, or nothing was approved. */
  readonly change: ChangeKind | null;
  /** Whether it cannot be used until somebody approves it. */
  readonly held: boolean;
}

export type ChangeKind = 'new' | 'gone' | 'compatible' | 'breaking' | 'suspicious';

/** `GET /admin/catalog/KIND/NAME` */
export interface ItemDetail extends CatalogRow {
  readonly upstreamName: string;
  /** As its server defines it. */
  readonly definition: Readonly<Record<string, unknown>>;
  readonly inputSchema: Readonly<Record<string, unknown>> | null;
  readonly outputSchema: Readonly<Record<string, unknown>> | null;
  readonly annotations: Readonly<Record<string, unknown>> | null;
  /** Toolsets that have it. */
  readonly toolsets: readonly string[];
  readonly pin: PinState | null;
  readonly examples: readonly string[];
  readonly usage: {
    readonly calls: number;
    readonly errors: number;
    readonly p50: number | null;
    readonly p99: number | null;
  };
  /** Why it is held; null if it is not. */
  readonly heldReason: string | null;
}

/** What differs from the approved definition. */
export interface PinState {
  readonly verdict: ChangeKind;
  readonly reasons: readonly string[];
  /** Sorted, indented JSON; null if there was, or is, nothing. */
  readonly before: string | null;
  readonly after: string | null;
  readonly diff: readonly DiffLine[];
  /** For `lock-approve` with `names: [approveName]`. */
  readonly hash: string;
  readonly approveName: string;
}

export interface DiffLine {
  readonly op: ' ' | '+' | '-';
  readonly text: string;
}

/* ------------------------------------------------------------------- try it */

/**
 * `POST /admin/tries`: calls a tool, reads a resource or gets a prompt. The answer is a stream of events (`TryEvent`),
 * read with `fetch`. Closing it cancels the call.
 */
export interface TryRequest {
  readonly kind: 'tool' | 'resource' | 'prompt';
  /** The exposed name, or the URI. */
  readonly name: string;
  readonly arguments?: Readonly<Record<string, unknown>>;
  /** The agent whose policy and limits apply; null for the operator, whom no policy binds. */
  readonly agent: string | null;
  /** For macros only: nothing is called. */
  readonly dryRun?: boolean;
}

export interface TryEvents {
  /** Answers and the cancellation go to its replica; null if there is one only. */
  readonly started: { readonly id: string; readonly replica: string | null };
  readonly progress: { readonly progress: number; readonly total?: number; readonly message?: string };
  readonly log: { readonly level: string; readonly logger?: string; readonly data: unknown };
  readonly question: TryQuestion;
  readonly withdrawn: { readonly question: string; readonly reason: string };
  readonly result: { readonly result: Readonly<Record<string, unknown>>; readonly ms: number; readonly bytes: number };
  /** Toolgate's own error (`code` is a word), or the server's (`code` is a number). The last event, like `result`. */
  readonly failed: { readonly code: string | number; readonly message: string; readonly ms: number };
}

export interface TryQuestion {
  /** For `POST /admin/tries/ID/answers/QUESTION`. */
  readonly question: string;
  readonly method: 'elicitation/create' | 'sampling/createMessage' | 'roots/list';
  /** `message`, and `requestedSchema` or `url`; what the server sent, without secrets. */
  readonly params: Readonly<Record<string, unknown>>;
}

/** `POST /admin/tries/ID/answers/QUESTION` */
export interface TryAnswer {
  readonly action: 'accept' | 'decline' | 'cancel';
  readonly content?: Readonly<Record<string, unknown>>;
}

/* ----------------------------------------------------------------- toolsets */

/** `GET /admin/toolsets` */
export interface ToolsetsReport {
  readonly toolsets: readonly ToolsetRow[];
  readonly problems: readonly string[];
  /** The toolset that all have who have not chosen themselves; null for none. */
  readonly equipped: string | null;
  /** It should be equipped and does not exist. */
  readonly missing: string | null;
  /** Whether toolsets can be equipped at all. */
  readonly canEquip: boolean;
}

export interface ToolsetRow {
  readonly name: string;
  readonly description: string;
  /** Names and patterns, as saved. */
  readonly tools: readonly string[];
  /** How many tools that means now, and about how many tokens they cost. */
  readonly size: number;
  readonly tokens: number;
  readonly equipped: boolean;
  /** Whether it is a file that can be changed. Others are in the configuration, or made for a server. */
  readonly editable: boolean;
  readonly place: string;
  /** The sessions that have it equipped. */
  readonly sessions: readonly { readonly id: string; readonly agent: string; readonly client: string | null }[];
}

/** `GET /admin/toolsets/NAME` */
export interface ToolsetDetail extends ToolsetRow {
  readonly members: readonly {
    /** As a toolset names it. */
    readonly name: string;
    /** Null if no server has it now. */
    readonly exposed: string | null;
    /** What it does, or why it is missing. */
    readonly description: string;
    readonly tokens: number;
  }[];
}

/**
 * Changes go to the commands: `toolsets-create` `{ name, description, tools, place: 'project' | 'user' }`,
 * `toolsets-edit` `{ name, description?, add: [], remove: [], tools? }`, `toolsets-rename` `{ name, to }`,
 * `toolsets-delete` `{ name }`, `toolsets-equip` `{ name: string | null, who?: 'all' | { agent } | { session } }`,
 * `toolsets-choices` `{ chosen: [] }` (every tool with its tokens).
 */
export interface ToolChoiceRow {
  readonly name: string;
  readonly description: string;
  readonly tokens: number;
  readonly isChosen: boolean;
}

/* ------------------------------------------------------------------- access */

/** `GET /admin/access?kind=tool&q=&server=&offset=&limit=&agents=a,b`: a window of rows; every agent unless `agents` says which. */
export interface AccessMatrix extends Page {
  readonly hasPolicy: boolean;
  /** Whether the policy is only tried. */
  readonly dryRun: boolean;
  readonly agents: readonly string[];
  /** Agents that were left out because there are too many (the limit is 50 a request). */
  readonly moreAgents: readonly string[];
  readonly rows: readonly AccessRow[];
}

export interface AccessRow {
  readonly name: string;
  readonly kind: ItemKind;
  readonly server: string;
  readonly category: string | null;
  /** One for each of `agents`, in the same order. */
  readonly cells: readonly AccessCell[];
}

/** `seen`: allowed and in its first list. `allowed`: may be used, and is not in the first list. `asks`: needs a person. */
export type AccessCell = 'seen' | 'allowed' | 'asks' | 'denied' | 'away';

/** `POST /admin/commands/explain` `{ name, agent }` answers with a list of these. */
export interface ExplainRow {
  readonly name: string;
  readonly kind: ItemKind;
  readonly server: string;
  readonly upstreamName: string;
  /** What it does, such as `read`, who says so, and what it is about. */
  readonly category: { readonly effect: string; readonly by: string; readonly domain: string };
  readonly agent: string;
  readonly allowed: boolean;
  readonly active: boolean;
  readonly limits: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  readonly approvals: readonly string[];
  readonly findings: readonly { readonly rule: string; readonly verdict: string; readonly text: string }[];
  readonly unavailable?: string;
}

/** `GET /admin/access/policy`: the part of the configuration that decides, as JSON that can be edited. */
export interface PolicyText {
  /** The key in the configuration and its value, as indented JSON. */
  readonly text: string;
  readonly file: string | null;
}

/** `POST /admin/access/dry-run`; 422 with `line` if the text cannot be used. Nothing is changed. */
export interface DryRunRequest {
  readonly text: string;
  readonly agents?: readonly string[];
}

export interface DryRunReport {
  /** What would change, at most 1,000. */
  readonly changes: readonly {
    readonly agent: string;
    readonly name: string;
    readonly kind: ItemKind;
    readonly server: string;
    readonly before: 'allowed' | 'denied';
    readonly after: 'allowed' | 'denied';
    /** The rule that would decide, and what it says. */
    readonly rule: string;
    readonly reason: string;
  }[];
  readonly total: number;
  /** By agent: how many tools it could use before and after. */
  readonly agents: readonly { readonly agent: string; readonly before: number; readonly after: number }[];
  readonly warnings: readonly string[];
}

/** `GET /admin/agents` */
export interface AgentsReport {
  readonly agents: readonly AgentRow[];
}

export interface AgentRow {
  readonly name: string;
  readonly description: string;
  /** Where its tokens come from. Those of the configuration cannot be changed here. */
  readonly from: readonly ('configuration' | 'agents')[];
  readonly tokens: readonly { readonly created: string | null; readonly expires: string | null }[];
  readonly admin: boolean;
  readonly tasks: readonly string[] | null;
  readonly sessions: number;
}

/** `POST /admin/agents`; answers with `NewAgentToken`. */
export interface AgentRequest {
  readonly name: string;
  readonly description?: string;
  /** Milliseconds; absent or null for a token that does not expire. */
  readonly lifetime?: number | null;
}

/** `POST /admin/agents/NAME/rotate`; answers with `NewAgentToken`. `DELETE /admin/agents/NAME` revokes. */
export interface RotateRequest {
  /** Milliseconds for which the old tokens stay valid. */
  readonly grace?: number;
  readonly lifetime?: number | null;
}

/** Shown once. It is not stored. */
export interface NewAgentToken {
  readonly name: string;
  readonly token: string;
  readonly expires: string | null;
}

/* ---------------------------------------------------------------- approvals */

/** `GET /admin/approvals` */
export interface ApprovalsReport {
  readonly approvals: readonly ApprovalRow[];
}

export interface ApprovalRow {
  readonly id: string;
  readonly kind: 'call' | 'access' | 'prompt';
  readonly agent: string;
  readonly tool: string;
  /** As JSON text, whole, without secrets. */
  readonly arguments: string;
  readonly reason: string;
  readonly asked: string;
  readonly expires: string;
  readonly approvers: readonly string[];
  readonly require: number;
  readonly approved: readonly string[];
}

/** `POST /admin/approvals/ID` */
export interface DecisionRequest {
  readonly decision: 'approve' | 'deny';
  readonly reason?: string;
  readonly by?: string;
  /** Milliseconds for which the same agent need not ask again for the same tool; at most 7 days. */
  readonly lasting_ms?: number | null;
}

export interface DecisionReport {
  readonly id: string;
  readonly decision: 'approve' | 'deny';
  /** How many more have to approve. */
  readonly more: number;
}

/* --------------------------------------------------------------- namespaces */

/** `GET /admin/namespaces`: folders of tools. */
export interface NamespacesReport {
  readonly namespaces: readonly NamespaceRow[];
}

export interface NamespaceRow {
  readonly name: string;
  readonly folder: string;
  readonly state: ServerStateWord | 'unserved';
  readonly detail: string;
  readonly languages: readonly string[];
  readonly files: number;
  readonly tools: number;
  readonly problems: number;
  readonly missingSecrets: readonly string[];
  /** Whether it is in the data folder, so that it can be changed here. */
  readonly managed: boolean;
}

/** `GET /admin/namespaces/NAME` */
export interface NamespaceDetail extends NamespaceRow {
  readonly description: string;
  readonly sources: readonly NamespaceFile[];
  readonly fileProblems: readonly BrokenFile[];
  readonly secrets: readonly SecretRow[];
  readonly packages: {
    readonly python: readonly string[];
    readonly node: readonly string[];
    /** What the file of requirements says, if it cannot be read. */
    readonly problem: string | null;
  };
  readonly isolation: string | null;
  /** The end of what its worker wrote. */
  readonly output: string;
}

export interface NamespaceFile {
  readonly file: string;
  readonly language: string;
  readonly bytes: number;
  readonly modified: string;
  /** Names of its tools, as far as they can be read from the source. */
  readonly tools: readonly string[];
}

export interface SecretRow {
  readonly name: string;
  /** `global`, or the name of a namespace or server. */
  readonly scope: string;
  readonly status: 'set' | 'missing' | 'placeholder';
  readonly updated: string | null;
  /** Who asks for it. */
  readonly wantedBy: readonly string[];
}

/** `GET /admin/secrets`: names only, of the whole gateway. */
export interface SecretsReport {
  readonly secrets: readonly SecretRow[];
  /** Why secrets cannot be set now; null if they can. */
  readonly unusable: string | null;
}

/** `PUT /admin/secrets`; answers with `SecretRow`. No answer ever has a value. `DELETE /admin/secrets` `{ name, scope }`. */
export interface SecretRequest {
  readonly name: string;
  readonly scope: string;
  readonly value: string;
}

/** `DELETE /admin/secrets` */
export interface SecretName {
  readonly name: string;
  readonly scope: string;
}

/** `GET /admin/openapi.json` */
export interface AdminDocument {
  readonly openapi: string;
  readonly [more: string]: unknown;
}

/** `GET /admin/logs?source=&q=&limit=`: the last lines, oldest first. Only those since somebody began to look. */
export interface LogsReport {
  readonly lines: readonly LogRow[];
}

export interface LogRow {
  readonly id: number;
  readonly at: number;
  /** A server, a namespace, or `toolgate`. */
  readonly source: string;
  /** `output`: what a server wrote. Others are the gateway's own notes and events. */
  readonly kind: 'output' | 'note' | 'state' | 'change' | 'refused' | 'failure';
  readonly text: string;
}

/* -------------------------------------------------------------------- audit */

/**
 * `GET /admin/audit?q=&agent=&server=&tool=&status=&kind=&since=&until=&limit=&before=`: newest first. `since` and `until`
 * are times, or `30m`, `24h`, `7d`. `before` is the `cursor` of the answer before. `q` is words, all of which have to occur.
 */
export interface AuditPage {
  readonly records: readonly AuditRow[];
  /** For the next, older window; null if there is none. */
  readonly cursor: string | null;
  readonly damaged: number;
}

export interface AuditRow {
  readonly time: string;
  readonly id: string;
  readonly kind: 'call' | 'begun' | 'denial' | 'admin';
  readonly status: string;
  readonly agent?: string;
  readonly method?: string;
  readonly server?: string;
  readonly tool?: string;
  readonly name?: string;
  readonly ms?: number;
  readonly error?: string | number;
  readonly rule?: string;
  readonly dry_run?: 'deny' | 'confirm';
  readonly bytes_in?: number;
  readonly bytes_out?: number;
  readonly through?: string;
  readonly act?: string;
  readonly detail?: string;
  readonly [more: string]: unknown;
}

/** `GET /admin/audit/usage?since=&until=&agent=&server=&tool=` */
export interface UsageReport {
  /** Most calls first, at most 1,000. */
  readonly rows: readonly UsageLine[];
  /** By day, oldest first, and within a day by agent. */
  readonly days: readonly UsageDay[];
  readonly damaged: number;
}

export interface UsageLine {
  readonly agent: string;
  readonly server: string;
  readonly name: string;
  readonly calls: number;
  readonly errors: number;
  readonly denials: number;
  readonly p50: number | null;
  readonly p99: number | null;
  readonly bytesIn: number;
  readonly bytesOut: number;
}

export interface UsageDay {
  readonly day: string;
  readonly agent: string;
  readonly calls: number;
  readonly errors: number;
  readonly denials: number;
}

/** `POST /admin/audit/verify` */
export interface VerifyReport {
  readonly files: number;
  readonly sound: number;
  readonly unlisted: number;
  readonly problems: readonly { readonly file: string; readonly line: number; readonly message: string }[];
}

/* --------------------------------------------------- logins and the registry */

export interface LoginState {
  readonly who: string | null;
  readonly issuer: string;
  readonly expires: string | null;
}

/** `GET /admin/logins`: servers with an address. */
export interface LoginsReport {
  readonly servers: readonly LoginRow[];
  readonly unusable: string | null;
}

export interface LoginRow {
  readonly server: string;
  readonly url: string;
  readonly state: ServerStateWord;
  readonly detail: string;
  /** Whether somebody can log in to it. */
  readonly canLogIn: boolean;
  readonly login: LoginState | null;
  /** While somebody is asked to log in: where, until when; the last failure in words. */
  readonly pending: { readonly url: string; readonly expires: string } | null;
  readonly failure: string | null;
}

/** `POST /admin/logins/SERVER`: begins. The page opens `url` in a new window. `DELETE /admin/logins/SERVER` logs out. */
export interface StartedLoginReport {
  readonly url: string;
  readonly expires: string;
}

/** `GET /admin/registry?q=` */
export interface RegistryReport {
  readonly registry: string;
  readonly servers: readonly {
    readonly name: string;
    readonly description: string;
    readonly version: string;
    readonly package: string;
    readonly package_type: string;
    readonly source_url: string;
  }[];
}

/** `POST /admin/registry/install` */
export interface InstallServerRequest {
  readonly package: string;
  readonly namespace: string;
  readonly kind?: 'npm' | 'pypi' | 'oci' | 'remote';
  readonly inputs?: Readonly<Record<string, string>>;
}

export type InstallServerReport =
  | {
      readonly installed: true;
      readonly name: string;
      readonly version: string;
      readonly namespace: string;
      readonly file: string;
      readonly secrets: readonly string[];
      readonly notes: readonly string[];
    }
  | {
      readonly installed: false;
      readonly error: string;
      /** What to ask the person for, and send as `inputs`. */
      readonly inputs: readonly {
        readonly name: string;
        readonly description: string;
        readonly choices?: readonly string[];
      }[];
    };

/** `POST /admin/reload`: reads everything again. `POST /admin/servers/KEY/restart` answers with `ServerCard`. */
export interface ReloadReport {
  readonly reloaded: true;
  readonly namespaces: readonly string[];
  readonly restarted: readonly string[];
  readonly problems: readonly SourceProblem[];
}

/* ------------------------------------------------------------------- events */

/**
 * `GET /admin/events?topics=ticks,calls,servers,sessions,approvals,catalog,logs,toolsets,logins`: a stream of events, for
 * `EventSource`. Each name is a topic with its data. They come in batches: soon after something happened, and once a second.
 */
export interface StreamEvents {
  /** First, and after a reconnection. Then come `servers`, `sessions`, `approvals` and `catalog` as they are now. */
  readonly hello: { readonly version: string; readonly time: number; readonly replica: ReplicaInfo | null };
  /** Once a second. */
  readonly ticks: Tick;
  /**
   * New and ended calls, oldest first: soon, or once a second while more than about 50 calls come in a second. Of more than
   * people can read, those that went well are `skipped`: about 50 of them are sent in a second, after the first 120, and 200
   * calls at once. `GET /admin/calls` still has them. `ended` is how many calls have ended, as there: who has asked since then
   * has those that were skipped.
   */
  readonly calls: { readonly calls: readonly CallRow[]; readonly skipped: number; readonly ended: number };
  /** Servers of which something changed, and those that are gone. */
  readonly servers: { readonly changed: readonly ServerCard[]; readonly gone: readonly string[] };
  readonly sessions: SessionCounts;
  readonly approvals: ApprovalsReport;
  /** There is a new catalog: list again. */
  readonly catalog: { readonly version: number };
  readonly logs: { readonly lines: readonly LogRow[]; readonly skipped: number };
  /** Toolsets, or who has which, changed: list again. */
  readonly toolsets: Readonly<Record<string, never>>;
  readonly logins: Readonly<Record<string, never>>;
  /** The session has ended, or the gateway stops. The stream ends after it. */
  readonly bye: { readonly reason: string };
}

export type StreamTopic = Exclude<keyof StreamEvents, 'hello' | 'bye'>;
