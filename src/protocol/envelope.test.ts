import { describe, expect, it } from 'vitest';
import type { GatewayError } from '../base/errors.ts';
import { IDENTITY } from '../base/version.ts';
import {
  claimedRevision,
  legacyMeta,
  modernMeta,
  NO_ABILITIES,
  readAbilities,
  requireEnvelope,
  requireModern,
} from './envelope.ts';
import { claimsRevision } from './message.ts';
import { readMessage } from './read.ts';

const VERSION = '"io.modelcontextprotocol/protocolVersion":"2026-07-28"';
const CAPABILITIES = '"io.modelcontextprotocol/clientCapabilities":';
const CLIENT = '"io.modelcontextprotocol/clientInfo":';
const LEVEL = '"io.modelcontextprotocol/logLevel":';

const request = (meta: string) =>
  readMessage(Buffer.from(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","_meta":${meta}}}`));
const codeOf = (run: () => unknown) => {
  try {
    run();
    return null;
  } catch (error) {
    return (error as GatewayError).code;
  }
};

describe('the envelope of a request', () => {
  it.each([
    ['{}', ['elicitation.form']],
    ['{"form":{}}', ['elicitation.form']],
    ['{"url":{}}', ['elicitation.url']],
    ['{"form":{},"url":{}}', ['elicitation.url', 'elicitation.form']],
    ['{"other":{}}', ['elicitation.form']],
  ])('says which modes of elicitation there are: %s', (declared, modes) => {
    const { asks } = readAbilities(request(`{${VERSION},${CAPABILITIES}{"elicitation":${declared}}}`));
    expect([...asks]).toEqual(modes);
  });

  it('says what the caller can be asked, as far as that can be passed on', () => {
    const sampling = '{ "tools": {}, "größe": 1.0 }';
    const able = `{"extensions":{"a/b":{}},"sampling":${sampling},"elicitation":{"form":{}},"Roots":{}}`;
    const { capabilities, logLevel } = readAbilities(request(`{${VERSION},${CAPABILITIES}${able}}`));
    expect(Buffer.from(capabilities, 'latin1').toString()).toBe(`{"sampling":${sampling},"elicitation":{"form":{}}}`);
    expect(logLevel).toBeNull();
  });

  it('says how much the caller wants to hear, each time anew', () => {
    const read = (level: string) => readAbilities(request(`{${VERSION},${CAPABILITIES}{"roots":{}}${level}}`)).logLevel;
    expect([read(`,${LEVEL}"debug"`), read(''), read(`,${LEVEL}"\\u0065rror"`), read('')]).toEqual([
      ...['debug', null, 'error', null],
    ]);
  });

  it('is read right however many wordings there have been', () => {
    for (let round = 0; round < 2; round++)
      for (let n = 0; n < 300; n++) {
        const { capabilities } = readAbilities(request(`{${VERSION},${CAPABILITIES}{"roots":{"n":${n}}}}`));
        expect(capabilities).toBe(`{"roots":{"n":${n}}}`);
      }
  });

  it.each([
    ['{}', 'protocolVersion'],
    ['null', 'protocolVersion'],
    ['[]', 'protocolVersion'],
    [`{${CAPABILITIES}{}}`, 'protocolVersion'],
    [`{${VERSION}}`, 'clientCapabilities'],
    [`{${VERSION},${CAPABILITIES}[]}`, 'clientCapabilities'],
    [`{${VERSION},${CAPABILITIES}null}`, 'clientCapabilities'],
    [`{${VERSION},${CAPABILITIES}{"roots":true}}`, 'clientCapabilities'],
    [`{${VERSION},${CAPABILITIES}{"roots":{},"roots":{}}}`, 'clientCapabilities'],
    [`{${VERSION},${CAPABILITIES}{},${CLIENT}"a"}`, 'clientInfo'],
    [`{${VERSION},${CAPABILITIES}{},${CLIENT}{"name":"a"}}`, 'clientInfo'],
    [`{${VERSION},${CAPABILITIES}{},${CLIENT}{"name":"a","version":1}}`, 'clientInfo'],
    [`{${VERSION},${CAPABILITIES}{},${CLIENT}{"name":"a","version":"1","name":2}}`, 'clientInfo'],
    [`{${VERSION},${CAPABILITIES}{},${LEVEL}"loud"}`, 'logLevel'],
    [`{${VERSION},${CAPABILITIES}{},${LEVEL}7}`, 'logLevel'],
  ])('is refused: %s', (meta, key) => {
    const message = request(meta);
    expect(() => readAbilities(message)).toThrow(key);
    expect(codeOf(() => readAbilities(message))).toBe('envelope_invalid');
  });

  it('is missed where it was promised', () => {
    const bare = readMessage(Buffer.from('{"jsonrpc":"2.0","id":1,"method":"tools/list"}'));
    expect(() => requireEnvelope(bare)).toThrow('"_meta": it is missing');
    expect(() => requireEnvelope(request('{}'))).toThrow('protocolVersion');
  });
});

describe('the revision of a request', () => {
  it('is what the envelope claims', () => {
    const message = request('{"io.modelcontextprotocol\\/protocolVersion":"\\u0032026-07-28"}');
    expect(claimsRevision(message)).toBe(true);
    expect(claimedRevision(message)).toBe('2026-07-28');
    expect(claimsRevision(request(`{${CAPABILITIES}{}}`))).toBe(false);
    expect(codeOf(() => claimedRevision(request('{"io.modelcontextprotocol/protocolVersion":1}')))).toBe(
      'envelope_invalid',
    );
  });

  it('has to be ours, or is answered with those that are', () => {
    expect(() => requireModern('2026-07-28')).not.toThrow();
    for (const requested of ['2025-11-25', '2099-01-01', ''])
      expect(() => requireModern(requested)).toThrow(
        expect.objectContaining({
          code: 'revision_unsupported',
          details: { supported: expect.arrayContaining(['2026-07-28', '2025-11-25']) as string[], requested },
        }),
      );
  });
});

describe('the metadata that goes on', () => {
  const others = '"größe":[1.0, 9007199254740993],"traceparent":"00-ab"';
  const message = request(`{${VERSION},"progressToken":"mine",${others},${CAPABILITIES}{"roots":{}},${LEVEL}"info"}`);
  const text = (latin1: string) => Buffer.from(latin1, 'latin1').toString();

  it('to a modern server is an envelope of our own, and whatever else there was', () => {
    expect(text(modernMeta(message, { ...NO_ABILITIES, capabilities: '{"roots":{}}', logLevel: 'info' }, 7))).toBe(
      `{${VERSION},${CLIENT}${JSON.stringify(IDENTITY)},${CAPABILITIES}{"roots":{}},${LEVEL}"info","progressToken":7,${others}}`,
    );
    expect(text(modernMeta(request('{}'), NO_ABILITIES, 7))).toBe(
      `{${VERSION},${CLIENT}${JSON.stringify(IDENTITY)},${CAPABILITIES}{}}`,
    );
  });

  it('to a server of the earlier revisions has no envelope', () => {
    expect(text(legacyMeta(message, 7))).toBe(`{"progressToken":7,${others}}`);
    expect(legacyMeta(request(`{${VERSION}}`), 7)).toBe('{}');
    expect(legacyMeta(request(`{${VERSION},"progressToken":1}`), 7)).toBe('{"progressToken":7}');
    expect(legacyMeta(request(`{"a":1,${VERSION}}`), 7)).toBe('{"a":1}');
  });
});
