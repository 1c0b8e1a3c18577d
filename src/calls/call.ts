/** One call: from the caller's message to the server that its name belongs to. */
import { findPrompt, findResource, findTool } from '../access/find.ts';
import type { View } from '../access/view.ts';
import type { Entry } from '../catalog/entry.ts';
import type { Item, Offer } from '../catalog/item.ts';
import { GatewayError } from '../errors.ts';
import { decodeString, findMember, readMembers } from '../protocol/json.ts';
import { type Message, tokenOf } from '../protocol/message.ts';
import { mirrorHeaders } from '../protocol/mirror.ts';
import type { Parts } from '../protocol/parts.ts';
import type { Era } from '../protocol/revisions.ts';
import { rewriteRequest, type Wire } from '../protocol/rewrite.ts';
import { saysError } from '../protocol/tool-error.ts';
import type { Request, Sink, Ticket } from '../sources/connection.ts';
import type { Guest } from '../sources/guest.ts';
import type { Source } from '../sources/source.ts';
import { CANCELLED, type CallFigures, ERROR, FAILED, OK, TIMEOUT, TOOL_ERROR } from './figures.ts';
import { Relay } from './relay.ts';

/**
 * A caller's request on its way to the server that its name belongs to. It is its own sink and ticket, because what comes
 * back has to be counted, and a further object for each call is felt.
 */
export class Call extends Relay implements Request, Ticket {
  readonly message: Message;
  readonly entry: Entry;
  /** What `rewriteRequest` puts between `start` and `end`. */
  readonly name: string;
  readonly start: number;
  readonly end: number;
  timeout = 0;
  totalTimeout = 0;
  guest: Guest | null = null;
  /** The definition, as last listed. */
  item: Item;
  /** Where it is counted while it is under way. */
  figures: CallFigures | null = null;
  started = 0;
  ticket: Ticket | null = null;

  constructor(message: Message, entry: Entry, name: string, start: number, end: number, sink: Sink) {
    super(sink);
    this.message = message;
    this.entry = entry;
    this.name = name;
    this.start = start;
    this.end = end;
    this.item = entry.item;
  }

  get sink(): Sink {
    return this;
  }

  get method(): string {
    return this.message.method;
  }

  get token(): Buffer | null {
    return tokenOf(this.message);
  }

  /** Whether the caller said the exposed name itself, and not one that was found to fit. */
  get exact(): boolean {
    return decodeString(this.message.bytes, this.start, this.end) === this.entry.name;
  }

  encode(id: number, era: Era): Wire {
    return rewriteRequest(this.message, this, this.sink, id, era);
  }

  headers(): readonly string[] {
    const { mirrored } = this.item;
    return mirrorHeaders(this.message, this.name, typeof mirrored === 'string' ? null : mirrored);
  }

  renew(offer: Offer): void {
    const { kind, name } = this.item;
    this.item = offer.items.find((item) => item.kind === kind && item.name === name) ?? this.item;
  }

  /** The same call, to be answered to another sink. */
  to(sink: Sink): Call {
    return new Call(this.message, this.entry, this.name, this.start, this.end, sink);
  }

  /** The same call in other words. */
  as(message: Message, start: number, end: number): Call {
    return new Call(message, this.entry, this.name, start, end, this.inner);
  }

  send(source: Source, figures: CallFigures): Ticket {
    this.figures = figures;
    this.started = performance.now();
    figures.begin();
    try {
      this.ticket = source.call(this);
    } catch (error) {
      this.#over(FAILED);
      throw error;
    }
    return this;
  }

  cancel(reason: string): void {
    this.#over(CANCELLED);
    this.ticket?.cancel(reason);
  }

  override result(result: Parts, era: Era): void {
    this.#over(this.entry.kind === 'tool' && saysError(result) ? TOOL_ERROR : OK);
    this.inner.result(result, era);
  }

  override error(error: Buffer, era: Era): void {
    this.#over(ERROR);
    this.inner.error(error, era);
  }

  override fail(error: GatewayError): void {
    this.#over(error.code === 'source_timeout' ? TIMEOUT : FAILED);
    this.inner.fail(error);
  }

  #over(outcome: number): void {
    this.figures?.end(outcome, performance.now() - this.started);
    this.figures = null;
  }
}

export function findCall(view: View, message: Message, sink: Sink): Call {
  if (message.method === 'completion/complete') return findCompletion(view, message, sink);
  const byUri = message.method === 'resources/read';
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
    const { entry, upstreamName } = findResource(view, name);
    return new Call(message, entry, upstreamName, start, end, sink);
  }
  const entry = message.method === 'tools/call' ? findTool(view, name) : findPrompt(view, name);
  return new Call(message, entry, entry.upstreamName, start, end, sink);
}

/** What is to be completed is named one level deeper. */
function findCompletion(view: View, message: Message, sink: Sink): Call {
  const { bytes, paramsStart, paramsEnd } = message;
  const ref = paramsStart < 0 ? null : findMember(bytes, 'ref', paramsStart, paramsEnd);
  const members = ref === null ? null : readMembers(bytes, ref.start, ref.end);
  const read = (key: string) => {
    const [member, ...more] = members?.filter((one) => one.key === key) ?? [];
    const isText = member !== undefined && more.length === 0 && bytes[member.start] === 0x22;
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
    return new Call(message, entry, entry.upstreamName, start, end, sink);
  }
  const template = view.entries.template.get(text);
  if (template !== undefined) return new Call(message, template, template.upstreamName, start, end, sink);
  const { entry, upstreamName } = findResource(view, text);
  return new Call(message, entry, upstreamName, start, end, sink);
}
