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
  ])('says which modes of elicitation the caller supports: %s', (declared, modes) => {
    const { asks } = readAbilities(request(`{${VERSION},${CAPABILITIES}{"elicitation":${declared}}}`));
    expect([...asks]).toEqual(modes);
  });

  it('says which capabilities of the caller can be passed on', () => {
    const sampling = '{ "tools": {}, "größe": 1.0 }';
    const declared = `{"extensions":{"a/b":{}},"sampling":${sampling},"elicitation":{"form":{}},"Roots":{}}`;
    const { capabilities, logLevel } = readAbilities(request(`{${VERSION},${CAPABILITIES}${declared}}`));
    expect(Buffer.from(capabilities, 'latin1').toString()).toBe(`{"sampling":${sampling},"elicitation":{"form":{}}}`);
    expect(logLevel).toBeNull();
  });

  it('says which log level the caller wants, for each request', () => {
    const read = (level: string) => readAbilities(request(`{${VERSION},${CAPABILITIES}{"roots":{}}${level}}`)).logLevel;
    expect([read(`,${LEVEL}"debug"`), read(''), read(`,${LEVEL}"\\u0065rror"`), read('')]).toEqual([
      ...['debug', null, 'error', null],
    ]);
  });

  it('is read correctly when there are more texts than are cached', () => {
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

  it('is required if a header announces it', () => {
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

  it('is refused unless we speak it, and the error names those that we speak', () => {
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

describe('the metadata for a server', () => {
  const others = '"größe":[1.0, 9007199254740993],"traceparent":"00-ab"';
  const message = request(`{${VERSION},"progressToken":"mine",${others},${CAPABILITIES}{"roots":{}},${LEVEL}"info"}`);
  const text = (latin1: string) => Buffer.from(latin1, 'latin1').toString();

  it('has our own envelope and all other members, for a modern server', () => {
    expect(text(modernMeta(message, { ...NO_ABILITIES, capabilities: '{"roots":{}}', logLevel: 'info' }, 7))).toBe(
      `{${VERSION},${CLIENT}${JSON.stringify(IDENTITY)},${CAPABILITIES}{"roots":{}},${LEVEL}"info","progressToken":7,${others}}`,
    );
    expect(text(modernMeta(request('{}'), NO_ABILITIES, 7))).toBe(
      `{${VERSION},${CLIENT}${JSON.stringify(IDENTITY)},${CAPABILITIES}{}}`,
    );
  });

  it('has no envelope, for a legacy server', () => {
    expect(text(legacyMeta(message, 7))).toBe(`{"progressToken":7,${others}}`);
    expect(legacyMeta(request(`{${VERSION}}`), 7)).toBe('{}');
    expect(legacyMeta(request(`{${VERSION},"progressToken":1}`), 7)).toBe('{"progressToken":7}');
    expect(legacyMeta(request(`{"a":1,${VERSION}}`), 7)).toBe('{"a":1}');
  });
});
