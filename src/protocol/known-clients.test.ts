import { describe, expect, it } from 'vitest';
import { KNOWN_CLIENTS, readTraits, traitsOf, UNKNOWN_CLIENT } from './known-clients.ts';

describe('the table of known clients', () => {
  it('finds every client under each name that it sends', () => {
    for (const { title, sends, era } of KNOWN_CLIENTS)
      for (const name of sends) expect(traitsOf(name, era ?? 'legacy').title, name).toBe(title);
  });

  it('has each name once per era', () => {
    const keys = KNOWN_CLIENTS.flatMap(({ sends, era }) =>
      sends.flatMap((name) => (era === undefined ? [`legacy ${name}`, `modern ${name}`] : [`${era} ${name}`])),
    );
    expect(new Set(keys).size).toBe(keys.length);
  });

  it('completes a record with what an unknown client gets', () => {
    expect(traitsOf('Zed', 'legacy')).toEqual({ ...UNKNOWN_CLIENT, title: 'Zed' });
    expect(traitsOf('claude-code', 'modern')).toMatchObject({ description: 2_048, listsAgain: 'yes', uris: 'any' });
  });

  it('tells the two Python SDKs apart, which send the same name', () => {
    expect(traitsOf('mcp', 'legacy').uris).toBe('legal');
    expect(traitsOf('mcp', 'modern').uris).toBe('any');
  });
});

describe('what a client says of itself', () => {
  const read = (info: unknown) => readTraits(Buffer.from(JSON.stringify(info)).toString('latin1'), 'legacy');

  it.each([
    [{ name: 'codex-mcp-client', version: '0.166.0' }, 'Codex'],
    [{ version: '1', name: 'Visual Studio Code - Insiders' }, 'VS Code'],
    [{ name: 'claude-ai (via mcp-remote 0.15.1)', version: '1' }, 'Claude Desktop'],
    [{ name: 'Codex-MCP-Client', version: '1' }, 'unknown'],
    [{ name: 'a client of my own ✓', version: '1' }, 'unknown'],
    [{ name: 7 }, 'unknown'],
    [{}, 'unknown'],
    ['claude-code', 'unknown'],
    [null, 'unknown'],
    [['claude-code'], 'unknown'],
  ])('%j is %s', (info, title) => expect(read(info).title).toBe(title));

  it('counts the last of two names, as JSON does', () => {
    expect(readTraits('{"name":"x","name":"opencode"}', 'legacy').title).toBe('opencode');
  });
});
