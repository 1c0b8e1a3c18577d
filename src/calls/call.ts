/** One call: from the caller's message to the server that its name belongs to. */
import { findPrompt, findResource, findTool } from '../access/find.ts';
import type { View } from '../access/view.ts';
import type { Entry } from '../catalog/entry.ts';
import { GatewayError } from '../errors.ts';
import { decodeString } from '../protocol/json.ts';
import type { Message } from '../protocol/message.ts';
import { rewriteRequest, type Wire } from '../protocol/rewrite.ts';
import type { Request, Sink } from '../sources/connection.ts';

/** A caller's request on its way to the server that its name belongs to. */
export class Call implements Request {
  readonly message: Message;
  readonly entry: Entry;
  /** What `rewriteRequest` puts between `start` and `end`. */
  readonly name: string;
  readonly start: number;
  readonly end: number;
  readonly sink: Sink;
  timeout = 0;

  constructor(message: Message, entry: Entry, name: string, start: number, end: number, sink: Sink) {
    this.message = message;
    this.entry = entry;
    this.name = name;
    this.start = start;
    this.end = end;
    this.sink = sink;
  }

  get method(): string {
    return this.message.method;
  }

  get token(): Buffer | null {
    const { bytes, tokenStart, tokenEnd } = this.message;
    return tokenStart < 0 ? null : bytes.subarray(tokenStart, tokenEnd);
  }

  /** Whether the caller said the exposed name itself, and not a URI that was found to fit. */
  get exact(): boolean {
    return (
      this.method !== 'resources/read' || decodeString(this.message.bytes, this.start, this.end) === this.entry.name
    );
  }

  encode(id: number): Wire {
    return rewriteRequest(this.message, this, id);
  }
}

export function findCall(view: View, message: Message, sink: Sink): Call {
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
