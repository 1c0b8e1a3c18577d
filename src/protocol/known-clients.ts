/**
 * What the clients that people use do with what they are sent, as data. The protocol lets a client cut texts, ignore
 * `list_changed` or refuse URIs without a word, so the only sign is the name that it introduces itself with.
 *
 * Names, limits and rules were read in the published packages, or seen in what those send. A comment names the source
 * of what was not. What nobody has seen is left at the value of an unknown client.
 */
import { BoundedMap } from '../base/bounded-map.ts';
import { getOrMake } from '../base/memo.ts';
import { decodeString, readMembers } from './json.ts';
import type { Era } from './revisions.ts';

/**
 * What a client does when its list of tools has changed. `yes`: it lists again at once, and its model can use the new
 * tools in its next step. `late`: it lists again, but its model sees the new tools only after the user's next message.
 * `no`: its model never sees them. `unknown`: the first change will show it.
 */
export type ListsAgain = 'yes' | 'late' | 'no' | 'unknown';

/** What a client does with what it is sent. */
export interface ClientTraits {
  /** The client as people know it. */
  readonly title: string;
  /** How many characters of a tool's description its model sees: all if infinite, null if nobody knows. */
  readonly description: number | null;
  /** The same for the instructions of a server. */
  readonly instructions: number | null;
  readonly listsAgain: ListsAgain;
  /** Milliseconds from the answer to its list until it uses that list. Over HTTP, one answer can overtake another. */
  readonly settle: number;
  /** `legal`: it refuses a list that contains a URI which is not a legal URL. */
  readonly uris: 'any' | 'legal';
  /** Whether its model or its user can read resources. Null if nobody knows. */
  readonly resources: boolean | null;
  /** Whether it can ask its user a question of a server. Null if nobody knows. */
  readonly elicitation: boolean | null;
  /** The names of tools that it accepts. */
  readonly names: NameRule;
  /** The name and the version that it sends itself, cut to a line. Absent if it sends none. */
  readonly sent?: { readonly name: string; readonly version: string };
}

/** Whether it is known that the client's model cannot use new tools in its next step. */
export function missesNewTools({ listsAgain }: ClientTraits): boolean {
  return listsAgain === 'no' || listsAgain === 'late';
}

/** The names of tools that a client accepts. */
export interface NameRule {
  /** The greatest length, with the name of the server and what the client adds between them. */
  readonly longest: number;
  /** How many characters the client itself adds to the names of the tool and the server. */
  readonly added: number;
  /** The characters that it accepts. It replaces others. */
  readonly characters: string;
}

interface KnownClient extends Partial<ClientTraits> {
  readonly title: string;
  /** The values of `clientInfo.name` that it sends. */
  readonly sends: readonly string[];
  /** The era in which it sends them, if another program has the same name in the other. */
  readonly era?: Era;
}

const ALL = Number.POSITIVE_INFINITY;

/** Every API of a model that is in use accepts these names. */
const PLAIN: NameRule = { longest: 64, added: 0, characters: 'A-Za-z0-9_-' };

/** A client that nobody knows gets what most clients can use. What it does is learned from what it does. */
export const UNKNOWN_CLIENT: ClientTraits = Object.freeze({
  title: 'unknown',
  description: null,
  instructions: null,
  listsAgain: 'unknown',
  settle: 20,
  uris: 'any',
  resources: null,
  elicitation: null,
  names: PLAIN,
});

