/** Replicas of one gateway, and clients that go on when one of them is killed. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { atEnd } from './cleanup.ts';
import { type HttpGateway, startHttp } from './gateway.ts';
import { freePort } from './ports.ts';
import { INITIALIZED, initialize } from './raw-http.ts';
import { server, serversToml } from './server.ts';
import { tempFolder } from './temp.ts';

export const FLEET_ENV = { SECRETS_KEY: 'a key that all replicas have' };

/** Its servers write each call to `runs`. Hints of the first count. The second is for questions: nothing else runs there. */
export function fleetConfig(url: string, runs: string, more = '', pause = '0s'): string {
  const counted = server('../fleet/counted', '--runs', runs);
  const servers = serversToml({ c: counted, q: counted });
  return `controls = []\n${more}\n[store]\nurl = "${url}"\ntrust_hints = ["c"]\ndrain_pause = "${pause}"\n${servers}`;
}

/** In a process of its own, on this port. With a pause it still takes requests after it was told to stop. */
export function startReplica(
  url: string,
  runs: string,
  port: number | null = null,
  pause = '0s',
): Promise<HttpGateway> {
  const config = fleetConfig(url, runs, '[http]\nport = 0', pause);
  const args = port === null ? [] : ['--port', String(port)];
  return startHttp({ config, env: FLEET_ENV, process: true, args });
}

export interface Balancer {
  readonly origin: string;
  /** What it has written about the replicas. */
  log(): string;
}

/** haproxy in front of these ports, in turn and without stickiness. */
export async function startBalancer(ports: readonly number[]): Promise<Balancer> {
  const folder = tempFolder();
  const port = await freePort();
  // Of its own log only what it says about replicas.
  const log = openSync(join(folder, 'haproxy.log'), 'a');
  const lines = [
    'global',
    '  log stdout format raw local0 notice',
    'defaults',
    '  log global',
    '  mode http',
    '  timeout connect 1s',
    '  timeout client 60s',
    '  timeout server 60s',
    // On a busy machine an answer may take long. One that is killed or says that it is going is noticed at once.
    '  timeout check 2s',
    '  option redispatch 1',
    '  retries 2',
    'frontend in',
    `  bind 127.0.0.1:${port}`,
    '  default_backend replicas',
    'backend replicas',
    '  balance roundrobin',
    '  option httpchk GET /ready',
    '  default-server inter 200ms fall 2 rise 2',
    ...ports.map((one, i) => `  server r${i} 127.0.0.1:${one} check`),
    '',
  ];
  writeFileSync(join(folder, 'haproxy.cfg'), lines.join('\n'));
  const child = spawn('haproxy', ['-f', join(folder, 'haproxy.cfg'), '-db'], { stdio: ['ignore', log, log] });
  closeSync(log);
  atEnd(async () => {
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
  });
  const origin = `http://127.0.0.1:${port}`;
  for (let tries = 0; tries < 100; tries++) {
    const isUp = await fetch(`${origin}/ready`).then(
      ({ ok }) => ok,
      () => false,
    );
    if (isUp) return { origin, log: () => readFileSync(join(folder, 'haproxy.log'), 'utf8') };
    await sleep(100);
  }
  throw new Error('haproxy does not answer');
}

/** What became of a call. */
export interface Ended {
  readonly key: string;
  readonly tool: string;
  readonly outcome: 'result' | 'unknown' | 'other';
  readonly text: string;
  /** How many answers came for it. */
  readonly answers: number;
  /** Steps of progress, in the order in which they came. */
  readonly steps: readonly number[];
  readonly ms: number;
}

/** A client of revision 2025-11-25 that sends its request again, and comes back for its stream, until it has an answer. */
export class StubbornClient {
  readonly origins: readonly string[];
  session = '';
  #turn = 0;
  #last = 0;

  constructor(origins: readonly string[]) {
    this.origins = origins;
  }

  get #origin(): string {
    return this.origins[this.#turn++ % this.origins.length]!;
  }

