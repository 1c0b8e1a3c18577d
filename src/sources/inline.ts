/** A source whose tools are functions of this very process: nothing is started, and a call is a call. */

import { GatewayError } from '../base/errors.ts';
import { type EventSink, redacted } from '../base/events.ts';
import { isObject, type JsonObject } from '../base/objects.ts';
import { EMPTY_OFFER, type Offer, readItems } from '../catalog/item.ts';
import { UNLIMITED } from '../config/call-limits.ts';
import type { ServerConfig } from '../config/servers.ts';
import type { SourceRequest, Ticket } from '../protocol/contract.ts';
import { toBytes } from '../protocol/json.ts';
import { readMessage } from '../protocol/read.ts';
import { wireBytes } from '../protocol/rewrite.ts';
import { notificationMessage } from '../protocol/rpc.ts';
import { fault } from '../tools/fault.ts';
import type { RunnableTool } from '../tools/read-tool.ts';
import { type RunSink, ToolRun } from '../tools/tool-run.ts';
import { deliverLog, deliverNotification } from './attribution.ts';
import { NO_TASKS } from './handshake.ts';
import { closedError, PendingRequests } from './pending.ts';
import type { Source } from './source.ts';
import { errorResult, printRequest } from './worker-wire.ts';

export interface InlineContext {
  readonly events: EventSink;
  readonly redact: (text: string) => string;
  /** Bytes that one result may have. */
  readonly maxResult: () => number;
}

const DAY = 86_400_000;

/** How functions are served. */
export function inlineConfig(key: string, namespace: string, description: string, timeout: number): ServerConfig {
  return {
    key,
    namespace,
    launch: { kind: 'inline' },
    launchHash: '',
    description,
    enabled: true,
    required: false,
    start: 'eager',
    idleStop: null,
    // What one call breaks is not broken for others, and nothing is kept.
    share: 'session',
    timeout,
    totalTimeout: Math.max(timeout, DAY),
    startTimeout: 0,
    healthInterval: 0,
    limits: UNLIMITED,
    tools: [],
  };
}

/** `namespace` is what the tools are told, whatever stands before their names. */
export function createInlineSource(
  key: string,
  namespace: string,
  tools: readonly RunnableTool[],
  context: InlineContext,
): Source {
  const { events, redact } = context;
  const byName = new Map(tools.map((tool) => [tool.name, tool]));
  const { items, problems } = readItems('tool', toBytes({ tools: tools.map(({ definition }) => definition) }));
  const offer: Offer = { ...EMPTY_OFFER, items, problems };
  const since = new Date().toISOString();
  let closed = false;
  /** Most sources of a client that only looks around are never called. */
  let pending: PendingRequests | null = null;

  const waiting = () =>
    (pending ??= new PendingRequests(key, { abandoned: ({ carrier }) => carrier?.abort(CANCELLED) }));

  const line: RunSink = {
    namespace,
    folder: process.cwd(),
    get maxLine() {
      return context.maxResult();
    },
    succeed: ({ id }, json) => waiting().deliver(id as number, Buffer.from(json)),
    fail: ({ id }, why) => waiting().deliver(id as number, errorResult(redacted(why, redact) as object)),
    progress({ id }, progress, total, message) {
      const params = toBytes({ progressToken: id, progress, total, message });
      deliverNotification(waiting(), readMessage(notificationMessage('notifications/progress', params)), null);
    },
    log({ id, tool }, level, data) {
      const params = logParams(level, `${namespace}.${tool.name}`, data);
      deliverLog(waiting(), readMessage(notificationMessage('notifications/message', params)), id as number);
    },
    threw: ({ tool }, error) => events.emit('failure', { where: `${key}: ${tool.name}`, error }),
  };

  function call(request: SourceRequest): Ticket {
    const entry = waiting().add(request);
    if (closed) {
      queueMicrotask(() => waiting().fail(entry.id, closedError(key, undefined)));
      return entry;
    }
    const asked = JSON.parse(wireBytes(printRequest(entry.id, request)).toString()) as JsonObject;
    const tool = byName.get(asked.tool as string);
    const given = asked.arguments;
    if (tool === undefined)
      waiting().deliver(entry.id, errorResult(fault('tool_not_found', `There is no tool "${asked.tool}".`)));
    else if (given !== undefined && given !== null && !isObject(given))
      waiting().deliver(
        entry.id,
        errorResult(fault('invalid_arguments', 'The arguments of a tool are a JSON object.')),
      );
    else {
      const running = new ToolRun(line, entry.id, tool, request.token !== null, tool.timeoutMs, request.agent ?? null);
      entry.carrier = running;
      void running.execute(given);
    }
    return entry;
  }

  async function close(): Promise<void> {
    closed = true;
    for (const entry of pending?.all() ?? []) entry.carrier?.abort(CANCELLED);
    pending?.failAll(closedError(key, undefined));
  }

  const source: Source = {
    offer,
    get present() {
      return !closed;
    },
    get inFlight() {
      return pending?.size ?? 0;
    },
    tried: Promise.resolve(),
    status: () => ({
      state: closed ? 'closed' : 'up',
      detail: '',
      since,
      history: [],
      revision: null,
      pid: process.pid,
      restarts: 0,
      checks: { asked: 0, missed: 0 },
      stderr: '',
    }),
    update() {},
    revive() {},
    subscribes: false,
    subscriptions: () => NO_SUBSCRIPTIONS,
    wanted: [],
    tell() {},
    leave() {},
    completes: false,
    tasks: NO_TASKS,
    setLogLevel() {},
    freshen() {},
    call,
    async drain() {
      const latest = Date.now() + DRAIN;
      while (!closed && source.inFlight > 0 && Date.now() < latest)
        await new Promise((resolve) => setTimeout(resolve, 20));
      await close();
    },
    close,
  };
  return source;
}

/** What calls under way have to finish. */
const DRAIN = 60_000;

const CANCELLED = new Error('The call was cancelled.');

const NO_SUBSCRIPTIONS = {
  async add() {
    throw new GatewayError('method_unknown', 'Functions have no resources to subscribe to.');
  },
  remove() {},
};

function logParams(level: string, logger: string, data: unknown): Buffer {
  try {
    return toBytes({ level, logger, data: data === undefined ? null : data });
  } catch (error) {
    return toBytes({ level, logger, data: `(${(error as Error).message})` });
  }
}
