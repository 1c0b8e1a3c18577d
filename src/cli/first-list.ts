/** Sentences about what clients see at first, and how to change it. */
import { isMany } from '../access/showing.ts';
import { isPattern } from '../base/pattern.ts';
import { tokensText } from '../catalog/tokens.ts';
import type { FirstList } from '../controls/first-list.ts';
import type { Gateway } from '../gateway/gateway.ts';

/** More agents than this are only counted. */
const MOST_AGENTS = 5;

/**
 * One sentence for all clients, or one for each group of agents with the same list if policies differ. The last line
 * also says how to change it. Empty if there are no tools.
 */
export function firstListLines(gateway: Gateway): string[] {
  const agents = agentsOf(gateway);
  const lists = agents.length === 0 ? [gateway.firstList()] : agents.map((agent) => gateway.firstList(agent));
  if (lists.every(({ tools, own }) => tools === own)) return [];
  const groups = new Map<string, string[]>();
  for (const [i, list] of lists.entries()) {
    const text = listWords(list);
    groups.set(text, [...(groups.get(text) ?? []), ...agents.slice(i, i + 1)]);
  }
  const lines = [...groups].map(([text, names]) => `${subject(names)} ${text}`);
  return [...lines.slice(0, -1), [lines.at(-1)!, ...changes(lists)].join(' ')];
}

/** The sentence about one client: `title` is what people call it, or null if nobody knows. */
export function firstListText(list: FirstList, title: string | null): string {
  return [`${title ?? 'A client'} sees ${listWords(list)}`, ...changes([list])].join(' ');
}

/** The agents that have policies of their own. Without policies all agents see the same. */
function agentsOf({ config: { policy } }: Gateway): string[] {
  return (policy?.agents ?? []).map(({ name }) => name).filter((name) => !isPattern(name));
}

function subject(agents: readonly string[]): string {
  if (agents.length === 0) return 'A client sees';
  if (agents.length === 1) return `Agent ${agents[0]} sees`;
  const more = agents.length - MOST_AGENTS;
  const named = agents.slice(0, MOST_AGENTS).join(', ');
  return `Agents ${named}${more > 0 ? ` and ${more} more` : ''} see`;
}

/** `2 of 14 tools until one is activated; about 900 tokens.` */
export function listWords({ shown, tools, own, tokens, toolset, until }: FirstList): string {
  const cost = `about ${tokensText(tokens)}.`;
  if (shown === tools) return `all ${tools} tools; ${cost}`;
  const part = `${shown} of ${tools} tools`;
  if (until === null) return `${part}; ${cost}`;
  if (until === 'activate') return `${part} until ${shown === own ? 'one is' : 'more are'} activated; ${cost}`;
  if (until === 'search') return `${part} and finds the others by search; ${cost}`;
  if (until === 'enable') return `${part} until a toolset is enabled; ${cost}`;
  return `${part} until ${toolset === null ? 'a' : 'another'} toolset is equipped; ${cost}`;
}

const AUTO_ADVICE = 'For so many tools controls = "auto" is better: a model then searches them.';

function changes(lists: readonly FirstList[]): string[] {
  const partial = lists.find(({ shown, tools }) => shown < tools);
  if (partial === undefined) return lists.some(({ shown, own }) => isMany(shown - own)) ? [AUTO_ADVICE] : [];
  switch (partial.until) {
    case 'activate':
    case 'search':
    case 'enable':
      return [
        'To show more from the start: active_toolsets = ["NAME_*"], or controls = [] for all.',
        ...(partial.until === 'activate' && isMany(partial.tools - partial.own) ? [AUTO_ADVICE] : []),
      ];
    case 'equip':
      return ['To show more from the start: --equip-toolset NAME, where NAME is a server, a saved toolset, or all.'];
    default:
      return [];
  }
}
