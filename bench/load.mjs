// The load generator, in its own process: MCP clients that call, wait for the reply, check it and call again.
// `createLoad` in processes.mjs controls it over IPC. It only measures time; the harness reads the CPU of processes.
//   open    a target: a URL with some sessions, with modern clients or with REST clients, or a command whose pipe is the only
//           "session"
//   prepare opens new connections for a number of callers, and calls until caches are warm
//   run     calls for some time
//   close   the target

import { spawn } from 'node:child_process';
import { connect } from 'node:net';
import { createReader, headerOf } from './http1.mjs';
import { bigTextJson, ENVELOPE, MODERN_VERSION, PROTOCOL_VERSION } from './offer.mjs';

const ACCEPT = 'application/json, text/event-stream';
const INITIALIZE = { protocolVersion: PROTOCOL_VERSION, capabilities: {}, clientInfo: { name: 'bench', version: '1' } };
const TEXT_MEMBER = Buffer.from('"text":"');
const PADDING = ' with about as many words in it as a small reply of an ordinary tool has';

// --- Targets -------------------------------------------------------------------------------------------------------------

/** Sends one request at a time on one socket. `exchange` calls back with the head and the body of the reply. */
function openConnection(port) {
  const connection = { socket: connect({ port, host: '127.0.0.1', noDelay: true }), done: null, fail: null };
  const push = createReader((head, body) => connection.done(head, body));
  connection.socket.on('data', push);
  connection.socket.on('error', (error) => connection.fail?.(error));
  connection.socket.on('close', () => connection.fail?.(new Error('The connection was closed while a reply was due')));
  return connection;
}

function exchange(connection, text, done, fail) {
  connection.done = (head, body) => {
    connection.fail = null;
    done(head, body);
  };
  connection.fail = fail;
  connection.socket.write(text, 'latin1');
}

const headFor = (url, path, more) =>
  `POST ${path} HTTP/1.1\r\nHost: ${url.host}\r\nConnection: keep-alive\r\nUser-Agent: toolgate-bench\r\n` +
  `Accept: ${ACCEPT}\r\nContent-Type: application/json\r\n${more}`;

const withBody = (head, body) => `${head}Content-Length: ${body.length}\r\n\r\n${body}`;

const VERSION_HEADER = `MCP-Protocol-Version: ${PROTOCOL_VERSION}\r\n`;

const MODERN_HEADER = `MCP-Protocol-Version: ${MODERN_VERSION}\r\n`;

/** In the modern era headers repeat parts of the body. */
const mirrored = (method, name) => `Mcp-Method: ${method}\r\n${name === '' ? '' : `Mcp-Name: ${name}\r\n`}`;

