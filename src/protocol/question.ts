/** What a server asks of whoever called it: of the user, the model, or the client itself. */

export interface Question {
  readonly method: string;
  /** As the server wrote them; null where there are none. */
  readonly params: Buffer | null;
  /** The result, as whoever was asked wrote it. One of the two is called, once; later calls do nothing. */
  answer(result: Buffer): void;
  /** The error object, likewise. */
  refuse(error: Buffer): void;
}

const CAPABILITIES: Readonly<Record<string, string>> = {
  'elicitation/create': 'elicitation',
  'sampling/createMessage': 'sampling',
  'roots/list': 'roots',
};

/** What a client must declare to be asked this; null for what is no question. */
export function capabilityFor(method: string): string | null {
  return CAPABILITIES[method] ?? null;
}

/** The requests in whose course a server may ask something. */
export const ASKING: ReadonlySet<string> = new Set(['tools/call', 'prompts/get', 'resources/read']);

/** Whether questions may come to a caller with these capabilities. Those for roots do not: they are answered for everybody. */
export function isAskable({ asks }: { readonly asks: ReadonlySet<string> }): boolean {
  return asks.has('elicitation') || asks.has('sampling');
}

/** The error for a question that nobody can be asked. */
export function unanswerable(method: string, why: string): Buffer {
  return Buffer.from(JSON.stringify({ code: -32_601, message: `Toolgate cannot pass on ${method}: ${why}.` }));
}

/** The result by which a modern server asks: what, and the state to come back with. */
export function inputRequired(questions: ReadonlyMap<string, Question>, state: string): Buffer {
  const parts: Buffer[] = [Buffer.from('{"resultType":"input_required","inputRequests":{')];
  let first = true;
  for (const [key, { method, params }] of questions) {
    parts.push(Buffer.from(`${first ? '' : ','}${JSON.stringify(key)}:{"method":${JSON.stringify(method)},"params":`));
    parts.push(params ?? Buffer.from('{}'), Buffer.from('}'));
    first = false;
  }
  parts.push(Buffer.from(`},"requestState":${JSON.stringify(state)}}`));
  return Buffer.concat(parts);
}
