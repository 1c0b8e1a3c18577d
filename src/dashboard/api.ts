/** The handlers of the API behind the dashboard. Each answers with a value, or takes the response itself. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type * as z from 'zod';
import { GatewayError } from '../base/errors.ts';
import { VERSION } from '../base/version.ts';
import { issueText, schemaIssues } from '../config/issues.ts';
import { readJson } from '../doors/http/wire/body.ts';
import { requireJson } from '../doors/http/wire/content-types.ts';
import { sendJson } from '../doors/http/wire/reply.ts';
import type { Gateway } from '../gateway/gateway.ts';
import { findKey } from '../store/secret-key.ts';
import { accessMatrix, dryRunPolicy, policyText } from './access-matrix.ts';
import { addAgent, agentRows, revokeAgent, rotateAgent } from './agent-rows.ts';
import type { ApiContext } from './api-context.ts';
import type * as types from './api-types.ts';
import { auditPage, auditUsage, verifyAll } from './audit-pages.ts';
import { catalogWindow, itemDetail } from './catalog-window.ts';
import type { EndpointName } from './endpoints.ts';
import {
  agentSchema,
  answerSchema,
  dryRunSchema,
  installSchema,
  recordingSchema,
  rotateSchema,
  secretNameSchema,
  secretSchema,
  trySchema,
  wordsOf,
} from './inputs.ts';
import { LiveCalls, MOST_CALLS } from './live-calls.ts';
import { createLogins } from './logins.ts';
import { namespaceDetail, namespaceRows, removeSecret, secretRows, setSecret } from './namespace-rows.ts';
import { overview } from './overview.ts';
import { byOf, type PageSession } from './page-sessions.ts';
import { serverCard, withProcesses } from './server-cards.ts';
import { sessionPage } from './session-rows.ts';
import { createStreams, replicaOf, TOPICS } from './streams.ts';
import { toolsetDetail, toolsetRows } from './toolset-rows.ts';
import { createTries } from './tries.ts';

export interface ApiCall {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly headers: readonly string[];
  /** The values in the path. */
  readonly parts: readonly string[];
  readonly query: URLSearchParams;
  readonly session: PageSession;
}

/** For handlers that answer themselves. */
const ANSWERED = Symbol('answered');

/** Null answers with 204. */
export type ApiHandler = (call: ApiCall) => unknown;

export interface Api {
  readonly handlers: Readonly<Record<EndpointName, ApiHandler>>;
  run(handler: ApiHandler, call: ApiCall): Promise<void>;
  /** What a handler answers, for a request that reached another replica. */
  answer(handler: ApiHandler, call: ApiCall): Promise<unknown>;
  close(): void;
}

/** Shared, because every call that is watched asks. */
const NOT_RECORDED: types.Recording = { arguments: false, results: false, by: null, until: null };

const MINUTE = 60_000;
const MOST_ROWS = 500;
const DEFAULT_ROWS = 100;