/** With `modern` there are no sessions and no handshake: a "session" is a client with its own ids. */
async function openHttpTarget({ url: address, paths, sessions: count, streams = false, modern = false, rest = false }) {
  const url = new URL(address);
  const port = Number(url.port);
  const sessions = [];
  const target = { sessions, lanes: [], streams: [], fresh: 0 };

  const handshake = async (connection, path) => {
    if (rest) return { path, nextId: 1, rest: rest === true ? '/tools/' : rest };
    if (modern) return { path, nextId: 1, head: headFor(url, path, MODERN_HEADER), modern };
    const post = (head, message) =>
      new Promise((resolve, reject) => {
        const body = JSON.stringify({ jsonrpc: '2.0', ...message });
        exchange(connection, withBody(head, body), (...reply) => resolve(reply), reject);
      });
    const [head, body] = await post(headFor(url, path, ''), { id: 0, method: 'initialize', params: INITIALIZE });
    if (!head.startsWith('HTTP/1.1 200')) throw new Error(`initialize: ${head.split('\r\n')[0]} ${body}`);
    if (!jsonOf(head, body).includes('"protocolVersion"')) throw new Error(`initialize was answered ${body}`);
    const id = headerOf(head, 'mcp-session-id');
    const more = `${id ? `Mcp-Session-Id: ${id}\r\n` : ''}${VERSION_HEADER}`;
    const session = { id, path, nextId: 1, head: headFor(url, path, more), modern };
    const [accepted] = await post(session.head, { method: 'notifications/initialized' });
    if (!accepted.startsWith('HTTP/1.1 20')) throw new Error(`initialized: ${accepted.split('\r\n')[0]}`);
    return session;
  };

  /** Opens sessions over a few connections, because sessions are measured and not sockets. */
  target.add = async (more) => {
    const from = sessions.length;
    let next = from;
    await Promise.all(
      Array.from({ length: Math.min(more, 16) }, async () => {
        const connection = openConnection(port);
        while (next < from + more) {
          const index = next++;
          const session = await handshake(connection, paths[index % paths.length]);
          sessions.push(session);
          if (streams) target.streams.push(await openStream(url, session));
        }
        connection.socket.destroy();
      }),
    );
  };

  // Servers close connections that were idle for some seconds, so each run uses new ones.
  target.prepare = (callers) => {
    for (const lane of target.lanes) lane.socket.destroy();
    target.lanes = Array.from({ length: callers }, () => openConnection(port));
  };
  target.send = (lane, session, { method, name, body }, done, fail) => {
    const head = rest
      ? headFor(url, session.rest + name, '')
      : modern
        ? session.head + mirrored(method, name)
        : session.head;
    exchange(target.lanes[lane], withBody(head, body), done, fail);
  };
  target.close = () => {
    for (const { socket } of [...target.lanes, ...target.streams]) socket.destroy();
  };
  await target.add(count);
  return target;
}

/** The stream for messages of the server. Most real clients keep one open during a session. */
function openStream(url, session) {
  return new Promise((resolve, reject) => {
    const socket = connect({ port: Number(url.port), host: '127.0.0.1' });
    socket.on('error', reject);
    socket.once('data', (chunk) => {
      const status = chunk.latin1Slice(9, 12);
      if (status === '200') resolve({ socket });
      else reject(new Error(`GET ${session.path} was answered ${status}`));
    });
    socket.write(
      `GET ${session.path} HTTP/1.1\r\nHost: ${url.host}\r\nAccept: text/event-stream\r\n` +
        `Mcp-Session-Id: ${session.id}\r\n${VERSION_HEADER}\r\n`,
    );
  });
}

/** The upstream itself over its pipe. */
async function openPipeTarget({ command, args }) {
  const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  const session = { nextId: 1, modern: false };
  const waiting = new Map();
  let parts = [];
  child.stdout.on('data', (chunk) => {
    let from = 0;
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, from)) {
      parts.push(chunk.subarray(from, end));
      const line = parts.length === 1 ? parts[0] : Buffer.concat(parts);
      parts = [];
      from = end + 1;
      const id = idOf(line);
      const done = waiting.get(id);
      waiting.delete(id);
      done?.('HTTP/1.1 200 OK\r\nContent-Type: application/json', line);
    }
    if (from < chunk.length) parts.push(chunk.subarray(from));
  });
  const send = (_lane, _session, { body }, done) => {
    waiting.set(idOf(body), done);
    child.stdin.write(`${body}\n`, 'latin1');
  };
  await new Promise((resolve) => {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 0, method: 'initialize', params: INITIALIZE });
    send(0, session, { body }, resolve);
  });
  child.stdin.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n');
  return { sessions: [session], prepare() {}, send, close: () => child.stdin.end() };
}

// --- Replies -------------------------------------------------------------------------------------------------------------

/** The JSON of a reply, as bytes: the body itself, or the last event of an event stream. */
function jsonOf(head, body) {
  if (!/\r\ncontent-type: *text\/event-stream/i.test(head)) return body;
  const start = body.lastIndexOf('data: {');
  return body.subarray(start + 6, body.indexOf(10, start));
}

