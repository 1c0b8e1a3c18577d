/** How to call the tools that were switched on, for a model whose client does not show them. */
import { permits } from '../access/permission.ts';
import type { View } from '../access/view.ts';
import { toObject } from '../base/objects.ts';
import type { SeenClient } from '../calls/seen-client.ts';
import { CALL, CALL_ENTRY } from '../calls/through.ts';
import { BUILT_IN, type Entry } from '../catalog/entry.ts';
import { toBytes } from '../protocol/json.ts';
import { missesNewTools } from '../protocol/known-clients.ts';
import { printSignature } from './signature.ts';

/** About how many characters of signatures an answer has. */
const MOST = 1_500;

/**
 * The result of a control with this advice at its end. `before` is what the caller saw before the control ran. If that
 * has not changed, the advice is about all tools that the client does not show.
 */
export function withAdvice(result: Buffer, client: SeenClient, before: View, now: View): Buffer {
  if (client.seen === null || now.controls.alias(CALL) === undefined || !permits(now.permission, CALL_ENTRY))
    return result;
  const fresh = missingIn(before, now);
  const tools = fresh.length > 0 ? fresh : missingIn(client.seen, now);
  if (tools.length === 0) return result;
  const text = missesNewTools(client.traits) ? fullAdvice(tools) : shortAdvice(tools);
  const { content, ...more } = toObject(JSON.parse(result.toString()));
  return toBytes({ content: [...(content as unknown[]), { type: 'text', text }], ...more });
}

function missingIn(known: View, { entries }: View): Entry[] {
  return [...entries.tool.values()].filter(
    ({ name, sourceId }) => sourceId !== BUILT_IN && !known.entries.tool.has(name),
  );
}

/** For a client of which nobody knows whether it shows the tools. */
function shortAdvice([first]: readonly Entry[]): string {
  return `If your list of tools does not show them, use ${CALL}: {"name": ${JSON.stringify(first!.name)}, "arguments": {…}}, or "describe": true in place of the arguments to see what a tool takes.`;
}

/** For a client that does not: the model has to learn from this text what the tools take. */
function fullAdvice(tools: readonly Entry[]): string {
  const lines: string[] = [];
  let length = 0;
  for (const tool of tools) {
    const line = printSignature(tool);
    length += line.length + 1;
    if (length > MOST && lines.length > 0) break;
    lines.push(line);
  }
  const rest = tools.length - lines.length;
  return [
    `Your list of tools does not show them. Call them with ${CALL}: {"name": "…", "arguments": {…}}. They take:`,
    ...lines,
    ...(rest > 0 ? [`… and ${rest} more. See what one takes with ${CALL}: {"name": "…", "describe": true}.`] : []),
  ].join('\n');
}
