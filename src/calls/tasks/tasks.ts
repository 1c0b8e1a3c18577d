/**
 * MCP tasks: work that continues after the answer to its call. They are passed only between a client and a server of
 * the same era, because the tasks of the two eras are incompatible. Servers store them. The gateway only remembers
 * which principal started which, because the legacy era lists tasks and sends notifications about them without a
 * subscription.
 */
import { GatewayError, toGatewayError } from '../../base/errors.ts';
import type { ServerConfig } from '../../config/servers.ts';
import type { Sink, Ticket } from '../../protocol/contract.ts';
import { findMember, readElements, splice } from '../../protocol/json.ts';
import { type Message, readProgress } from '../../protocol/message.ts';
import { readMessage } from '../../protocol/read.ts';
import type { Era } from '../../protocol/revisions.ts';
import { notificationMessage } from '../../protocol/rpc.ts';
import { exchangeIds, idIn, taskIdOf } from '../../protocol/task.ts';
import { ask, UpstreamError } from '../../sources/ask.ts';
import { nextCursor } from '../../sources/lists.ts';
import type { Source } from '../../sources/source.ts';
import type { Call } from '../call.ts';
import type { Holder } from '../holder.ts';
import type { ReplicaRelay } from '../relay.ts';
import { createSeal, type Seal } from '../seal.ts';
import { AboutTaskSink, type IdExchange, MaybeTaskSink, TaskCall, taskUnknown, WantsTaskSink } from './task-calls.ts';
import { listenToTasks } from './task-listening.ts';

export interface McpTasks {
  /** Prepares a call whose answer may be an MCP task: the task ids in the answer are translated. */
  attend(call: Call): void;
  /** Sends a request about an MCP task of this principal. */
  call(principal: string, era: Era, message: Message, sink: Sink): Ticket;
  /** The result of `tasks/list`: the tasks that the principal started and that their servers still list. */
  list(principal: string): Promise<Buffer>;
  /** `notify` gets the parameters of each notification about one of these tasks. */
  listen(principal: string, ids: readonly string[], notify: (params: Buffer) => void): Promise<TaskSubscription>;
  /** From now on a client with a session gets notifications about the tasks that it starts. */
  join(owner: object, tell: (message: Buffer) => void): void;
  leave(owner: object): void;
  /** A legacy server sent a notification about an MCP task or its progress. */
  notified(sourceId: number | undefined, message: Message): void;
}

export interface TaskSubscription {
  /** The tasks whose servers agreed to report them. */
  readonly ids: readonly string[];
  stop(): void;
}

/** Identifies an MCP task by its server. */
interface TaskName {
  readonly sourceId: number;
  /** The server's own id for it. */
  readonly id: string;
}

/** A task with the replica in whose process it lives; empty if all reach it. */
interface OwnedTask extends TaskName {
  readonly owner: string;
}

interface StartedTask extends TaskName {
  readonly principal: string;
  /** The client that gets its notifications, as long as that client exists. */
  readonly owner: WeakRef<object>;
  /** The server reports progress under `progressToken`; the client expects it under `token`. */
  readonly progressToken: number;
  readonly token: Buffer | null;
}

type Find = (sourceId: number) => { readonly source: Source; readonly config: ServerConfig } | undefined;

/**
 * How many tasks are remembered for each principal, for lists and notifications. The oldest are dropped first, but can
 * still be requested by their id.
 */
const MOST_STARTED = 1_000;
/** How many principals are remembered. The limit is needed because tokens can name any number of them. */
const MOST_OWNERS = 4_096;
const MOST_PAGES = 100;
/** Asks another replica for its tasks. */
const LIST = readMessage(Buffer.from('{"jsonrpc":"2.0","id":1,"method":"tasks/list"}'));
/** A key without a listener, used if the owner no longer exists. */
const NOBODY = {};

/** How replicas name servers to each other, and pass on requests about tasks that live in a process of one of them. */
export interface TasksElsewhere {
  readonly relay: ReplicaRelay;
  /** The id of this replica. */
  readonly own: string;
  /** The first signs. */
  readonly keys: readonly Buffer[];
  keyOf(sourceId: number): string | undefined;
  idOf(key: string): number | undefined;
  /** Whether other replicas reach the same server, and not one of their own. */
  isCommon(sourceId: number): boolean;
}