export function createApi(context: ApiContext): Api {
  const { gateway, sessions } = context;
  let recorded: { readonly arguments: boolean; readonly results: boolean; readonly until: number } | null = null;
  let forgetting: NodeJS.Timeout | undefined;
  const calls = new LiveCalls({ redact: gateway.redact, recording, inFlight: () => gateway.metrics.inFlight });
  const streams = createStreams({ gateway, calls, isValid: sessions.isValid });
  const tries = createTries(gateway, sessions.isValid);
  const logins = createLogins(gateway, () => streams.changed('logins'));

  function recording(): types.Recording {
    if (recorded !== null && Date.now() < recorded.until)
      return {
        arguments: recorded.arguments,
        results: recorded.results,
        by: 'page',
        until: new Date(recorded.until).toISOString(),
      };
    const { arguments: withArguments, results } = gateway.config.audit;
    const isOn = isAudited(gateway) && (withArguments || results);
    return isOn ? { arguments: withArguments, results, by: 'audit', until: null } : NOT_RECORDED;
  }

  function stopRecording(): types.Recording {
    recorded = null;
    clearTimeout(forgetting);
    calls.forgetValues();
    calls.renew();
    return recording();
  }

  const body = <Schema extends z.ZodType>(request: IncomingMessage, schema: Schema, limit = MOST_BODY) =>
    readBody(request, schema, limit, gateway.config.limits.depth);
  const act = (what: string, detail: string, session: PageSession) =>
    gateway.events.emit('admin', { act: what, agent: '', detail, ...byOf(session) });

  const handlers: Record<EndpointName, ApiHandler> = {
    async session({ session }): Promise<types.SessionInfo> {
      const { config } = gateway;
      return {
        version: VERSION,
        who: session.who,
        expires: Number.isFinite(session.expires) ? new Date(session.expires).toISOString() : null,
        started: gateway.outline().started,
        file: config.file,
        url: context.url(),
        features: {
          audit: isAudited(gateway),
          registry: true,
          policy: config.policy !== null,
          namespaces: true,
          secrets: (await findKey(config.vault).catch(() => null)) !== null,
          toolsets: true,
        },
        recording: recording(),
        replica: replicaOf(gateway),
      };
    },
    async leave({ request, response, headers }) {
      const cookie = await sessions.leave(request);
      response.writeHead(204, [...headers, 'set-cookie', cookie, 'cache-control', 'no-store']).end();
      return ANSWERED;
    },
    async makeLink({ request }): Promise<types.NewLink> {
      requireJson(request.headers);
      const origin = context.origin();
      if (origin === null)
        throw new GatewayError(
          'usage',
          'This gateway has no HTTP address, so there is no page. Start one with toolgate serve.',
        );
      const { code, expires } = await sessions.makeCode();
      return { url: `${origin}/admin/enter/${code}`, expires: new Date(expires).toISOString() };
    },
    async record({ request, session }): Promise<types.Recording> {
      const asked = await body(request, recordingSchema);
      recorded = { ...asked, until: Date.now() + asked.minutes * MINUTE };
      clearTimeout(forgetting);
      forgetting = setTimeout(stopRecording, asked.minutes * MINUTE).unref();
      act('recording_started', `${asked.minutes} minutes`, session);
      calls.renew();
      return recording();
    },
    stopRecording({ session }) {
      act('recording_stopped', '', session);
      return stopRecording();
    },
    overview({ query }) {
      const since = numberOf(query, 'since', 0, Number.MAX_SAFE_INTEGER);
      return overview(gateway, context.url(), since === 0 ? calls.ticks : calls.ticks.filter(({ t }) => t >= since));
    },
    sessions: ({ query }) => sessionPage(gateway, query.get('q') ?? '', ...windowOf(query)),
    events({ response, headers, query, session }) {
      const asked = (query.get('topics') ?? '').split(',').filter((one) => one !== '');
      const unknown = asked.find((one) => !(TOPICS as readonly string[]).includes(one));
      if (unknown !== undefined)
        throw new GatewayError(
          'params_invalid',
          `There is no topic ${JSON.stringify(unknown.slice(0, 80))}. Topics: ${TOPICS.join(', ')}.`,
        );
      streams.open(response, headers, asked.length === 0 ? TOPICS : (asked as types.StreamTopic[]), session);
      return ANSWERED;
    },
    calls: ({ query }): types.RecentCalls => ({
      calls: calls.recent(numberOf(query, 'limit', DEFAULT_ROWS, MOST_CALLS)),
      skipped: calls.dropped,
      ended: calls.endedCount,
    }),
    call({ parts: [id = ''] }) {
      const found = /^\d{1,15}$/.test(id) ? calls.find(Number(id)) : null;
      if (found === null)
        throw new GatewayError('path_unknown', 'This call is not kept any more, or was before somebody looked.');
      return found;
    },
    async catalog({ query }) {
      await gateway.opening;
      const [offset, limit] = windowOf(query);
      return catalogWindow(gateway, query, offset, limit);
    },
    item: ({ parts: [kind = '', name = ''] }) => itemDetail(gateway, kind, name),
    async tryIt({ request, response, headers, session }) {
      await tries.start(await body(request, trySchema, gateway.config.limits.body), session, response, headers);
      return ANSWERED;
    },
    cancelTry: ({ parts: [id = ''] }) => tries.cancel(id),
    async answerTry({ request, parts: [id = '', question = ''] }) {
      tries.answer(id, question, await body(request, answerSchema, gateway.config.limits.body));
      return null;
    },
    toolsets: () => toolsetRows(gateway),
    toolset: ({ parts: [name = ''] }) => toolsetDetail(gateway, name),
    access: ({ query }) => accessMatrix(gateway, query, ...windowOf(query)),
    policy: () => policyText(gateway),
    dryRun: async ({ request }) => dryRunPolicy(gateway, await body(request, dryRunSchema, gateway.config.limits.body)),
    agents: () => agentRows(gateway),
    addAgent: async ({ request, session }) => addAgent(context, session, await body(request, agentSchema)),
    rotateAgent: async ({ request, session, parts: [name = ''] }) =>
      rotateAgent(context, session, name, await body(request, rotateSchema)),
    revokeAgent: ({ session, parts: [name = ''] }) => revokeAgent(context, session, name),
    namespaces: () => namespaceRows(gateway),
    namespace: ({ parts: [name = ''] }) => namespaceDetail(gateway, name),
    secrets: () => secretRows(gateway),
    setSecret: async ({ request, session }) =>
      setSecret(gateway, session, await body(request, secretSchema, MOST_SECRET)),
    removeSecret: async ({ request, session }) => removeSecret(gateway, session, await body(request, secretNameSchema)),
    logs({ query }): types.LogsReport {
      const source = query.get('source');
      const words = wordsOf(query.get('q'));
      const found = streams.lines.filter(
        (line) =>
          (source === null || line.source === source) && words.every((word) => line.text.toLowerCase().includes(word)),
      );
      return { lines: found.slice(-numberOf(query, 'limit', DEFAULT_ROWS * 2, MOST_ROWS * 2)) };
    },
    audit: ({ query }) => auditPage(gateway, query, numberOf(query, 'limit', DEFAULT_ROWS, MOST_ROWS)),
    usage: ({ query }) => auditUsage(gateway, query),
    verifyAudit: () => verifyAll(gateway),
    logins: () => logins.list(),
    startLogin: ({ session, parts: [server = ''] }) => logins.start(server, session),
    logOut: ({ session, parts: [server = ''] }) => logins.end(server, session),
    async registry({ query }): Promise<types.RegistryReport> {
      const { searchRegistry } = await import('../manager/installer/install.ts');
      const servers = await searchRegistry(query.get('q') ?? '', gateway.config, work());
      return { registry: gateway.config.registry.url, servers };
    },
    async install({ request, session }): Promise<types.InstallServerReport> {
      const { package: wanted, namespace, kind, inputs = {} } = await body(request, installSchema);
      const { installFromRegistry } = await import('../manager/installer/install.ts');
      const asked = { package: wanted, namespace, mode: 'attach', inputs, kind: kind ?? null, version: null } as const;
      const result = await installFromRegistry(asked, gateway.config, work(), context.trustServers([namespace]));
      if (!('installed' in result)) throw new GatewayError('internal', 'The registry was asked for something else.');
      if (!result.installed) return { installed: false, error: result.error, inputs: result.inputs };
      act('server_installed', `${result.name} ${result.version} as ${namespace}`, session);
      await gateway.change({ config: 'file', folders: true });
      const { name, version, file, secrets_needed: secrets, notes } = result;
      return { installed: true, name, version, namespace, file, secrets, notes };
    },
    async restart({ session, parts: [key = ''] }) {
      const restarted = await gateway.restart(key);
      if (!restarted)
        throw new GatewayError(
          'path_unknown',
          `There is no server ${JSON.stringify(key.slice(0, 80))} that can be restarted.`,
        );
      act('server_restarted', key, session);
      const status = gateway.statuses().find((one) => one.key === key);
      if (status === undefined) throw new GatewayError('path_unknown', 'The server is gone.');
      return withProcesses([serverCard(gateway, status)])[0];
    },
    async reload({ session }): Promise<types.ReloadReport> {
      const report = await gateway.change({ config: 'file', folders: true, secrets: true, tokens: true });
      const { restarted } = await report.settled;
      act('reload', '', session);
      const failures = report.failures.map(({ name, error }) => ({ source: name, message: String(error) }));
      const refused = report.refused === null ? [] : [{ source: 'configuration', message: report.refused }];
      const problems = [...refused, ...report.problems, ...failures].map(({ source, message }) => ({
        source,
        message: gateway.redact(message),
      }));
      return { reloaded: true, namespaces: [...gateway.namespaces()].sort(), restarted: [...restarted], problems };
    },
    async openApi() {
      const { adminDocument } = await import('./openapi.ts');
      return adminDocument(context.origin() ?? '');
    },
  };

  function work() {
    return { env: gateway.env, signal: null, progress: () => {} };
  }

  return {
    handlers,
    async run(handler, call) {
      await gateway.caughtUp();
      const value = await handler(call);
      if (value !== ANSWERED) sendValue(call, value);
    },
    async answer(handler, call) {
      await gateway.caughtUp();
      return handler(call);
    },
    close() {
      clearTimeout(forgetting);
      tries.close();
      streams.close();
    },
  };
}

