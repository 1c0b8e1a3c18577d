/** A source whose tools are functions of this process: nothing is started, and a call is a function call. */
import { type EventSink, redacted } from '../base/events.ts';
import type { JsonObject } from '../base/objects.ts';
import { EMPTY_OFFER, KINDS, kindWords, type Offer, readItems } from '../catalog/item.ts';
import { UNLIMITED } from '../config/call-limits.ts';
import type { ServerConfig } from '../config/servers.ts';
import type { SourceRequest, Ticket } from '../protocol/contract.ts';
import { toBytes } from '../protocol/json.ts';
import { readMessage } from '../protocol/read.ts';
import { wireBytes } from '../protocol/rewrite.ts';
import { notificationMessage } from '../protocol/rpc.ts';
import { ItemTable } from '../tools/item-table.ts';
import type { RunnableItem } from '../tools/read-tool.ts';
import { type RunSink, ToolRun } from '../tools/tool-run.ts';
import { deliverLog, deliverNotification } from './attribution.ts';
import { closedError, PendingRequests } from './pending.ts';
import type { Source, SourceStatus } from './source.ts';
import { failRequest } from './tickets.ts';
import { askFor } from './tool-questions.ts';
import { deliverFault, printRequest } from './worker-wire.ts';

export interface InlineContext {
  readonly events: EventSink;
  readonly redact: (text: string) => string;
  /** Bytes that one result may have. */
  maxResult(): number;
}

const DAY = 86_400_000;
/** How long running calls have to finish when the source is drained. */
const DRAIN = 60_000;
const DRAIN_LOOK = 20;

const CANCELLED = new Error('The call was cancelled.');

/** The server settings of a source of functions. */
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
    // A call that fails breaks nothing for others, and no state is kept.
    share: 'session',
    timeout,
    totalTimeout: Math.max(timeout, DAY),
    startTimeout: 0,
    healthInterval: 0,
    limits: UNLIMITED,
    tools: [],
  };
}

/** What these items are as a source. */
export function offerOf(given: readonly RunnableItem[]): Offer {
  const listed = KINDS.map((kind) => {
    const definitions = given.filter((item) => item.kind === kind).map(({ definition }) => definition);
    return readItems(kind, toBytes({ [kindWords[kind].list]: definitions }));
  });
  return {
    ...EMPTY_OFFER,
    items: listed.flatMap(({ items }) => items),
    problems: listed.flatMap(({ problems }) => problems),
  };
}

/** `namespace` is what tools find in their context. The prefix of their names may be another one. */
export function createInlineSource(
  key: string,
  namespace: string,
  given: readonly RunnableItem[],
  context: InlineContext,
): Source {
  return new InlineSource(key, namespace, given, context);
}

class InlineSource implements Source {
  readonly offer: Offer;
  readonly tried = Promise.resolve();
  readonly #key: string;
  readonly #namespace: string;
  readonly #table: ItemTable;
  readonly #context: InlineContext;
  readonly #since = new Date().toISOString();
  /** Null before the first call: many sources are only listed and never called. */
  #pending: PendingRequests | null = null;
  #sink: RunSink | null = null;
  #closed = false;

  constructor(key: string, namespace: string, given: readonly RunnableItem[], context: InlineContext) {
    this.#key = key;
    this.#namespace = namespace;
    this.#table = new ItemTable(given);
    this.#context = context;
    this.offer = offerOf(given);
  }

  get present(): boolean {
    return !this.#closed;
  }

  get inFlight(): number {
    return this.#pending?.size ?? 0;
  }

  get completes(): boolean {
    return this.#table.completes;
  }

  status(): SourceStatus {
    return {
      state: this.#closed ? 'closed' : 'up',
      detail: '',
      since: this.#since,
      history: [],
      revision: null,
      pid: process.pid,
      restarts: 0,
      checks: { asked: 0, missed: 0 },
      stderr: '',
      problems: [],
    };
  }

  call(request: SourceRequest): Ticket {
    if (this.#closed) return failRequest(request, closedError(this.#key, undefined));
    this.#pending ??= new PendingRequests(this.#key, { abandoned: ({ carrier }) => carrier?.abort(CANCELLED) });
    this.#sink ??= this.#createSink(this.#pending);
    const pending = this.#pending.add(request);
    const message = JSON.parse(wireBytes(printRequest(pending.id, request)).toString()) as JsonObject;
    const asked = this.#table.find(message, this.#namespace);
    if ('code' in asked) deliverFault(this.#pending, pending.id, asked);
    else {
      const { item, input } = asked;
      const run = new ToolRun(this.#sink, pending.id, item, request.token !== null, item.timeoutMs, request);
      pending.carrier = run;
      void run.execute(input);
    }
    return pending;
  }

  #createSink(pending: PendingRequests): RunSink {
    const { events, redact, maxResult } = this.#context;
    const key = this.#key;
    const namespace = this.#namespace;
    return {
      namespace,
      folder: process.cwd(),
      get maxLine() {
        return maxResult();
      },
      succeed: ({ id }, json) => pending.deliver(id as number, Buffer.from(json)),
      fail: ({ id }, why) => deliverFault(pending, id as number, redacted(why, redact) as object),
      progress({ id }, progress, total, message) {
        const params = toBytes({ progressToken: id, progress, total, message });
        deliverNotification(pending, readMessage(notificationMessage('notifications/progress', params)), null);
      },
      log({ id, tool }, level, data) {
        const params = logParams(level, `${namespace}.${tool.name}`, data);
        deliverLog(pending, readMessage(notificationMessage('notifications/message', params)), id as number);
      },
      ask: ({ id }, method, params, done) => askFor(pending.get(id as number), key, method, params, done),
      threw: ({ tool }, error) => events.emit('failure', { where: `${key}: ${tool.name}`, error }),
    };
  }

  async drain(): Promise<void> {
    const latest = Date.now() + DRAIN;
    while (!this.#closed && this.inFlight > 0 && Date.now() < latest)
      await new Promise((resolve) => setTimeout(resolve, DRAIN_LOOK));
    await this.close();
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const { carrier } of this.#pending?.all() ?? []) carrier?.abort(CANCELLED);
    this.#pending?.failAll(closedError(this.#key, undefined));
  }
}

function logParams(level: string, logger: string, data: unknown): Buffer {
  try {
    return toBytes({ level, logger, data: data === undefined ? null : data });
  } catch (error) {
    return toBytes({ level, logger, data: `(${(error as Error).message})` });
  }
}