export const KNOWN_CLIENTS: readonly KnownClient[] = [
  {
    // 2.1.197. Both texts end in "… [truncated]". 2.1.325 has 4,096 of each.
    title: 'Claude Code',
    sends: ['claude-code'],
    description: 2_048,
    instructions: 2_048,
    listsAgain: 'yes',
    resources: true,
    elicitation: true,
    names: { ...PLAIN, added: 7 },
  },
  {
    // It lists again, and drops what is new: anthropics/claude-ai-mcp#960, anthropics/claude-code#50339.
    title: 'Claude Desktop',
    sends: ['claude-ai'],
    listsAgain: 'no',
    resources: true,
  },
  {
    // 0.166.0; openai/codex#10105, #33266.
    title: 'Codex',
    sends: ['codex-mcp-client'],
    description: ALL,
    instructions: ALL,
    listsAgain: 'no',
    resources: true,
    elicitation: true,
    names: { ...PLAIN, added: 7 },
  },
  {
    // 0.61.0. It lists once more after 500 ms if the names have not changed, and collects refreshes for 300 ms.
    title: 'Gemini CLI',
    sends: ['gemini-cli-mcp-client'],
    description: ALL,
    instructions: ALL,
    listsAgain: 'yes',
    settle: 400,
    resources: true,
    elicitation: false,
    names: { longest: 63, added: 5, characters: 'A-Za-z0-9_.:-' },
  },
  {
    // 1.18.33.
    title: 'opencode',
    sends: ['opencode'],
    description: ALL,
    instructions: ALL,
    listsAgain: 'yes',
    settle: 100,
    elicitation: false,
    names: { ...PLAIN, added: 1 },
  },
  {
    // The name is from a log of 1.0.57, the rest is github/copilot-cli#3125.
    title: 'GitHub Copilot CLI',
    sends: ['github-copilot-developer'],
    listsAgain: 'late',
  },
  {
    // The name and the limit are from bug reports: ComposioHQ/composio#2788, awslabs/mcp#1283.
    title: 'Cursor',
    sends: ['cursor-vscode'],
    names: { ...PLAIN, longest: 59, added: 1 },
  },
  {
    // Its source sends the long name of the product.
    title: 'VS Code',
    sends: ['Visual Studio Code', 'Visual Studio Code - Insiders', 'Code - OSS'],
    listsAgain: 'yes',
    resources: true,
    elicitation: true,
  },
  {
    // The name is from servers that tell their clients apart.
    title: 'Windsurf',
    sends: ['windsurf-client'],
  },
  {
    title: 'Zed',
    sends: ['Zed'],
  },
  {
    // 0.9.0. A program for people: each command lists again.
    title: 'mcporter',
    sends: ['mcporter'],
    description: ALL,
    instructions: ALL,
    resources: true,
    elicitation: false,
  },
  {
    // 0.15.0. A program for people.
    title: 'MCP Inspector',
    sends: ['mcp-inspector', 'inspector-client', 'inspector-cli'],
    description: ALL,
    instructions: ALL,
    resources: true,
    elicitation: true,
  },
  {
    // mcp 1.x, also as langchain-mcp-adapters 0.3.2, which makes its tools from one list. Other programs with this name
    // list whenever they like, so nothing is known. Its type for URIs refuses those that are not legal.
    title: 'Python SDK 1',
    sends: ['mcp'],
    era: 'legacy',
    uris: 'legal',
    resources: true,
  },
  {
    // mcp 2.x, also as FastMCP 4.1.2, pydantic-ai 2.66.0, which keeps its first list because it does not ask to be told of
    // changes, and openai-agents 0.24.0, which lists before every request.
    title: 'Python SDK 2',
    sends: ['mcp'],
    era: 'modern',
    resources: true,
  },
  {
    // 1.7.1 for Python is built on Python SDK 1 and only logs `list_changed`. The edition for JavaScript, which lists
    // again, sends the same name.
    title: 'mcp-use',
    sends: ['mcp-use'],
    description: ALL,
    listsAgain: 'no',
    uris: 'legal',
    resources: true,
  },
  {
    // 1.0.101 and 2.0.96. The first one takes `list_changed` for an error.
    title: 'AI SDK',
    sends: ['ai-sdk-mcp-client'],
    description: ALL,
    listsAgain: 'no',
    resources: true,
  },
  {
    // 1.1.4. It tells its program, which has given its agent the tools by then.
    title: 'LangChain adapters for JavaScript',
    sends: ['@langchain/mcp-adapters'],
    listsAgain: 'no',
  },
  {
    title: 'Continue',
    sends: ['continue-client'],
  },
];

const byName = new Map(
  KNOWN_CLIENTS.flatMap(({ sends, era, ...known }) => {
    const traits: ClientTraits = Object.freeze({ ...UNKNOWN_CLIENT, ...known });
    const eras: readonly Era[] = era === undefined ? ['legacy', 'modern'] : [era];
    return sends.flatMap((name) => eras.map((one) => [`${one} ${name}`, traits] as const));
  }),
);

/** What is known of a client by the name that it sends in an era, also through mcp-remote, which adds its own. */
export function traitsOf(name: string, era: Era): ClientTraits {
  const remote = name.lastIndexOf(' (via mcp-remote ');
  return byName.get(`${era} ${remote < 0 ? name : name.slice(0, remote)}`) ?? UNKNOWN_CLIENT;
}

/** Clients of the modern era introduce themselves with every request, so each text is read once. */
const MOST = 200;
const QUOTE = 0x22;
/** The most characters of a name or a version that are kept. */
const MOST_SENT = 80;
const introductions = {
  legacy: new BoundedMap<string, ClientTraits>(MOST),
  modern: new BoundedMap<string, ClientTraits>(MOST),
};

/**
 * What is known of a client by its `clientInfo`, as JSON with one character per byte. Equal texts get the same object,
 * and others another one, so that clients without a session can be told apart by it.
 */
export function readTraits(clientInfo: string, era: Era): ClientTraits {
  return getOrMake(introductions[era], clientInfo, () => {
    const bytes = Buffer.from(clientInfo, 'latin1');
    const members = readMembers(bytes);
    const textOf = (key: string) => {
      const member = members?.findLast((one) => one.key === key);
      if (member === undefined || bytes[member.start] !== QUOTE) return '';
      return decodeString(bytes, member.start, member.end);
    };
    const name = textOf('name');
    if (name === '') return { ...UNKNOWN_CLIENT };
    return {
      ...traitsOf(name, era),
      sent: { name: name.slice(0, MOST_SENT), version: textOf('version').slice(0, MOST_SENT) },
    };
  });
}
