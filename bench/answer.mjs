// The MCP server behind both upstreams: one parsed message in, the pieces of one reply out, as little work as possible.

import { bigTextJson, isModernRequest, MODERN_VERSION, PROTOCOL_VERSION, toolList } from './offer.mjs';

const SERVER = '{"name":"bench","version":"1"}';
const SIGNATURE = `,"_meta":{"io.modelcontextprotocol/serverInfo":${SERVER}}`;

/** What differs between the eras: the handshake, and the end of a result (as the official SDK's servers write it). */
const ERAS = {
  legacy: {
    greeting: 'initialize',
    welcome: `"protocolVersion":"${PROTOCOL_VERSION}","capabilities":{"tools":{}},"serverInfo":${SERVER}`,
    ofCall: '',
    ofList: '',
  },
  modern: {
    greeting: 'server/discover',
    welcome: `"supportedVersions":["${MODERN_VERSION}"],"capabilities":{"tools":{}}`,
    ofCall: `,"resultType":"complete"${SIGNATURE}`,
    ofList: `,"resultType":"complete","ttlMs":3600000,"cacheScope":"private"${SIGNATURE}`,
  },
};

/**
 * With `idLast` the reply ends with its id, like those of the official TypeScript SDK; without, it starts with it, like those of
 * most other servers. A gateway that splices bytes must find the id in both places. `era` is `legacy` (sessions), `modern`
 * (2026-07-28) or `both`, which answers each request in its own era.
 */
export function createAnswer({ tools = 10, idLast = false, era = 'legacy' }) {
  let listJson;
  const open = idLast ? () => '{' : (id) => `{"jsonrpc":"2.0","id":${id},`;
  const close = idLast ? (id) => `,"jsonrpc":"2.0","id":${id}}` : () => '}';
  const eraOf = era === 'both' ? (params) => ERAS[isModernRequest(params) ? 'modern' : 'legacy'] : () => ERAS[era];

  /** A string, or an array of strings and buffers for large replies; undefined for a notification. */
  return function answer({ id: rawId, method, params }) {
    if (rawId === undefined) return undefined;
    const id = JSON.stringify(rawId);
    const reply = (member) => open(id) + member + close(id);
    const { greeting, welcome, ofCall, ofList } = eraOf(params);
    switch (method) {
      case 'tools/call':
        if (params.name === 'echo') {
          const text = JSON.stringify(params.arguments.text);
          return reply(`"result":{"content":[{"type":"text","text":${text}}]${ofCall}}`);
        }
        if (params.name === 'big') {
          return [`${open(id)}"result":{"content":[{"type":"text","text":`, bigTextJson(), `}]${ofCall}}${close(id)}`];
        }
        return reply('"error":{"code":-32602,"message":"Unknown tool"}');
      case 'tools/list':
        listJson ??= Buffer.from(JSON.stringify(toolList(tools)));
        return [`${open(id)}"result":{"tools":`, listJson, `${ofList}}${close(id)}`];
      case greeting:
        return reply(`"result":{${welcome}${ofList}}`);
      case 'ping':
        return reply('"result":{}');
      default:
        return reply('"error":{"code":-32601,"message":"Method not found"}');
    }
  };
}
