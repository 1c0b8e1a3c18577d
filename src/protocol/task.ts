/**
 * MCP tasks on the wire, in both eras: where their ids are. Clients get ids of our own, because two servers may use the
 * same id.
 */
import {
  decodeString,
  findMember,
  JsonError,
  type JsonMember,
  readLongMembers,
  readMembers,
  type Span,
  writeObject,
} from './json.ts';
import { LONG } from './long-answer.ts';
import type { Message } from './message.ts';
import { RELATED_TASK, SUBSCRIPTION_ID } from './meta.ts';
import { join, type Parts, sizeOf } from './parts.ts';
import { readMessage } from './read.ts';

const QUOTE = 0x22;
const TASK = Buffer.from('"task"');

/** Whether a modern server answers with a task instead of a result. Such an answer is never long. */
export function isTask(result: Parts): boolean {
  if (sizeOf(result) > LONG) return false;
  const bytes = join(result);
  // This search is enough for nearly all results.
  if (!bytes.includes(TASK)) return false;
  return membersOf(bytes).some(({ key, start, end }) => key === 'resultType' && textAt(bytes, start, end) === 'task');
}

/** The same object with all task ids replaced: its own, that of the task in it, and that of its related task. */
export function exchangeIds(object: Buffer, exchange: (id: string) => string): Buffer {
  const spans = membersOf(object)
    .flatMap((member) => idsIn(object, member))
    .filter(({ start }) => object[start] === QUOTE)
    .sort((a, b) => a.start - b.start);
  if (spans.length === 0) return object;
  const parts: Buffer[] = [];
  let at = 0;
  for (const { start, end } of spans) {
    parts.push(object.subarray(at, start), Buffer.from(JSON.stringify(exchange(decodeString(object, start, end)))));
    at = end;
  }
  return Buffer.concat([...parts, object.subarray(at)]);
}

function idsIn(bytes: Buffer, member: JsonMember): Span[] {
  if (member.key === 'taskId') return [member];
  if (member.key === 'task') return idOf(bytes, member);
  if (member.key !== '_meta') return [];
  return (readMembers(bytes, member.start, member.end) ?? [])
    .filter(({ key }) => key === RELATED_TASK)
    .flatMap((related) => idOf(bytes, related));
}

function idOf(bytes: Buffer, { start, end }: Span): Span[] {
  return (readMembers(bytes, start, end) ?? []).filter(({ key }) => key === 'taskId');
}

/** Empty if the object is broken. The caller's parser will report it. */
function membersOf(object: Buffer): readonly JsonMember[] {
  try {
    return readLongMembers(object);
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    return [];
  }
}

function textAt(bytes: Buffer, start: number, end: number): string | null {
  return bytes[start] === QUOTE ? decodeString(bytes, start, end) : null;
}

/** The id in a server's description of a task; null if it has none. */
export function idIn(task: Buffer): string | null {
  const id = membersOf(task).find(({ key }) => key === 'taskId');
  return id === undefined ? null : textAt(task, id.start, id.end);
}

/** The id of the task that a server has started; null if it has not started one. */
export function startedTask(result: Buffer): string | null {
  const task = membersOf(result).find(({ key, start }) => key === 'task' && result[start] === 0x7b);
  return task === undefined ? null : idIn(result.subarray(task.start, task.end));
}

/** The id of the task that a request is about; null if it names none. */
export function taskIdOf({ bytes, taskIdStart, taskIdEnd }: Message): string | null {
  return taskIdStart < 0 ? null : textAt(bytes, taskIdStart, taskIdEnd);
}

/** The task that a server's message belongs to; null if it names none. */
export function relatedTask({ bytes, metaStart, metaEnd }: Message): string | null {
  const related = metaStart < 0 ? null : findMember(bytes, RELATED_TASK, metaStart, metaEnd);
  const [id] = related === null ? [] : idOf(bytes, related);
  return id === undefined ? null : textAt(bytes, id.start, id.end);
}

/** The result of `tasks/get` in the form of a notification. */
export function asNotified(result: Buffer): Buffer {
  const kept = membersOf(result).filter(({ key }) => key !== 'resultType');
  return writeObject(kept.map((member) => memberBytes(result, member)));
}

/** The parameters of a notification under the id of another subscription. */
export function underSubscription(params: Buffer, id: Buffer): Buffer {
  const members = membersOf(params);
  const meta = members.find(({ key }) => key === '_meta');
  const kept = meta === undefined ? [] : (readMembers(params, meta.start, meta.end) ?? []);
  const own = kept.filter(({ key }) => key !== SUBSCRIPTION_ID).map((member) => memberBytes(params, member));
  const others = members.filter(({ key }) => key !== '_meta').map((member) => memberBytes(params, member));
  const first = Buffer.concat([Buffer.from(`"${SUBSCRIPTION_ID}":`), id]);
  return writeObject([[META, writeObject([[first], ...own])], ...others]);
}

function memberBytes(bytes: Buffer, { keyStart, end }: JsonMember): Buffer[] {
  return [bytes.subarray(keyStart, end)];
}

/**
 * A client's request without what it says about tasks. The id of a related task is removed, because the server may use
 * that id for a task of another client. The request to run as a task is removed unless `mayRunAsTask`.
 */
export function withoutTasks(message: Message, mayRunAsTask: boolean): Message {
  const { bytes, taskStart, hasRelated, paramsStart, paramsEnd } = message;
  const dropsTask = taskStart >= 0 && !mayRunAsTask;
  if (!dropsTask && !hasRelated) return message;
  const kept = (readMembers(bytes, paramsStart, paramsEnd) ?? [])
    .filter(({ key }) => key !== 'task' || mayRunAsTask)
    .map((member) => (member.key === '_meta' ? [META, withoutRelated(bytes, member)] : memberBytes(bytes, member)));
  return readMessage(Buffer.concat([bytes.subarray(0, paramsStart), writeObject(kept), bytes.subarray(paramsEnd)]));
}

const META = Buffer.from('"_meta":');

function withoutRelated(bytes: Buffer, { start, end }: Span): Buffer {
  const members = readMembers(bytes, start, end);
  if (members === null) return bytes.subarray(start, end);
  return writeObject(members.filter(({ key }) => key !== RELATED_TASK).map((member) => memberBytes(bytes, member)));
}
