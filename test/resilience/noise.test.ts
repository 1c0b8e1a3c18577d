/** Invalid output of a server must not reach a caller, delay one, or bring the gateway down. */
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { startStdio } from '../support/gateway.ts';
import { waitFor } from '../support/processes.ts';
import { callError, callText, logged, logOf, memoryOf, timed, toml, toolNames } from '../support/running-gateway.ts';
import { server } from '../support/server.ts';
import { onePart } from '../support/wide.ts';

const odd = (...args: string[]) => ({
  namespace: 'odd',
  command: [process.execPath, join(import.meta.dirname, 'odd.mjs'), ...args.map((arg) => `'${arg}'`)].join(' '),
});

describe('a server whose stdout is not clean', () => {
  const garbage = { namespace: 'g', command: server('garbage') };

  it('keeps working: text, bytes, invalid UTF-8, and unknown or repeated ids are skipped', async () => {
    const gateway = await startStdio({ config: toml([garbage]) });
    expect(await toolNames(gateway.client)).toEqual(['g_ok', 'g_garbage', 'g_badjson']);
    const answers = await Promise.all(Array.from({ length: 50 }, (_, n) => callText(gateway.client, 'g_ok', { n })));
    expect(answers).toEqual(Array.from({ length: 50 }, (_, n) => `{"n":${n}}`));
    const line = await logged(gateway, 'wrote a line that is not a JSON-RPC message: "Server starting… {not json}"');
    expect(line).toMatchObject({ level: 'warn', source: 'g' });
    await logged(gateway, 'not UTF-8');
  });

  it('is logged only a limited number of times', async () => {
    const gateway = await startStdio({ config: toml([garbage]) });
    for (let n = 0; n < 20; n++) await callText(gateway.client, 'g_ok');
    await logged(gateway, 'Further ones are not reported.');
    expect(logOf(gateway).filter(({ source }) => source === 'g')).toHaveLength(20);
  });

  it.each(['g_garbage', 'g_badjson'])('fails a call at once if its answer is broken: %s', async (name) => {
    const { client } = await startStdio({ config: toml([garbage]) });
    const { value, ms } = await timed(callError(client, name));
    expect(value.code).toBe('source_broken');
    expect(value.message).toMatch(/^Server "g" answered with invalid JSON\. /);
    // A call that is not failed at once would end with its timeout of five minutes.
    expect(ms).toBeLessThan(10_000);
    expect(await callText(client, 'g_ok', { still: 'here' })).toBe('{"still":"here"}');
  });
});

describe('limits.message', () => {
  const limits = { limits: { message: '100KiB' } };

  it('fails a call whose answer is longer, and keeps the server running', async () => {
    const gateway = await startStdio({ config: toml([{ namespace: 'f', command: server('flood') }], limits) });
    const { client } = gateway;
    const pid = await callText(client, 'f_ok');
    const { value, ms } = await timed(callError(client, 'f_big', { bytes: 5_000_000 }));
    expect(value).toMatchObject({ code: 'source_broken' });
    expect(value.message).toBe(
      'Server "f" sent a message of more than 102400 bytes. Raise limits.message to allow it.',
    );
    // A call that is not failed at once would end with its timeout of five minutes.
    expect(ms).toBeLessThan(10_000);
    expect(await callText(client, 'f_big', { bytes: 100_000 })).toHaveLength(100_000);
    expect(await callText(client, 'f_ok')).toBe(pid);
    expect(await logged(gateway, 'more than 102400 bytes')).toMatchObject({ source: 'f' });
  });

  it('fails no other call of that server', async () => {
    const config = toml([{ namespace: 'h', command: server('hang') }, odd()], limits);
    const { client } = await startStdio({ config });
    const huge = [`{"jsonrpc":"2.0","id":ID,"result":"${'x'.repeat(200_000)}"}`];
    const noise = ['x'.repeat(200_000), `{"jsonrpc":"2.0","method":"log","params":{"a":"${'x'.repeat(200_000)}"}}`];
    const [failed, ...others] = await Promise.all([
      callError(client, 'odd_say', { lines: huge }),
      callText(client, 'odd_ok'),
      callText(client, 'odd_say', { lines: noise, times: 10 }),
    ]);
    expect(failed.message).toContain('more than 102400 bytes');
    expect(others).toEqual([expect.stringMatching(/^\d+$/), 'said']);
  });

  it('also applies to noise, which costs no memory', async () => {
    const command = server('garbage', '--kinds', 'text', '--huge', 10_000_000);
    const gateway = await startStdio({ config: toml([{ namespace: 'g', command }], limits), process: true });
    for (let n = 0; n < 5; n++) expect(await callText(gateway.client, 'g_ok', { n })).toBe(`{"n":${n}}`);
    expect(memoryOf(gateway.pid)).toBeLessThan(200);
  });
});

