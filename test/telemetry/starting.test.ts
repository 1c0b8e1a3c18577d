/** When OpenTelemetry is started, what happens if it is not installed, and that it never blocks the gateway. */
import { readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';

import { startHttp, startModernStdio, startStdio } from '../support/gateway.ts';
import { patient } from '../support/patience.ts';
import { waitFor } from '../support/processes.ts';
import { server, serversToml } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';
import { runTool } from '../support/tools.ts';
import { installed, newTrace, serversThatShow, show, startCollector, upstreams } from './telemetry.ts';

const root = join(import.meta.dirname, '../..');
const config = `controls = []\n${serversToml({ a: server('basic') })}`;
const call = { name: 'a_echo', arguments: {} };

it('OpenTelemetry is installed by the command of the documentation', async () => {
  const [, args = ''] = /`npm (install [^`]*@opentelemetry[^`]*)`/.exec(
    readFileSync(join(root, 'docs/metrics.md'), 'utf8'),
  )!;
  const files = ['package.json', 'package-lock.json', '.npmrc', 'dashboard/package.json'];
  const cwd = tempFolder(Object.fromEntries(files.map((file) => [file, readFileSync(join(root, file), 'utf8')])));
  const env = { npm_config_cache: join(homedir(), '.npm') };
  const { code, stdout } = await runTool('npm', [...args.split(' '), '--dry-run', '--prefer-offline'], { cwd, env });
  expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringMatching(/^add @opentelemetry\/sdk-node /m) });
});

describe('without OpenTelemetry', () => {
  const unasked = [
    ['nothing asks for it', {}],
    ['it is switched off', { OTEL_SDK_DISABLED: 'true', OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9' }],
    ['nothing is to be exported', { OTEL_TRACES_EXPORTER: 'none', OTEL_METRICS_EXPORTER: 'none' }],
    ['only its name is given', { OTEL_SERVICE_NAME: 'x' }],
  ] as const;

  it.each(unasked)(
    'because %s, trace context passes unchanged from clients of both eras to all servers',
    async (_, env) => {
      const options = { config: await serversThatShow(), env };
      const [legacy, modern, http] = await Promise.all([
        startStdio(options),
        startModernStdio(options),
        startHttp(options),
      ]);
      const clients = [
        legacy.client,
        modern.client,
        (await http.connect()).client,
        (await http.connectModern()).client,
      ];
      for (const client of clients) {
        for (const namespace of upstreams) {
          const given = { traceparent: newTrace().traceparent, tracestate: 'a=1', baggage: 'k=v', 'io.example/x': 1 };
          const { meta, header } = await show(client, namespace, given);
          expect(meta).toMatchObject(given);
          expect(header).toBeNull();
          expect((await show(client, namespace)).meta).not.toHaveProperty('traceparent');
        }
      }
      // On stdio, the log says what the client sees, and nothing else.
      for (const { stderr } of [legacy, modern, http])
        expect(stderr().replace(/^.*"message":"A client sees .*\n/m, '')).toBe('');
    },
  );

  it('trace context in HTTP headers is forwarded to where servers look for it', async () => {
    const gateway = await startHttp({ config: await serversThatShow() });
    const headers = { traceparent: newTrace().traceparent, tracestate: 'a=1', baggage: 'k=v' };
    const legacy = await gateway.connect({ headers });
    const modern = await gateway.connectModern(headers);
    for (const { client } of [legacy, modern]) {
      for (const namespace of upstreams) {
        const { meta } = await show(client, namespace);
        expect(meta).toMatchObject({ traceparent: headers.traceparent, tracestate: 'a=1' });
        expect(meta).not.toHaveProperty('baggage');
        const own = newTrace().traceparent;
        expect((await show(client, namespace, { traceparent: own })).meta.traceparent).toBe(own);
      }
    }
  });
});

describe('OpenTelemetry that is configured but not installed', () => {
  const env = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9' };

  it('is reported by one line on stderr that says what to install, and the gateway starts', async () => {
    // In this process the packages would be looked for in another way.
    const stdio = await startStdio({ config, env, process: true });
    const http = await startHttp({ config, env, process: true });
    expect(await stdio.client.callTool(call)).toHaveProperty('content');
    expect(await (await http.connect()).client.callTool(call)).toHaveProperty('content');
    for (const { stderr } of [stdio, http]) {
      const lines = stderr()
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line) as { level: string });
      const warnings = lines.filter(({ level }) => level === 'warn');
      expect(warnings).toHaveLength(1);
      expect(warnings[0]).toMatchObject({
        source: 'telemetry',
        message: expect.stringMatching(
          /^OTEL_EXPORTER_OTLP_ENDPOINT asks for OpenTelemetry, but @opentelemetry\/(sdk-node|api) is not installed .* npm install --no-save --save-optional @opentelemetry\/api @opentelemetry\/sdk-node/,
        ),
      });
    }
  });
});

describe('OpenTelemetry on stdio', () => {
  it('never writes to stdout', async () => {
    // Any other output on stdout fails the test at its end.
    const gateway = await startStdio({
      bin: installed(),
      config,
      env: {
        OTEL_TRACES_EXPORTER: 'console',
        OTEL_METRICS_EXPORTER: 'console',
        OTEL_METRIC_EXPORT_INTERVAL: '200',
        OTEL_METRIC_EXPORT_TIMEOUT: '200',
        OTEL_LOG_LEVEL: 'debug',
      },
    });
    await gateway.client.callTool(call);
    await waitFor(() => gateway.stderr().includes('tools/call a_echo') || null);
    await gateway.stop();
    expect(gateway.stderr()).toContain('toolgate.calls');
    for (const line of gateway.lines) expect(JSON.parse(line.toString())).toHaveProperty('jsonrpc');
  });
});

describe('OpenTelemetry when the gateway stops', () => {
  it('sends all pending data', async () => {
    const collector = await startCollector();
    const env = { ...collector.env, OTEL_BSP_SCHEDULE_DELAY: '60000', OTEL_METRIC_EXPORT_INTERVAL: '60000' };
    const gateway = await startStdio({ bin: installed(), config, env });
    await gateway.client.callTool(call);
    expect(collector.spans).toEqual([]);
    const began = performance.now();
    expect(await gateway.stop()).toEqual({ code: 0, signal: null });
    expect(performance.now() - began).toBeLessThan(patient(3_000));
    expect(collector.spans.map(({ name }) => name)).toEqual(['tools/call echo', 'tools/call a_echo']);
    expect(collector.points().some(({ metric }) => metric === 'toolgate.calls')).toBe(true);
  });

  it.each(['takes everything and answers nothing', 'is not there'])(
    'does not wait long for a collector that %s',
    async (how) => {
      const collector = await startCollector(false);
      const env = {
        ...collector.env,
        ...(how === 'is not there' && { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9' }),
      };
      const gateway = await startHttp({ bin: installed(), config, env });
      const { client } = await gateway.connect();
      await client.callTool(call);
      await client.close();
      const began = performance.now();
      expect((await gateway.stop()).code).toBe(0);
      expect(performance.now() - began).toBeLessThan(patient(5_000));
    },
  );
});
