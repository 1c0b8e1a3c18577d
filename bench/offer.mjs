// The offer of the upstreams, and so what the load generator expects.
// Everything is created on first use, because the start-up time of an upstream is measured.

export const PROTOCOL_VERSION = '2025-11-25';

/** The modern era: each request has an envelope, and each result says what it is. */
export const MODERN_VERSION = '2026-07-28';
const VERSION_KEY = 'io.modelcontextprotocol/protocolVersion';

/** The envelope as the official SDK's client writes it into the parameters of each request. */
export const ENVELOPE = JSON.stringify({
  [VERSION_KEY]: MODERN_VERSION,
  'io.modelcontextprotocol/clientInfo': { name: 'bench-client', version: '1.0.0' },
  'io.modelcontextprotocol/clientCapabilities': {},
});

export const isModernRequest = (params) => params?._meta?.[VERSION_KEY] !== undefined;

const FILLER_DESCRIPTION =
  'Lists the records that match a filter, newest first. Use it before changing anything, to find the identifier that the ' +
  'other tools ask for. Returns at most the given number of records.';

/** `count` tool definitions of about 500 bytes each; the first two are the ones that the bench calls. */
export function toolList(count) {
  const tools = [
    {
      name: 'echo',
      description: 'Returns its text.',
      inputSchema: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] },
    },
    { name: 'big', description: 'Returns 1 MB of text.', inputSchema: { type: 'object', properties: {} } },
  ];
  for (let index = tools.length; index < count; index++) {
    tools.push({
      name: `list_records_${String(index).padStart(5, '0')}`,
      description: FILLER_DESCRIPTION,
      inputSchema: {
        type: 'object',
        properties: {
          query: { type: 'string', description: 'Words to look for' },
          limit: { type: 'integer', minimum: 1, maximum: 100, default: 20 },
          state: { type: 'string', enum: ['open', 'closed', 'all'] },
        },
        required: ['query'],
      },
      annotations: { readOnlyHint: true },
    });
  }
  return tools;
}

let bigJson;

/**
 * The text of `big` as JSON, including quotes: 1 MB that looks like a source file. It has line breaks, quotes and a few letters
 * outside ASCII on purpose: text without them is parsed several times faster than real text.
 */
export function bigTextJson() {
  if (!bigJson) {
    const line = '  if (name === "größe") return `${prefix}/${name}`; // one line of an ordinary source file\n';
    bigJson = Buffer.from(JSON.stringify(line.repeat(Math.ceil(1_000_000 / line.length))));
  }
  return bigJson;
}
