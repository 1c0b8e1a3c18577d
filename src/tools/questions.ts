/** What a tool asks during its call: the user of the client, its model, or what was kept for its session. */
import { isObject } from '../base/objects.ts';
import type { Elicited, Sampled, SampleRequest, ToolState } from './define-tool.ts';
import { issuesText, readSchema } from './schema.ts';

/** A call that can ask. */
export interface AskingCall {
  ask(method: string, params: object): Promise<unknown>;
}

const MAX_TOKENS = 512;

export async function elicit(call: AskingCall, asked: string | object, schema: unknown): Promise<Elicited<unknown>> {
  if (typeof asked !== 'string') return (await call.ask('elicitation/create', asked)) as Elicited;
  if (schema === undefined) throw new TypeError('elicit needs a schema: what is the user to fill in?');
  const { json, check } = await readSchema(schema, 'input');
  // Clients accept these members only.
  const { properties = {}, required } = json;
  const requestedSchema = { type: 'object', properties, ...(required !== undefined && { required }) };
  const answer = (await call.ask('elicitation/create', { message: asked, requestedSchema })) as Elicited;
  if (answer.action !== 'accept') return answer;
  const checked = await check(answer.content ?? {});
  if (checked.issues !== undefined) throw new Error(`The user's answer does not fit: ${issuesText(checked.issues)}`);
  return { action: 'accept', content: checked.value };
}

export async function sample(call: AskingCall, asked: string | SampleRequest): Promise<Sampled> {
  const request =
    typeof asked === 'string' ? { messages: [{ role: 'user', content: { type: 'text', text: asked } }] } : asked;
  const answer = (await call.ask('sampling/createMessage', { maxTokens: MAX_TOKENS, ...request })) as Sampled;
  return { ...answer, text: textIn(answer.content) };
}

function textIn(content: unknown): string {
  const blocks: readonly unknown[] = Array.isArray(content) ? content : [content];
  return blocks.map((block) => (isObject(block) && typeof block.text === 'string' ? block.text : '')).join('');
}

export function stateOf(call: AskingCall): ToolState {
  return {
    async get<Value>(key: string) {
      const { value } = (await call.ask('state/get', { key })) as { value?: Value };
      return value;
    },
    async set(key, value) {
      await call.ask('state/set', { key, value });
    },
    async delete(key) {
      await call.ask('state/delete', { key });
    },
  };
}
