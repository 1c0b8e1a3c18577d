/** What the two servers of the fuzz test offer, and the requests for it that a correct client sends. */
import { type Draft, objectOf } from './modern-draft.ts';

export const REVISION = '2026-07-28';
export const KEYS = {
  version: 'io.modelcontextprotocol/protocolVersion',
  client: 'io.modelcontextprotocol/clientInfo',
  capabilities: 'io.modelcontextprotocol/clientCapabilities',
  level: 'io.modelcontextprotocol/logLevel',
} as const;

/** An argument that must be repeated in a header. */
export interface Mark {
  readonly header: string;
  readonly path: readonly string[];
  readonly type: 'string' | 'integer' | 'boolean';
}

export const MARKS: readonly Mark[] = [
  { header: 'Mcp-Param-Region', path: ['region'], type: 'string' },
  { header: 'Mcp-Param-Count', path: ['count'], type: 'integer' },
  { header: 'Mcp-Param-Flag', path: ['flag'], type: 'boolean' },
  { header: 'Mcp-Param-Zone', path: ['place', 'zone'], type: 'string' },
  { header: 'Mcp-Param-Level', path: ['place', 'deeper', 'level'], type: 'integer' },
];

const marked = (name: string) => {
  const mark = MARKS.find(({ path }) => path.at(-1) === name)!;
  return { type: mark.type, 'x-mcp-header': mark.header.slice('Mcp-Param-'.length) };
};

const MARKED_SCHEMA = {
  type: 'object',
  properties: {
    region: marked('region'),
    count: marked('count'),
    flag: marked('flag'),
    note: { type: 'string' },
    place: {
      type: 'object',
      properties: { zone: marked('zone'), deeper: { type: 'object', properties: { level: marked('level') } } },
    },
  },
};

/** Tools and prompts. Some names cannot be written in a header unencoded. */
export const NAMES = ['plain', 'other', 'größe ☃', ' padded ', '=?base64?eA==?=', 'tab\there'];
export const MARKED = 'marked';
export const URIS = ['note://a', 'note://größe'];
/** The namespaces of the two servers. */
export const PREFIXES = ['', 'up_'] as const;
export const LISTS = ['tools/list', 'resources/list', 'resources/templates/list', 'prompts/list', 'server/discover'];

export const TOOL_DEFINITIONS = [
  ...NAMES.map((name) => ({ name, inputSchema: { type: 'object' } })),
  { name: MARKED, inputSchema: MARKED_SCHEMA },
];

/** The server that an item belongs to and its name there; null if it is unknown. */
export function resolve(method: string, exposed: string): { server: number; name: string } | null {
  const offered = method === 'resources/read' ? URIS : method === 'tools/call' ? [...NAMES, MARKED] : NAMES;
  for (const [server, prefix] of PREFIXES.entries()) {
    const name = offered.find((one) => exposed === prefix + one);
    if (name !== undefined) return { server, name };
  }
  return null;
}

/** The parameter that `Mcp-Name` repeats. */
export function namedBy(method: string): 'name' | 'uri' | null {
  if (method === 'resources/read') return 'uri';
  return method === 'tools/call' || method === 'prompts/get' ? 'name' : null;
}

export function encode(text: string): string {
  const isPlain = /^[\x21-\x7e]([\x20-\x7e\t]*[\x21-\x7e])?$/.test(text);
  const looksEncoded = text.startsWith('=?base64?') && text.endsWith('?=');
  return isPlain && !looksEncoded ? text : encodeAlways(text);
}

export function encodeAlways(text: string): string {
  return `=?base64?${Buffer.from(text).toString('base64')}?=`;
}

export interface Asked {
  readonly method: string;
  readonly id: number | string;
  readonly name: string | null;
  readonly args: Readonly<Record<string, unknown>> | null;
  /** The position of `_meta` among the parameters. */
  readonly metaFirst: boolean;
}

export function correct({ method, id, name, args, metaFirst }: Asked): Draft {
  const source = namedBy(method);
  const _meta = { [KEYS.version]: REVISION, [KEYS.client]: { name: 'fuzz', version: '1' }, [KEYS.capabilities]: {} };
  const others = { ...(source !== null && { [source]: name }), ...(args !== null && { arguments: args }) };
  const params = metaFirst ? { _meta, ...others } : { ...others, _meta };
  const headers: [name: string, value: unknown][] = [
    ['MCP-Protocol-Version', REVISION],
    ['Mcp-Method', method],
    ['Mcp-Name', name],
  ];
  if (name !== null && method === 'tools/call' && resolve(method, name)?.name === MARKED)
    headers.push(...MARKS.map(({ header, path }) => [header, at(args, path)] as [string, unknown]));
  return {
    lines: headers
      .filter(([, value]) => value !== undefined && value !== null)
      .map(([header, value]) => ({ name: header, value: encode(String(value)) })),
    body: objectOf({ jsonrpc: '2.0', id, method, params }),
    form: 'whole',
  };
}

function at(value: unknown, path: readonly string[]): unknown {
  const [key, ...rest] = path;
  return key === undefined ? value : at((value as Record<string, unknown> | null | undefined)?.[key], rest);
}
