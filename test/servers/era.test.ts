/** How the gateway detects the era of a server. */
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { type Finding, runDoctor } from '../support/doctor.ts';
import { type HttpGateway, startHttp, startStdio } from '../support/gateway.ts';
import { chunksOf, messagesOf, startModernFixture, stdioServer, textOf } from '../support/modern-servers.ts';
import {
  Fault,
  type HttpServer,
  legacyMethods,
  type Methods,
  modernMethods,
  startServer,
} from '../support/plain-http-server.ts';
import { waitFor } from '../support/processes.ts';
import { killAndReturn, toml, toolsToBe } from '../support/running-gateway.ts';
import { server } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';

/** What the doctor reports for each server. */
async function examine(entries: Parameters<typeof toml>[0]): Promise<ReadonlyMap<string, Finding>> {
  const { findings } = await runDoctor(toml(entries));
  return new Map(findings.map((finding) => [finding.about, finding]));
}

const MODERN = /^up, \d+ tools?, protocol 2026-07-28/;
const LEGACY = /^up, \d+ tools?, protocol 2025-11-25/;
const SPOKEN = '2026-07-28, 2025-11-25, 2025-06-18, 2025-03-26, 2024-11-05';

describe('era detection over stdio', () => {
  const slow = ['--slow-start', 3500];
  const late = ['--answer-after', 3500];
  /** The flags of a server, the doctor's message about it, and the first methods it is sent. */
  const servers: Record<string, readonly [(string | number)[], RegExp | string, string]> = {
    'speaks both ways': [[], MODERN, 'server/discover subscriptions/listen'],
    'refuses at once': [['--discover', 'error'], LEGACY, 'server/discover initialize notifications/initialized'],
    'answers with an empty object': [['--discover', 'empty'], LEGACY, 'server/discover initialize'],
    'names older revisions only': [['--discover', 'older'], LEGACY, 'server/discover initialize'],
    'is silent': [['--discover', 'silent'], LEGACY, 'server/discover initialize notifications/cancelled'],
    'writes garbage': [['--discover', 'garbage'], LEGACY, 'server/discover initialize'],
    'is modern and answers late': [[...late, '--initialize', 'error'], MODERN, 'server/discover initialize'],
    'is modern, answers late and never initialize': [[...late, '--initialize', 'silent'], MODERN, 'server/discover'],
    'is legacy and starts slowly': [[...slow, '--discover', 'error'], LEGACY, 'server/discover initialize'],
    'is modern and starts slowly': [[...slow, '--initialize', 'error'], MODERN, 'server/discover initialize'],
    // By then it has opened a session. Going on as if it were modern would leave the two sides in different eras.
    'is dual and starts slowly': [slow, LEGACY, 'server/discover initialize notifications/initialized'],
    'names unknown revisions only': [
      ['--discover', 'unknown'],
      `down: speaks protocol revisions ["2030-01-01"], Toolgate speaks ${SPOKEN}`,
      'server/discover',
    ],
    'answers everything with an empty object': [
      ['--discover', 'empty', '--initialize', 'empty'],
      `down: speaks protocol revision undefined, Toolgate speaks ${SPOKEN}`,
      'server/discover initialize',
    ],
    'answers everything with garbage': [
      ['--discover', 'garbage', '--initialize', 'garbage'],
      'down: did not start and list its tools within 6 s; raise start_timeout if it needs longer',
      'server/discover initialize',
    ],
  };
  /** The official SDK answers the two requests of a slow start in its own order. */
  const slowSdk = { modern: MODERN, both: LEGACY, legacy: LEGACY };
  const names = Object.keys(servers);
  const folder = tempFolder();
  const chunkFile = (name: string) => join(folder, name.replaceAll(' ', '-'));
  let findings: ReadonlyMap<string, Finding>;
  let slowDual: HttpGateway;

  beforeAll(async () => {
    const own = names.map((name) => ({
      namespace: name.replaceAll(/[ ,]+/g, '-'),
      command: stdioServer(...servers[name]![0], '--chunks', chunkFile(name)),
      // Only one of them takes that long. The late ones must have time on a busy machine.
      start_timeout: name.endsWith('garbage') ? '6s' : '15s',
    }));
    const sdk = Object.keys(slowSdk).map((era) => ({
      namespace: `sdk-${era}`,
      command: server('modern', '--era', era, ...slow),
    }));
    const dual = toml([{ namespace: 'up', command: server('modern', ...slow) }], { controls: [] });
    [findings, slowDual] = await Promise.all([examine([...own, ...sdk]), startHttp({ config: dual })]);
  });

  it.each(names)('recognises a server that %s', (name) => {
    const [, said, asked] = servers[name]!;
    expect(findings.get(name.replaceAll(/[ ,]+/g, '-'))!.message).toMatch(said);
    const methods = messagesOf(chunkFile(name)).map(({ method }) => method);
    expect(methods.join(' ').startsWith(asked), methods.join(' ')).toBe(true);
  });

  it.each(Object.keys(slowSdk))('recognises an SDK server that starts slowly, of the era "%s"', (era) => {
    expect(findings.get(`sdk-${era}`)!.message).toMatch(slowSdk[era as keyof typeof slowSdk]);
  });

  it('never sends server/discover and initialize in one write', () => {
    for (const name of names.filter((name) => !name.includes('slowly'))) {
      for (const chunk of chunksOf(chunkFile(name)))
        expect(chunk.includes('"server/discover"') && chunk.includes('"initialize"'), name).toBe(false);
    }
  });

  it('restarts a server that exited on server/discover, after a short pause and without asking again', async () => {
    const chunks = join(folder, 'exits');
    const config = toml([{ namespace: 'up', command: stdioServer('--discover', 'exit', '--chunks', chunks) }]);
    const { client } = await startStdio({ config });
    await toolsToBe(client, ['up_pid', 'up_hang', 'up_tell']);
    const asked = messagesOf(chunks).map(({ method }) => method);
    expect(asked.slice(0, 3)).toEqual(['server/discover', 'initialize', 'notifications/initialized']);
    // It is not asked again when the server is restarted later either.
    await killAndReturn(client, 'up_pid');
    expect(messagesOf(chunks).filter(({ method }) => method === 'server/discover')).toHaveLength(1);
  });

  it('serves modern clients correctly from a dual-era server that answered too late', async () => {
    const { client } = await slowDual.connectModern();
    expect(textOf(await client.callTool({ name: 'up_echo', arguments: { n: 1 } }))).toBe('{"n":1}');
  });
});