export function createMcpTasks(find: Find, elsewhere: TasksElsewhere | null = null): McpTasks {
  const seal = createSeal(elsewhere?.keys);
  elsewhere?.relay.serve('task', (principal, era, message, holder) => {
    const ticket = call(principal, era, message, holder);
    return (reason) => ticket.cancel(reason);
  });
  elsewhere?.relay.serve('tasks', (principal, _era, _message, holder) => {
    listHere(principal).then(
      (tasks) => holder.result(writeList(tasks), 'legacy'),
      (error: unknown) => holder.fail(toGatewayError(error)),
    );
    return () => {};
  });
  /** The last progress token of an MCP task. Tokens count down from zero, so they never equal the id of a request. */
  let lastToken = 0;
  const listeners = new WeakMap<object, (message: Buffer) => void>();
  /** For each principal, the tasks it started, by server and id. */
  const started = new Map<string, Map<string, StartedTask>>();
  const byToken = new Map<number, StartedTask>();

  function exchangeFor(sourceId: number, principal: string, era: Era): IdExchange {
    return {
      out: (id) => sealTaskId(seal, { sourceId, id }, principal, era, elsewhere),
      back(id) {
        const task = openTaskId(seal, id, principal, era, elsewhere);
        return task === null || task.sourceId !== sourceId ? id : task.id;
      },
    };
  }

  function note(task: StartedTask): void {
    const own = started.get(task.principal) ?? new Map<string, StartedTask>();
    if (own.size === 0 && started.size >= MOST_OWNERS) forgetOldest();
    started.set(task.principal, own.set(keyOf(task), task));
    byToken.set(task.progressToken, task);
    if (own.size <= MOST_STARTED) return;
    const [key, oldest] = own.entries().next().value!;
    own.delete(key);
    byToken.delete(oldest.progressToken);
  }

  function forgetOldest(): void {
    const [principal, own] = started.entries().next().value!;
    started.delete(principal);
    for (const { progressToken } of own.values()) byToken.delete(progressToken);
  }

  function tell({ sourceId, principal, owner }: StartedTask, method: string, params: Buffer): void {
    const listener = listeners.get(owner.deref() ?? NOBODY);
    listener?.(notificationMessage(method, exchangeIds(params, exchangeFor(sourceId, principal, 'legacy').out)));
  }

  function tellProgress(sourceId: number, message: Message): void {
    const { bytes, method, paramsStart, paramsEnd } = message;
    const progress = readProgress(message);
    const task = progress === null ? undefined : byToken.get(progress.token);
    if (progress === null || task?.sourceId !== sourceId || task.token === null) return;
    const at = { start: progress.start - paramsStart, end: progress.end - paramsStart };
    tell(task, method, splice(bytes.subarray(paramsStart, paramsEnd), at, task.token));
  }

  function tellStatus(sourceId: number, message: Message): void {
    const { bytes, method, paramsStart, paramsEnd } = message;
    const key = keyOf({ sourceId, id: taskIdOf(message) ?? '' });
    for (const own of started.values()) {
      const task = own.get(key);
      if (task !== undefined) tell(task, method, bytes.subarray(paramsStart, paramsEnd));
    }
  }

  function open(text: string | null, principal: string, era: Era) {
    const task = text === null ? null : openTaskId(seal, text, principal, era, elsewhere);
    const slot = task === null ? undefined : find(task.sourceId);
    return task === null || slot === undefined ? null : { ...slot, task };
  }

  /** The tasks of this principal that one server lists; none if the server cannot be asked. */
  async function listOf(principal: string, sourceId: number, own: Map<string, StartedTask>): Promise<Buffer[]> {
    const slot = find(sourceId);
    // A server that is not running has no tasks, so it is not started just to list them.
    if (slot === undefined || slot.source.tasks?.lists !== true || slot.source.status().state !== 'up') return [];
    const { out } = exchangeFor(sourceId, principal, 'legacy');
    try {
      const all = await listAll(slot.source, slot.config.timeout);
      const known = all.filter((task) => own.has(keyOf({ sourceId, id: idIn(task) ?? '' })));
      return known.map((task) => exchangeIds(task, out));
    } catch (error) {
      // A server that has gone or refuses has no tasks to list. Any other error is a bug in Toolgate.
      if (error instanceof GatewayError || error instanceof UpstreamError) return [];
      throw error;
    }
  }

  /** The tasks of this principal that were started on this replica. */
  async function listHere(principal: string): Promise<Buffer[]> {
    const own = started.get(principal) ?? new Map<string, StartedTask>();
    const sources = new Set([...own.values()].map(({ sourceId }) => sourceId));
    const lists = await Promise.all([...sources].map((sourceId) => listOf(principal, sourceId, own)));
    return lists.flat();
  }

  function call(principal: string, era: Era, message: Message, sink: Sink): Ticket {
    const text = taskIdOf(message);
    if (text === null)
      throw new GatewayError('params_invalid', `${message.method} needs a string "taskId" in its parameters.`);
    const found = open(text, principal, era);
    if (found === null) throw taskUnknown();
    const { source, config, task } = found;
    if (elsewhere !== null && task.owner !== '' && task.owner !== elsewhere.own) {
      const cancel = elsewhere.relay.forward(task.owner, 'task', principal, era, message, sink as Holder);
      return { cancel };
    }
    const about = new AboutTaskSink(sink, exchangeFor(task.sourceId, principal, era), era);
    return source.call(new TaskCall(message, task.id, about, config.timeout));
  }

  return {
    attend(call) {
      const { message, inner, token } = call;
      const { principal } = call.by;
      const { sourceId, sourceKey } = call.entry;
      if (message.method !== 'tools/call') return;
      if (message.taskStart < 0) {
        call.inner = new MaybeTaskSink(inner, exchangeFor(sourceId, principal, 'modern'), sourceKey);
        return;
      }
      const owner = new WeakRef(inner.owner);
      // Progress arrives long after the call has ended. The token must be unique, so that it is not mistaken for a
      // request on another connection.
      const progressToken = --lastToken;
      const created = (id: string) => note({ sourceId, id, principal, owner, progressToken, token });
      call.inner = new WantsTaskSink(inner, exchangeFor(sourceId, principal, 'legacy'), created);
      // The MCP task lives in the server process that starts it, so later requests have to reach the same process.
      call.pinned = true;
      call.progressToken = progressToken;
    },
    call,
    async list(principal) {
      const away = elsewhere?.relay.askAll('tasks', principal, 'legacy', LIST);
      const here = await listHere(principal);
      const others = (await away)?.flatMap(tasksIn) ?? [];
      return writeList([...here, ...others]);
    },
    async listen(principal, ids, notify) {
      const found = ids
        .flatMap((id) => open(id, principal, 'modern') ?? [])
        .filter(({ source }) => source.tasks?.starts === true);
      const subscriptions = [...new Set(found.map(({ source }) => source))].map((source) => {
        const tasks = found.filter((one) => one.source === source);
        const { config, task } = tasks[0]!;
        const { out } = exchangeFor(task.sourceId, principal, 'modern');
        const wanted = tasks.map(({ task }) => task.id);
        const subscription = listenToTasks(source, config.key, wanted, config.timeout, (params) =>
          notify(exchangeIds(params, out)),
        );
        const agreed = subscription.agreed.then((ids) => wanted.filter((id) => ids.includes(id)).map(out));
        return { stop: subscription.stop, agreed };
      });
      return {
        ids: (await Promise.all(subscriptions.map(({ agreed }) => agreed))).flat(),
        stop() {
          for (const { stop } of subscriptions) stop();
        },
      };
    },
    join(owner, tell) {
      listeners.set(owner, tell);
    },
    leave(owner) {
      listeners.delete(owner);
    },
    notified(sourceId, message) {
      if (sourceId === undefined) return;
      if (message.method === 'notifications/progress') tellProgress(sourceId, message);
      else tellStatus(sourceId, message);
    },
  };
}