  get #headers(): Record<string, string> {
    return {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...(this.session !== '' && { 'mcp-session-id': this.session }),
    };
  }

  async #fetch(init: RequestInit): Promise<Response | null> {
    try {
      const response = await fetch(`${this.#origin}/mcp`, init);
      // The store or the replicas are away.
      if (response.status !== 503 && response.status !== 502 && response.status !== 504) return response;
      await response.body?.cancel();
    } catch {
      // A replica was killed.
    }
    await sleep(100);
    return null;
  }

  async #post(body: string): Promise<Response> {
    for (;;) {
      const response = await this.#fetch({ method: 'POST', headers: this.#headers, body });
      if (response !== null) return response;
    }
  }

  async open(): Promise<void> {
    const opened = await this.#post(initialize('2025-11-25', { elicitation: {} }));
    this.session = opened.headers.get('mcp-session-id') ?? '';
    await opened.text();
    await (await this.#post(INITIALIZED)).text();
  }

  /** `tool` of the server `c`, unless it names another. */
  async call(tool: string, key: string, args: object, most = 60_000): Promise<Ended> {
    const id = ++this.#last;
    const signal = AbortSignal.timeout(most);
    const params = {
      name: tool.includes('_') ? tool : `c_${tool}`,
      arguments: { key, ...args },
      _meta: { progressToken: id },
    };
    const body = JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params });
    const started = performance.now();
    const steps: number[] = [];
    let lastEvent: string | null = null;
    let answers = 0;
    let text = '';
    const take = async (message: Record<string, unknown>) => {
      if (message.method === 'notifications/progress') steps.push((message.params as { progress: number }).progress);
      else if (message.method === 'elicitation/create') {
        const answer = { jsonrpc: '2.0', id: message.id, result: { action: 'accept', content: { word: 'yes' } } };
        await (await this.#post(JSON.stringify(answer))).text();
      } else if (message.id === id) {
        answers++;
        const { result, error } = message as { result?: { content: { text: string }[] }; error?: { message: string } };
        text = result?.content[0]?.text ?? error?.message ?? '';
      }
    };
    while (answers === 0) {
      if (performance.now() - started > most) throw new Error(`${tool} ${key} hangs after ${most} ms`);
      const response: Response | null =
        lastEvent === null
          ? await this.#fetch({ method: 'POST', headers: this.#headers, body, signal })
          : await this.#fetch({
              method: 'GET',
              signal,
              headers: { ...this.#headers, accept: 'text/event-stream', 'last-event-id': lastEvent },
            });
      if (response === null) continue;
      if (response.status !== 200) throw new Error(`${tool} ${key}: ${response.status} ${await response.text()}`);
      if (response.headers.get('content-type')?.startsWith('application/json') === true) {
        const read = await response.text().catch(() => null);
        if (read !== null) await take(JSON.parse(read) as Record<string, unknown>);
        continue;
      }
      for await (const { id: event, data } of eventsIn(response)) {
        lastEvent = event ?? lastEvent;
        if (data !== '') await take(JSON.parse(data) as Record<string, unknown>);
      }
    }
    const isUnknown = text.includes('outcome_unknown');
    const isResult = text === key || text === `${key} yes`;
    const outcome = isUnknown ? 'unknown' : isResult ? 'result' : 'other';
    return { key, tool, outcome, text, answers, steps, ms: performance.now() - started };
  }
}

async function* eventsIn(response: Response): AsyncGenerator<{ id: string | null; data: string }> {
  let rest = '';
  const decoder = new TextDecoder();
  try {
    for await (const chunk of response.body!) {
      const parts = (rest + decoder.decode(chunk, { stream: true })).split('\n\n');
      rest = parts.pop()!;
      for (const part of parts)
        yield { id: /^id: (.*)$/m.exec(part)?.[1] ?? null, data: /^data: (.+)$/m.exec(part)?.[1] ?? '' };
    }
  } catch {
    // The connection broke. The client comes back for the rest.
  }
}