/** The id of a message: near its start or its end, never in the middle of what may be a megabyte. */
function idOf(json) {
  const text = typeof json === 'string' ? json : json.toString('latin1', 0, 60);
  const match = /"id": ?(\d+)/.exec(text) ?? /"id": ?(\d+)\}$/.exec(json.latin1Slice(Math.max(0, json.length - 60)));
  return match ? Number(match[1]) : undefined;
}

const wrong = (what, json) => new Error(`${what}: ${json.toString('latin1', 0, 300)}`);

/** A request with these members of the parameters (without braces), for a session to send. */
function request({ modern }, id, method, name, members) {
  const separator = modern && members !== '' ? ',' : '';
  const params = modern ? `${members}${separator}"_meta":${ENVELOPE}` : members;
  return { method, name, body: `{"jsonrpc":"2.0","id":${id},"method":"${method}","params":{${params}}}` };
}

let bigText;

function isBigText(text) {
  bigText ??= JSON.parse(bigTextJson().utf8Slice());
  return text === bigText;
}

function checkParsed({ id, result }, json, wanted, modern) {
  if (id !== wanted || !isBigText(result?.content[0].text)) throw wrong(`Not the reply to ${wanted}`, json);
  if ((result.resultType === 'complete') !== modern) throw wrong('In the wrong revision', json);
}

/** The request and the check of the reply, for each kind of call. `check` returns a cursor if there is another page. */
const KINDS = {
  echo: {
    ask: (session, id, name, text) =>
      session.rest
        ? { name, body: `{"text":"${text}"}` }
        : request(session, id, 'tools/call', name, `"name":"${name}","arguments":{"text":"${text}"}`),
    check(json, { id, text, modern, rest }) {
      if (rest && JSON.parse(json.utf8Slice()) === text) return;
      const message = JSON.parse(json.utf8Slice());
      if (message.id !== id || message.result?.content[0].text !== text) throw wrong(`Not the reply to ${id}`, json);
      if (message.result.resultType !== (modern ? 'complete' : undefined)) throw wrong('In the wrong revision', json);
    },
  },
  big: {
    ask: (session, id, name) =>
      session.rest ? { name, body: '{}' } : request(session, id, 'tools/call', name, `"name":"${name}","arguments":{}`),
    check(json, { id, modern, rest }) {
      const expected = bigTextJson();
      if (rest && (json.equals(expected) || isBigText(JSON.parse(json.utf8Slice())))) return;
      const start = json.indexOf(TEXT_MEMBER) + TEXT_MEMBER.length - 1;
      const fits = start + expected.length <= json.length;
      const same = fits && json.compare(expected, 0, expected.length, start, start + expected.length) === 0;
      // A contender may write the same text in other bytes.
      if (!same) return checkParsed(JSON.parse(json.utf8Slice()), json, id, modern);
      if (idOf(json) !== id) throw wrong(`Not the reply to ${id}`, json);
      const around = json.latin1Slice(0, start) + json.latin1Slice(start + expected.length);
      if (around.includes('"resultType":"complete"') !== modern) throw wrong('In the wrong revision', json);
    },
  },
  list: {
    ask: (session, id, _name, _text, cursor) =>
      request(session, id, 'tools/list', '', cursor ? `"cursor":${JSON.stringify(cursor)}` : ''),
    // Parsing five megabytes for each reply would take the load generator longer than the gateway.
    check(json, { id }, memory) {
      if (idOf(json) !== id) throw wrong(`Not the reply to ${id}`, json);
      const size = json.length - String(id).length;
      if (memory.sizes?.has(size)) return memory.sizes.get(size);
      const { tools, nextCursor } = JSON.parse(json.utf8Slice()).result;
      memory.tools = (memory.tools ?? 0) + tools.length;
      memory.sizes ??= new Map();
      memory.sizes.set(size, nextCursor);
      return nextCursor;
    },
  },
};

