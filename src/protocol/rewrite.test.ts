import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { anyText } from '../../test/support/random.ts';
import { IDENTITY } from '../base/version.ts';
import { type ClientAbilities, NO_ABILITIES } from './envelope.ts';
import { readMessage } from './read.ts';
import { rewriteRequest, wireBytes } from './rewrite.ts';

const AUDIENCE: ClientAbilities = { ...NO_ABILITIES, capabilities: '{"sampling":{"a":1.0}}', logLevel: 'warning' };
const PREFIX = 'io.modelcontextprotocol/';
const ENVELOPE = {
  [`${PREFIX}protocolVersion`]: '2026-07-28',
  [`${PREFIX}clientInfo`]: { name: 'caller', version: '1' },
  [`${PREFIX}clientCapabilities`]: { sampling: { a: 1 } },
};
/** As a modern server gets it. */
const OURS = { ...ENVELOPE, [`${PREFIX}clientInfo`]: IDENTITY, [`${PREFIX}logLevel`]: 'warning' };

function rewrite(text: string, name: string, era: 'legacy' | 'modern'): string {
  const message = readMessage(Buffer.from(text));
  const upstreamName = Buffer.from(JSON.stringify(name)).toString('latin1');
  const target = { nameStart: message.nameStart, nameEnd: message.nameEnd, name: upstreamName };
  return wireBytes(rewriteRequest(message, target, AUDIENCE, 42, era)).toString();
}

describe('a request for a server', () => {
  it('keeps every byte that is not ours', () => {
    const rest = '"arguments": {"n":9007199254740993,"f":1.0, "e":"\\u00e9\\/"},"extra" :[ 1 ]';
    const text = `{"id":"mine","params":{ "_meta":{"progressToken":"t"} ,"name" : "up_x",${rest}},"method":"tools/call","jsonrpc":"2.0"}`;
    expect(rewrite(text, 'größe', 'legacy')).toBe(
      `{"jsonrpc":"2.0","id":42,"method":"tools/call","params":{ "_meta":{"progressToken":42} ,"name" : "größe",${rest}}}`,
    );
  });

  it('gets an envelope if it had no metadata', () => {
    const meta = JSON.stringify({ ...OURS, [`${PREFIX}clientCapabilities`]: '?' }).replace(
      '"?"',
      AUDIENCE.capabilities,
    );
    expect(rewrite('{"id":1,"method":"prompts/get","params":{"name":"a"}}', 'b', 'modern')).toBe(
      `{"jsonrpc":"2.0","id":42,"method":"prompts/get","params":{"_meta":${meta},"name":"b"}}`,
    );
  });

  /** Everything a request may have, in any order. */
  const requests = fc.record({
    enveloped: fc.boolean(),
    token: fc.option(fc.oneof(fc.string(), fc.integer()), { nil: undefined }),
    others: fc.dictionary(
      anyText().map((key) => `x/${key}`),
      fc.jsonValue(),
      { maxKeys: 3 },
    ),
    hasMeta: fc.boolean(),
    args: fc.option(fc.dictionary(fc.string(), fc.jsonValue()), { nil: undefined }),
    bulk: fc.constantFrom('', 'größe ☃ '.repeat(3000)),
    order: fc.shuffledSubarray(['name', 'arguments', '_meta', 'more'], { minLength: 4 }),
    indent: fc.constantFrom(undefined, 2, '\t', '\r\n'),
    name: anyText(),
  });

  it.each(['legacy', 'modern'] as const)('has the same content in the %s era, with our id, token and name', (era) => {
    fc.assert(
      fc.property(requests, ({ enveloped, token, others, hasMeta, args, bulk, order, indent, name }) => {
        const meta = { ...(enveloped && ENVELOPE), ...others, ...(token !== undefined && { progressToken: token }) };
        const members: Record<string, unknown> = {
          name: 'exposed',
          arguments: args,
          _meta: hasMeta ? meta : undefined,
          more: { bulk },
        };
        const params = Object.fromEntries(order.map((key) => [key, members[key]]));
        const text = JSON.stringify({ jsonrpc: '2.0', id: 'mine', method: 'tools/call', params }, null, indent);

        const rewritten = rewrite(text, name, era);
        expect(rewritten).not.toMatch(/[\r\n]/);
        const kept = hasMeta ? { ...others, ...(token !== undefined && { progressToken: 42 }) } : {};
        const expectedMeta = era === 'modern' ? { ...OURS, ...kept } : hasMeta ? kept : undefined;
        expect(JSON.parse(rewritten)).toEqual(
          JSON.parse(
            JSON.stringify({
              jsonrpc: '2.0',
              id: 42,
              method: 'tools/call',
              params: { ...params, name, _meta: expectedMeta },
            }),
          ),
        );
      }),
    );
  });
});
