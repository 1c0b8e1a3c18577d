// The MCP server behind both upstreams: one parsed message in, the pieces of one reply out, as little work as possible.

import { bigTextJson, PROTOCOL_VERSION, toolList } from './offer.mjs';

/**
 * With `idLast` the reply ends with its id, as the official TypeScript SDK writes it; without, it starts with it, as most
 * other servers do. A gateway that splices bytes has to find the id in both places.
 */
export function createAnswer({ tools = 10, idLast = false }) {
  let listJson;
  const open = idLast ? () => '{' : (id) => `{"jsonrpc":"2.0","id":${id},`;
  const close = idLast ? (id) => `,"jsonrpc":"2.0","id":${id}}` : () => '}';

  /** A string, or an array of strings and buffers for large replies; undefined for a notification. */
  return function answer({ id: rawId, method, params }) {
    if (rawId === undefined) return undefined;
    const id = JSON.stringify(rawId);
    const reply = (member) => open(id) + member + close(id);
    switch (method) {
      case 'tools/call':
        if (params.name === 'echo') {
          return reply(`"result":{"content":[{"type":"text","text":${JSON.stringify(params.arguments.text)}}]}`);
        }
        if (params.name === 'big') {
          return [`${open(id)}"result":{"content":[{"type":"text","text":`, bigTextJson(), `}]}${close(id)}`];
        }
        return reply('"error":{"code":-32602,"message":"Unknown tool"}');
      case 'tools/list':
        listJson ??= Buffer.from(JSON.stringify(toolList(tools)));
        return [`${open(id)}"result":{"tools":`, listJson, `}${close(id)}`];
      case 'initialize':
        return reply(
          `"result":{"protocolVersion":"${PROTOCOL_VERSION}","capabilities":{"tools":{}},"serverInfo":{"name":"bench","version":"1"}}`,
        );
      case 'ping':
        return reply('"result":{}');
      default:
        return reply('"error":{"code":-32601,"message":"Method not found"}');
    }
  };
}
