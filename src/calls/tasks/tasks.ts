/**
 * Tasks: work that goes on after the answer to its call. They pass between a client and a server of the same era, never
 * from one era to the other, whose tasks have nothing in common but the word. Servers keep them; what is kept here is
 * which agent started which, because the earlier era lists them and tells of them unasked.
 */

import { GatewayError } from '../../base/errors.ts';
import type { ServerConfig } from '../../config/servers.ts';
import type { Sink, Ticket } from '../../protocol/contract.ts';
import { findMember, readElements, splice } from '../../protocol/json.ts';
import { type Message, readProgress } from '../../protocol/message.ts';
import type { Era } from '../../protocol/revisions.ts';
import { notificationMessage } from '../../protocol/rpc.ts';
import { exchangeIds, idIn, taskIdOf } from '../../protocol/task.ts';
import { ask, UpstreamError } from '../../sources/ask.ts';
import { nextCursor } from '../../sources/lists.ts';
import type { Source } from '../../sources/source.ts';
import type { Call } from '../call.ts';
import { createSeal, type Seal } from '../seal.ts';
import { AboutTaskSink, type IdExchange, MaybeTaskSink, TaskCall, taskUnknown, WantsTaskSink } from './task-calls.ts';
import { listenToTasks } from './task-listening.ts';

export interface McpTasks {
  /** For a call whose answer may be a task: exchanges the ids of tasks in its answer. */
  attend(call: Call): void;
  /** A request about a task of this principal. */
  call(principal: string, era: Era, message: Message, sink: Sink): Ticket;
  /** The result of `tasks/list`: what the principal started and its servers still know. */
  list(principal: string): Promise<Buffer>;
  /** `hear` gets the parameters of each notification about one of these tasks. */
  listen(principal: string, ids: readonly string[], hear: (params: Buffer) => void): Promise<TaskSubscription>;
  /** A client with a session hears of the tasks that it starts. */
  join(owner: object, tell: (message: Buffer) => void): void;
  leave(owner: object): void;
  /** What a server of the earlier era says of a task, or of its progress. */
  told(sourceId: number | undefined, message: Message): void;
}

export interface TaskSubscription {
  /** Those of the tasks that their servers tell of. */
  readonly ids: readonly string[];
  stop(): void;
}

/** A task where it lives. */
interface TaskName {
  readonly sourceId: number;
  /** As its server calls it. */
  readonly id: string;
}

interface StartedTask extends TaskName {
  readonly principal: string;
  /** Who hears of it, for as long as it is there. */
  readonly owner: WeakRef<object>;
  /** Under which token the server tells of progress, and the client wants to hear of it. */
  readonly progressToken: number;
  readonly token: Buffer | null;
}

type Find = (sourceId: number) => { readonly source: Source; readonly config: ServerConfig } | undefined;

/** Of how many tasks an principal hears, and can list; the oldest are forgotten first. They can be asked for all the same. */
const MOST_STARTED = 1_000;
/** Of how many agents that is kept; tokens may name any number of them. */
const MOST_OWNERS = 4_096;
const MOST_PAGES = 100;
/** Stands for an owner that is gone. */
const NOBODY = {};