// --- Runs ----------------------------------------------------------------------------------------------------------------

const PATIENCE_MS = 60_000;

/** Runs `callers` loops for `ms` milliseconds and at least `atLeast` calls, with `perSecond` at most `perSecond` in all. Rejects at the first wrong or missing reply. */
function run(target, { kind, names, callers, ms, atLeast = 1, perSecond = 0, patience = PATIENCE_MS }) {
  const { ask, check } = KINDS[kind];
  const { sessions } = target;
  const latencies = [];
  const memory = {};
  let running = callers;
  let over = false;
  return new Promise((resolve, reject) => {
    const began = performance.now();
    const end = (settle, value) => {
      over = true;
      clearTimeout(timer);
      settle(value);
    };
    const fail = (error) => end(reject, error);
    const timer = setTimeout(() => fail(new Error(`No reply in ${patience / 1000} s`)), ms + patience);
    /** Each call has its time, counted from the start. One that is late starts at once. */
    const after = (turn, now, next) => {
      const due = perSecond === 0 ? 0 : began + (turn * 1000) / perSecond - now;
      if (due > 0) setTimeout(next, due);
      else next();
    };
    const loop = (lane) => {
      let turn = lane;
      let cursor;
      let asked;
      const next = () => {
        const session = sessions[turn % sessions.length];
        const name = names[turn % names.length];
        const id = session.nextId++;
        const text = `Call ${turn} of ${lane}${PADDING}`;
        turn += callers;
        if (cursor === undefined) asked = performance.now();
        target.send(
          lane,
          session,
          ask(session, id, name, text, cursor),
          (head, body) => {
            const now = performance.now();
            if (over) return;
            try {
              if (!head.startsWith('HTTP/1.1 200')) throw wrong(head.split('\r\n')[0], body);
              cursor = check(jsonOf(head, body), { id, text, modern: session.modern, rest: session.rest }, memory);
            } catch (error) {
              fail(error);
              return;
            }
            if (cursor !== undefined) return next();
            latencies.push(now - asked);
            if (now - began < ms || latencies.length < atLeast) after(turn, now, next);
            else if (--running === 0) end(resolve, summary(latencies, now - began, memory));
          },
          fail,
        );
      };
      after(lane, began, next);
    };
    for (let lane = 0; lane < callers; lane++) loop(lane);
  });
}

function summary(latencies, elapsed, { tools }) {
  latencies.sort((a, b) => a - b);
  const at = (share) => latencies[Math.min(latencies.length - 1, Math.floor(latencies.length * share))] * 1000;
  return {
    calls: latencies.length,
    perSecond: latencies.length / (elapsed / 1000),
    p50: at(0.5),
    p99: at(0.99),
    tools,
  };
}

// --- Commands ------------------------------------------------------------------------------------------------------------

const targets = new Map();
let nextTarget = 1;

const COMMANDS = {
  async open(options) {
    const target = await (options.url ? openHttpTarget(options) : openPipeTarget(options));
    targets.set(nextTarget, target);
    return nextTarget++;
  },
  add: ({ target, sessions }) => targets.get(target).add(sessions),
  async prepare({ target, ...options }) {
    targets.get(target).prepare(options.callers);
    await run(targets.get(target), { ...options, ms: 100, atLeast: options.callers });
  },
  run: ({ target, ...options }) => run(targets.get(target), options),
  async close({ target }) {
    targets.get(target).close();
    targets.delete(target);
  },
};

process.on('message', async ({ ticket, command, options }) => {
  try {
    process.send({ ticket, value: await COMMANDS[command](options) });
  } catch (error) {
    process.send({ ticket, error: error.message });
  }
});
process.on('disconnect', () => process.exit(0));
process.on('SIGINT', () => {}); // Ctrl-C reaches the whole group; the harness ends this process when it has ended its targets