/** Null is no content. */
export function sendValue(
  { request, response, headers }: Pick<ApiCall, 'request' | 'response' | 'headers'>,
  value: unknown,
): void {
  const fresh = [...headers, 'cache-control', 'no-store'];
  if (value === null || value === undefined) response.writeHead(204, fresh).end();
  else sendJson(response, 200, value, fresh);
  if (request.readable) request.resume();
}

/** `toolgate serve` writes the audit unless the configuration says otherwise. */
function isAudited({ config }: Gateway): boolean {
  return config.audit.enabled ?? true;
}

/* ------------------------------------------------------------- what is sent */

const MOST_BODY = 64 * 1_024;
const MOST_SECRET = 512 * 1_024;
const MOST_ISSUES = 5;

/** The body of a request. Throws if it is not right. */
async function readBody<Schema extends z.ZodType>(
  request: IncomingMessage,
  schema: Schema,
  limit: number,
  maxDepth: number,
): Promise<z.output<Schema>> {
  requireJson(request.headers);
  const value = (await readJson(request, limit, maxDepth)) ?? {};
  const read = schema.safeParse(value);
  if (read.success) return read.data;
  const issues = schemaIssues(schema, read.error, value).slice(0, MOST_ISSUES);
  throw new GatewayError('params_invalid', `The body is not right: ${issues.map(issueText).join(' ')}`);
}

/** A number in the query. Throws unless it is from 0 to `most`. */
function numberOf(query: URLSearchParams, name: string, usual: number, most: number): number {
  const given = query.get(name);
  if (given === null || given === '') return usual;
  if (!/^\d{1,15}$/.test(given)) throw new GatewayError('params_invalid', `"${name}" must be a whole number.`);
  return Math.min(Number(given), most);
}

function windowOf(query: URLSearchParams): [offset: number, limit: number] {
  return [numberOf(query, 'offset', 0, Number.MAX_SAFE_INTEGER), numberOf(query, 'limit', DEFAULT_ROWS, MOST_ROWS)];
}
