/**
 * The README's example as a script: "Remember that I like tea". The model uses only what the client shows it: the tools,
 * the instructions, and the names of tools that the client has put aside for its own search.
 */
import type { Answer, Script, Turn } from './model.ts';

export const PROMPT = 'Remember that I like tea.';

/** After so many calls it gives up. */
const MOST_CALLS = 7;
const ENTITIES = [{ name: 'user', entityType: 'person', observations: ['likes tea'] }];
const ACTIVATE = { tools_on: ['memory_*'], tools_off: [], resources_on: [], resources_off: [] };

export const remember: Script = (turn) => {
  if (hasRemembered(turn)) return { text: 'I will remember that you like tea.' };
  if (turn.results.length >= MOST_CALLS) return { text: 'I could not remember it.' };
  return (
    use(turn, 'memory_create_entities', { entities: ENTITIES }) ??
    (hasCalled(turn, 'toolman_activate') || !knowsMemory(turn) ? undefined : use(turn, 'toolman_activate', ACTIVATE)) ??
    use(turn, 'toolman_call', { name: 'memory_create_entities', arguments: { entities: ENTITIES } }) ??
    // A model that waits for tools does something else meanwhile.
    use(turn, 'everything_echo', { message: 'waiting' }) ?? { text: 'I have no tool for that.' }
  );
};

/** Whether the memory server has answered. Its answer repeats what it was given. */
export function hasRemembered({ results }: Turn): boolean {
  return results.some(
    ({ name, text }) => /memory_create_entities$|toolman_call$/.test(name) && /entityType/.test(text),
  );
}

/** Calls the tool, or fetches it first if the client only shows its name. */
function use(turn: Turn, name: string, args: Record<string, unknown>): Answer | undefined {
  const tool = turn.tools.find((one) => one.name.endsWith(name));
  if (tool) return { call: tool.name, args };
  const aside = new RegExp(`\\bmcp__\\w+__${name}\\b`).exec(turn.text)?.[0];
  const search = turn.tools.find((one) => one.name === 'ToolSearch');
  if (aside === undefined || search === undefined) return undefined;
  const isFetched = turn.results.some((result) => result.name === 'ToolSearch' && result.text.includes(aside));
  return isFetched ? { call: aside, args } : { call: search.name, args: { query: `select:${aside}`, max_results: 5 } };
}

function hasCalled({ results }: Turn, name: string): boolean {
  return results.some((result) => result.name.endsWith(name));
}

/** Whether the model can know that there are memory tools: from a description, the instructions or a result. */
function knowsMemory({ text, tools }: Turn): boolean {
  return [text, ...tools.map(({ description }) => description)].some((shown) =>
    /\bmemory_|\bmemory\b.*\(\d+/.test(shown),
  );
}
