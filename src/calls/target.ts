/** Finds the entry that the name in a message refers to. */
import { findPrompt, findResource, findTemplate, findThrough, findTool } from '../access/find.ts';
import { findDirectory } from '../access/skills.ts';
import { GatewayError } from '../base/errors.ts';
import type { Entry } from '../catalog/entry.ts';
import { decodeString, findMember, readMembers } from '../protocol/json.ts';
import { READ_DIRECTORY } from '../protocol/meta.ts';
import { foldKey } from '../protocol/read.ts';
import type { Call } from './call.ts';
import { sourceNaming } from './named-uris.ts';
import { isCallThrough, unwrap } from './through.ts';

/** Throws if the caller sees nothing with that name, or may not use it now. */
export function findTarget(call: Call): void {
  const { message, by } = call;
  if (message.method === 'completion/complete') {
    findCompletion(call);
    return;
  }
  const view = by.view();
  const isDirectory = message.method === READ_DIRECTORY;
  const byUri = isDirectory || message.method === 'resources/read';
  const start = byUri ? message.uriStart : message.nameStart;
  const end = byUri ? message.uriEnd : message.nameEnd;
  if (start < 0 || message.bytes[start] !== 0x22) {
    throw new GatewayError(
      'params_invalid',
      `${message.method} needs a string "${byUri ? 'uri' : 'name'}" in its parameters.`,
    );
  }
  const name = decodeString(message.bytes, start, end);
  if (byUri) {
    const find = isDirectory ? findDirectory : findResource;
    const { entry, upstreamName } = find(view, name, sourceNaming(by, name));
    take(call, entry, upstreamName, start, end);
    return;
  }
  if (message.method === 'tools/call') findCalled(call, name, start, end);
  else {
    const entry = findPrompt(view, name);
    take(call, entry, entry.upstreamName, start, end);
  }
}

function findCalled(call: Call, name: string, start: number, end: number): void {
  const { by } = call;
  const view = by.view();
  const entry = call.through !== null ? findThrough(view, name, by.scope.toolset !== null) : findTool(view, name);
  if (isCallThrough(entry) && unwrap(call, entry)) findTarget(call);
  else take(call, entry, entry.upstreamName, start, end);
}

/** Throws if the operator has to approve its definition first. */
function take(call: Call, entry: Entry, upstreamName: string, start: number, end: number): void {
  if (entry.item.held !== undefined) throw new GatewayError('item_held', entry.item.held);
  call.found(entry, upstreamName, start, end);
}

/** In a completion the name is one level deeper, in `ref`. */
function findCompletion(call: Call): void {
  const view = call.by.view();
  const { bytes, paramsStart, paramsEnd } = call.message;
  const ref = paramsStart < 0 ? null : findMember(bytes, 'ref', paramsStart, paramsEnd);
  const members = ref === null ? null : readMembers(bytes, ref.start, ref.end);
  const read = (key: string) => {
    // A lax server could take "Name" for "name".
    const [member, ...more] = members?.filter((one) => foldKey(one.key) === foldKey(key)) ?? [];
    const isText = member?.key === key && more.length === 0 && bytes[member.start] === 0x22;
    return isText ? { ...member, text: decodeString(bytes, member.start, member.end) } : null;
  };
  const type = read('type')?.text;
  const named = type === 'ref/prompt' ? read('name') : type === 'ref/resource' ? read('uri') : null;
  if (named === null) {
    throw new GatewayError(
      'params_invalid',
      'completion/complete needs a "ref": { type: "ref/prompt", name } or { type: "ref/resource", uri }.',
    );
  }
  const { text, start, end } = named;
  if (type === 'ref/prompt') {
    const entry = findPrompt(view, text);
    take(call, entry, entry.upstreamName, start, end);
    return;
  }
  const template = findTemplate(view, text);
  if (template !== undefined) {
    take(call, template, template.upstreamName, start, end);
    return;
  }
  const { entry, upstreamName } = findResource(view, text, sourceNaming(call.by, text));
  take(call, entry, upstreamName, start, end);
}