describe('unexpected messages of a server', () => {
  const control = '\u0001'.repeat(3);
  const long = 'x'.repeat(600);
  const lines = [
    '{"level":30,"id":ID,"msg":"a line of a JSON log"}',
    '{"level":30,"id":ID,"msg":"half a line of a JSON log"',
    '{"jsonrpc":"2.0","id":null,"result":{}}',
    '{"jsonrpc":"2.0","id":[ID],"result":{}}',
    '{"jsonrpc":"2.0","id":1e999,"result":{}}',
    '{"jsonrpc":"2.0","id":-0,"error":null}',
    '{"jsonrpc":"2.0","method":"notifications/progress"}',
    '{"jsonrpc":"2.0","method":"notifications/progress","params":null}',
    '{"jsonrpc":"2.0","method":"notifications/progress","params":[]}',
    '{"jsonrpc":"2.0","method":"notifications/progress","params":"text"}',
    '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":null}}',
    '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":{"a":[1]}}}',
    `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"${long}${control}\\n"}}`,
    '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":ID}}',
    '{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":7}',
    '{"jsonrpc":"2.0","method":"notifications/nobody/knows","params":{"name":1,"uri":[]}}',
    '{"jsonrpc":"2.0","method":"","id":1}',
    '{"jsonrpc":"2.0","method":"ping","id":"a"}',
    '{"jsonrpc":"2.0","method":"ping","id":{}}',
    '{"jsonrpc":"2.0","method":"sampling/createMessage","id":9,"params":[[]]}',
    `${'['.repeat(20_000)}${']'.repeat(20_000)}`,
    `{"jsonrpc":"2.0","id":99,"result":${'{"a":'.repeat(20_000)}1${'}'.repeat(20_000)}}`,
  ];

  it('are ignored, one by one and all at once', async () => {
    const { client } = await startStdio({ config: toml([odd()]) });
    for (const line of lines) expect(await callText(client, 'odd_say', { lines: [line] }), line).toBe('said');
    expect(await callText(client, 'odd_say', { lines, times: 20 })).toBe('said');
  });

  it('fail the call at once if they are meant as its answer', async () => {
    const { client } = await startStdio({ config: toml([odd()]) });
    const wrong = [
      '',
      ',"result":null',
      ',"result":[]',
      ',"error":null',
      ',"error":"text"',
      ',"error":{"message":"x"}',
    ];
    for (const rest of wrong) {
      const { value, ms } = await timed(callError(client, 'odd_say', { lines: [`{"jsonrpc":"2.0","id":ID${rest}}`] }));
      expect(value.code, rest).toBe('source_broken');
      expect(value.message, rest).toMatch(/^Server "odd" answered .*(no|neither a) result (and no|nor an) error\.$/);
      // A call that is not failed at once would end with its timeout of five minutes.
      expect(ms).toBeLessThan(10_000);
      // Without a good call in between, the circuit breaker would open.
      await callText(client, 'odd_ok');
    }
    expect(await callText(client, 'odd_ok')).toMatch(/^\d+$/);
  });

  const answers: [string, string][] = [
    ['no error', '"error":null'],
    ['half an error', '"error":{"message":7}'],
    ['an error with control characters', `"error":{"code":1,"message":"${long}${control}"}`],
    ['no result', '"result":null'],
    ['a list', '"result":[]'],
    ['an unknown revision', '"result":{"protocolVersion":"1999-01-01","capabilities":null}'],
    ['no capabilities', '"result":{"protocolVersion":"2025-11-25","capabilities":null,"serverInfo":"me"}'],
  ];

  it.each(onePart(2, answers))('do not stop the gateway as an answer to initialize: %s', async (_, member) => {
    const line = `{"jsonrpc":"2.0","id":ID,${member}}`;
    const basic = { namespace: 'basic', command: server('basic', '--tools', 'echo') };
    const { client } = await startStdio({ config: toml([odd('--initialize', line), basic]) });
    expect(await toolNames(client)).toEqual(['basic_echo']);
    expect(await callText(client, 'basic_echo')).toBe('{}');
  });
});

it('notices a change that a server announces while its first lists are still loading', async () => {
  const { client } = await startStdio({ config: toml([odd('--late-tool')]) });
  await waitFor(async () => (await toolNames(client)).includes('odd_late'));
});