describe('era detection over HTTP', () => {
  /** Answers the first request with a status and a body, and all later ones as a legacy server. */
  const first = (status: number, body: string) => {
    let isFirst = true;
    return startServer(legacyMethods(), (_, response) => {
      if (!isFirst) return false;
      isFirst = false;
      response
        .writeHead(status, { 'content-type': body.startsWith('{') ? 'application/json' : 'text/plain' })
        .end(body);
      return true;
    });
  };
  const always = (status: number) =>
    startServer({}, (_, response) => {
      response.writeHead(status).end('No');
      return true;
    });
  const unsupported = (supported: unknown): Methods => ({
    'server/discover': () => {
      throw new Fault(-32_022, 'Unsupported protocol version', { data: { supported } });
    },
  });
  /** Refuses the modern revision once, although it speaks it. */
  const hesitant = (): Methods => {
    let isFirst = true;
    const { 'server/discover': discover, ...rest } = modernMethods();
    return {
      ...rest,
      'server/discover': (...all) => {
        if (!isFirst) return discover!(...all);
        isFirst = false;
        throw new Fault(-32_022, 'Unsupported protocol version', { data: { supported: ['2026-07-28'] } });
      },
    };
  };
  /** Refuses `initialize` with other revisions than its own, as the specification shows it, in place of answering with its own. */
  const strict = (...supported: string[]): Methods => ({
    ...legacyMethods(),
    initialize: ({ protocolVersion }) => {
      if (!supported.includes(String(protocolVersion)))
        throw new Fault(-32_602, 'Unsupported protocol version', { data: { supported, requested: protocolVersion } });
      return { protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'strict', version: '1' } };
    },
  });
  const refusal = '{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: Server not initialized"}}';
  const INITIALIZED = 'server/discover initialize notifications/initialized';

  const servers: Record<string, readonly [() => Promise<HttpServer>, RegExp | string, string]> = {
    modern: [() => startServer(modernMethods()), MODERN, 'server/discover'],
    dual: [() => startServer({ ...legacyMethods(), ...modernMethods() }), MODERN, 'server/discover'],
    legacy: [() => startServer(legacyMethods()), LEGACY, INITIALIZED],
    'answers-400': [() => first(400, 'Bad Request'), LEGACY, INITIALIZED],
    'answers-404': [() => first(404, 'Not Found'), LEGACY, INITIALIZED],
    'answers-405': [() => first(405, 'Method Not Allowed'), LEGACY, INITIALIZED],
    'answers-400-as-rpc': [() => first(400, refusal), LEGACY, INITIALIZED],
    'supports-older': [
      () => startServer(legacyMethods(unsupported(['2025-06-18', '2025-11-25']))),
      LEGACY,
      INITIALIZED,
    ],
    'refuses-ours-and-names-it': [() => startServer(hesitant()), MODERN, 'server/discover server/discover'],
    'refuses-initialize-and-names-older': [
      () => startServer(strict('2024-11-05', '2025-06-18')),
      /^up, 1 tool, protocol 2025-06-18/,
      'server/discover initialize initialize notifications/initialized',
    ],
    'refuses-initialize-and-names-unknown': [
      () => startServer(strict('2023-01-01')),
      'Unsupported protocol version',
      'server/discover initialize',
    ],
    'supports-unknown': [
      () => startServer(legacyMethods(unsupported(['2031-01-01']))),
      `down: speaks protocol revisions ["2031-01-01"], Toolgate speaks ${SPOKEN}`,
      'server/discover',
    ],
    ...Object.fromEntries(
      [401, 403, 429, 500, 503].map((status) => [
        `is-${status}`,
        [() => always(status), `answered with HTTP status ${status}`, 'server/discover'],
      ]),
    ),
  };
  const names = Object.keys(servers);
  const started = new Map<string, HttpServer>();
  let findings: ReadonlyMap<string, Finding>;

  beforeAll(async () => {
    for (const name of names) started.set(name, await servers[name]![0]());
    const entries = names.map((namespace) => ({ namespace, url: started.get(namespace)!.url }));
    const sdk = await Promise.all(
      ['modern', 'legacy', 'both'].map(async (era) => ({
        namespace: `sdk-${era}`,
        url: (await startModernFixture('--era', era)).url,
      })),
    );
    findings = await examine([...entries, ...sdk]);
  });

  it.each(names)('recognises the server "%s"', (name) => {
    const [, said, asked] = servers[name]!;
    expect(findings.get(name)!.message).toMatch(said);
    const methods = started.get(name)!.seen.map(({ message }) => message.method);
    expect(methods.join(' ').startsWith(asked), methods.join(' ')).toBe(true);
    // These answers say nothing about the era.
    if (name.startsWith('is-')) expect(methods).not.toContain('initialize');
  });

  it.each([
    ['modern', MODERN],
    ['both', MODERN],
    ['legacy', LEGACY],
  ])('recognises an SDK server of the era "%s"', (era, said) => {
    expect(findings.get(`sdk-${era}`)!.message).toMatch(said);
  });
});

it('names the method of "initialize" in a header, because a modern server that answers late is asked in both ways', async () => {
  const late = modernMethods();
  const discover = late['server/discover']!;
  const server = await startServer({
    ...late,
    // Answers when it has been asked in the other way, too.
    'server/discover': async (...all) => {
      await waitFor(() => server.of('initialize').length > 0);
      return discover(...all);
    },
  });
  const found = await examine([{ namespace: 'late', url: server.url }]);
  expect(found.get('late')!.message).toMatch(MODERN);
  expect(server.of('initialize')[0]!.headers['mcp-method']).toBe('initialize');
});