/**
 * The id by which a client knows an MCP task. It contains the server and the server's own id. It is sealed, so it is
 * valid only for the principal that started the task and only in the era it was started in.
 */
export function sealTaskId(
  seal: Seal,
  { sourceId, id }: TaskName,
  principal: string,
  era: Era,
  elsewhere: TasksElsewhere | null = null,
): string {
  const text = Buffer.from(id).toString('base64url');
  if (elsewhere === null) return seal.close(`${sourceId}.${text}`, principal, era);
  const server = Buffer.from(elsewhere.keyOf(sourceId) ?? '').toString('base64url');
  return seal.close(`${server}.${text}.${elsewhere.isCommon(sourceId) ? '' : elsewhere.own}`, principal, era);
}

/** Null if the text is not the id of a task of this principal in this era. */
export function openTaskId(
  seal: Seal,
  text: string,
  principal: string,
  era: Era,
  elsewhere: TasksElsewhere | null = null,
): OwnedTask | null {
  const parts = seal.open(text, principal, era)?.split('.');
  if (parts === undefined) return null;
  const [server = '', id = '', owner = ''] = parts;
  const sourceId = elsewhere === null ? Number(server) : elsewhere.idOf(Buffer.from(server, 'base64url').toString());
  return sourceId === undefined ? null : { sourceId, id: Buffer.from(id, 'base64url').toString(), owner };
}

function keyOf({ sourceId, id }: TaskName): string {
  return `${sourceId} ${id}`;
}

async function listAll(source: Source, timeout: number): Promise<Buffer[]> {
  const tasks: Buffer[] = [];
  let cursor: string | null = null;
  for (let page = 0; page < MOST_PAGES; page++) {
    const params = cursor === null ? {} : { cursor };
    const result: Buffer = await ask({ request: (request) => source.call(request) }, 'tasks/list', params, timeout);
    tasks.push(...tasksIn(result));
    cursor = nextCursor(result);
    if (cursor === null) break;
  }
  return tasks;
}

function tasksIn(result: Buffer): Buffer[] {
  const list = findMember(result, 'tasks');
  const elements = list === null ? null : readElements(result, list.start, list.end);
  return (elements ?? []).map(({ start, end }) => result.subarray(start, end));
}

function writeList(tasks: readonly Buffer[]): Buffer {
  const parts = tasks.flatMap((task, index) => (index === 0 ? [task] : [Buffer.from(','), task]));
  return Buffer.concat([Buffer.from('{"tasks":['), ...parts, Buffer.from(']}')]);
}