export function createMcpTasks(find: Find): McpTasks {
  const seal = createSeal();
  /** The last token for the progress of a task. Below all ids of requests. */
  let lastToken = 0;
  const listeners = new WeakMap<object, (message: Buffer) => void>();
  /** From principal to what it started, by server and id. */
  const started = new Map<string, Map<string, StartedTask>>();
  const byToken = new Map<number, StartedTask>();

  function exchangeFor(sourceId: number, principal: string, era: Era): IdExchange {
    return {
      out: (id) => sealTaskId(seal, { sourceId, id }, principal, era),
      back(id) {
        const task = openTaskId(seal, id, principal, era);
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
    const task = text === null ? null : openTaskId(seal, text, principal, era);
    const slot = task === null ? undefined : find(task.sourceId);
    return task === null || slot === undefined ? null : { ...slot, task };
  }

  /** The tasks of this principal on one server, as it lists them; none where it cannot be asked. */
  async function listOf(principal: string, sourceId: number, own: Map<string, StartedTask>): Promise<Buffer[]> {
    const slot = find(sourceId);
    // One that is not running would be started only to say that it has none.
    if (slot === undefined || slot.source.tasks?.lists !== true || slot.source.status().state !== 'up') return [];
    const { out } = exchangeFor(sourceId, principal, 'legacy');
    try {
      const all = await listAll(slot.source, slot.config.timeout);
      const known = all.filter((task) => own.has(keyOf({ sourceId, id: idIn(task) ?? '' })));
      return known.map((task) => exchangeIds(task, out));
    } catch (error) {
      // A server that is gone or refuses has no tasks to list. Anything else is a defect of ours.
      if (error instanceof GatewayError || error instanceof UpstreamError) return [];
      throw error;
    }
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
      // Progress comes long after the call is over, and must not be taken for that of a request on another connection.
      const progressToken = --lastToken;
      const created = (id: string) => note({ sourceId, id, principal, owner, progressToken, token });
      call.inner = new WantsTaskSink(inner, exchangeFor(sourceId, principal, 'legacy'), created);
      // The task lives in the process that starts it.
      call.pinned = true;
      call.progressToken = progressToken;
    },
    call(principal, era, message, sink) {
      const text = taskIdOf(message);
      if (text === null)
        throw new GatewayError('params_invalid', `${message.method} needs a string "taskId" in its parameters.`);
      const found = open(text, principal, era);
      if (found === null) throw taskUnknown();
      const { source, config, task } = found;
      const about = new AboutTaskSink(sink, exchangeFor(task.sourceId, principal, era), era);
      return source.call(new TaskCall(message, task.id, about, config.timeout));
    },
    async list(principal) {
      const own = started.get(principal) ?? new Map<string, StartedTask>();
      const sources = new Set([...own.values()].map(({ sourceId }) => sourceId));
      const lists = await Promise.all([...sources].map((sourceId) => listOf(principal, sourceId, own)));
      return writeList(lists.flat());
    },
    async listen(principal, ids, hear) {
      const found = ids
        .flatMap((id) => open(id, principal, 'modern') ?? [])
        .filter(({ source }) => source.tasks?.starts === true);
      const subscriptions = [...new Set(found.map(({ source }) => source))].map((source) => {
        const tasks = found.filter((one) => one.source === source);
        const { config, task } = tasks[0]!;
        const { out } = exchangeFor(task.sourceId, principal, 'modern');
        const wanted = tasks.map(({ task }) => task.id);
        const subscription = listenToTasks(source, wanted, config.timeout, (params) => hear(exchangeIds(params, out)));
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
    told(sourceId, message) {
      if (sourceId === undefined) return;
      if (message.method === 'notifications/progress') tellProgress(sourceId, message);
      else tellStatus(sourceId, message);
    },
  };
}

/**
 * The id by which a client knows a task. It names the server and the server's own id, and is sealed: it is valid for the
 * principal that started the task, in the era in which it was started, and for nobody else.
 */
export function sealTaskId(seal: Seal, { sourceId, id }: TaskName, principal: string, era: Era): string {
  return seal.close(`${sourceId}.${Buffer.from(id).toString('base64url')}`, principal, era);
}

/** Null for what is no task of this principal in this era. */
export function openTaskId(seal: Seal, text: string, principal: string, era: Era): TaskName | null {
  const parts = seal.open(text, principal, era)?.split('.');
  if (parts === undefined) return null;
  return { sourceId: Number(parts[0]), id: Buffer.from(parts[1] ?? '', 'base64url').toString() };
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
    const list = findMember(result, 'tasks');
    const elements = list === null ? null : readElements(result, list.start, list.end);
    tasks.push(...(elements ?? []).map(({ start, end }) => result.subarray(start, end)));
    cursor = nextCursor(result);
    if (cursor === null) break;
  }
  return tasks;
}

function writeList(tasks: readonly Buffer[]): Buffer {
  const parts = tasks.flatMap((task, index) => (index === 0 ? [task] : [Buffer.from(','), task]));
  return Buffer.concat([Buffer.from('{"tasks":['), ...parts, Buffer.from(']}')]);
}
