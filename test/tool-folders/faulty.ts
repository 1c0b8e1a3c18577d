/** Tools with one fault each, in both languages, and healthy tools that are called continuously. */
import { expect } from 'vitest';
import { withMembers } from '../support/child.ts';
import { callAlways, type Dock, type DockOptions, PY_HEAD, pyTool, startDock, tsTool } from '../support/dock.ts';
import { waitFor } from '../support/processes.ts';
import { type Files, tempFolder } from '../support/temp.ts';

/** Finds the socket of the worker's connection to the gateway and writes to it. */
const TS_SOCKET = `import { closeSync, readdirSync, readlinkSync, writeSync } from 'node:fs';
const write = (bytes: Buffer) => {
  for (const fd of readdirSync('/proc/self/fd').map(Number).filter((fd) => fd > 2)) {
    try {
      if (!readlinkSync('/proc/self/fd/' + fd).startsWith('socket:')) continue;
      for (let at = 0; at < bytes.length; ) {
        try {
          at += writeSync(fd, bytes, at);
        } catch (error: any) {
          if (error.code !== 'EAGAIN') throw error;
        }
      }
    } catch {}
  }
};
`;

const PY_SOCKET = `import os, select, socket, stat, sys, time
def write(data):
    for fd in range(3, 64):
        try:
            if not stat.S_ISSOCK(os.fstat(fd).st_mode):
                continue
            peer = socket.socket(fileno=os.dup(fd))
            if not peer.getsockname() or peer.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                continue
            rest = memoryview(data)
            while rest:
                select.select([], [fd], [], 5)
                try:
                    rest = rest[os.write(fd, rest[:1 << 20]):]
                except BlockingIOError:
                    pass
        except OSError:
            pass
`;

/**
 * The durations of the `sleep` programs that the tools `fork` start, in the process group of the worker and in a session of
 * their own. No other program on the machine has them.
 */
export const SLEEPS = { inGroup: `987654.${process.pid}s`, detached: `987655.${process.pid}s` };

const TS_FAULTS: Record<string, string> = {
  born: 'return String(performance.timeOrigin);',
  waits: 'await new Promise((resolve) => setTimeout(resolve, 60_000)); return "late";',
  loop: 'for (;;) {}',
  block: 'Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0); return "late";',
  program: `(await import('node:child_process')).execFileSync('sleep', ['1000']); return 'late';`,
  buffers: 'const kept = []; for (;;) kept.push(Buffer.alloc(1 << 23, 1));',
  heap: 'const kept = []; for (;;) kept.push(Array.from({ length: 100_000 }, () => ({ a: Math.random() })));',
  exit: 'process.exit(3);',
  really: '(process as any).reallyExit(4);',
  abort: 'process.abort();',
  kill: 'process.kill(process.pid, "SIGKILL"); for (;;) {}',
  stop: 'process.kill(process.pid, "SIGSTOP"); for (;;) {}',
  recursion: 'const down = (n: number): number => down(n + 1) + 1; return String(down(0));',
  fork: `const { spawn } = await import('node:child_process');
    spawn('sleep', ['${SLEEPS.inGroup}'], { stdio: 'inherit' }).unref();
    spawn('sleep', ['${SLEEPS.detached}'], { stdio: 'ignore', detached: true }).unref();
    return 'forked';`,
  closes: 'for (const fd of [0, 1, 2]) closeSync(fd); return "closed";',
  talks: 'console.log("to nobody"); console.error("to nobody"); return "talked";',
  flood: `const line = Buffer.alloc(1 << 20, 'x'); for (let fd = 1; ; fd = 3 - fd) try { writeSync(fd, line); } catch {}`,
  garbage: 'write(Buffer.from("nonsense\\n".repeat(50))); return "written";',
  spoil: 'write(Buffer.from("{nonsense")); return "written";',
  litter: 'write(Buffer.from("nonsense\\n".repeat(500))); return "written";',
  long: `for (let n = 0; n < 100; n++) write(Buffer.alloc(1_000_000, 'x')); write(Buffer.from('\\n')); return 'written';`,
  huge: `return 'x'.repeat(6_000_000);`,
};

const PY_FAULTS: Record<string, [body: string, isAsync?: boolean]> = {
  born: ['return str(BORN)'],
  waits: ['time.sleep(60)\nreturn "late"'],
  loop: ['while True:\n    pass'],
  loop_async: ['while True:\n    pass', true],
  block: ['import re\nre.match(r"(a+)+$", "a" * 64 + "b")\nreturn "late"'],
  program: ['import subprocess\nsubprocess.run(["sleep", "1000"])\nreturn "late"'],
  buffers: ['kept = []\nwhile True:\n    kept.append(b"x" * (1 << 23))'],
  heap: ['kept = []\nwhile True:\n    kept.append([str(n) for n in range(10_000)])'],
  exit: ['sys.exit(3)'],
  really: ['os._exit(4)'],
  abort: ['os.abort()'],
  kill: ['os.kill(os.getpid(), 9)\nreturn "late"'],
  stop: ['os.kill(os.getpid(), 19)\nreturn "late"'],
  recursion: ['def down(n):\n    return down(n + 1) + 1\nreturn str(down(0))'],
  fork: [
    `import subprocess\nsubprocess.Popen(["sleep", "${SLEEPS.inGroup}"])\nsubprocess.Popen(["sleep", "${SLEEPS.detached}"], start_new_session=True)\nif os.fork() == 0:\n    time.sleep(987654)\nreturn "forked"`,
  ],
  fork_async: ['if os.fork() == 0:\n    time.sleep(0.1)\nreturn "forked"', true],
  closes: ['for fd in (0, 1, 2):\n    os.close(fd)\nreturn "closed"'],
  talks: ['print("to nobody", flush=True)\nreturn "talked"'],
  flood: ['line = b"x" * (1 << 20)\nwhile True:\n    os.write(1, line)\n    os.write(2, line)'],
  garbage: ['write(b"nonsense\\n" * 50)\nreturn "written"'],
  spoil: ['write(b"{nonsense")\nreturn "written"'],
  litter: ['write(b"nonsense\\n" * 500)\nreturn "written"'],
  long: ['for n in range(100):\n    write(b"x" * 1_000_000)\nwrite(b"\\n")\nreturn "written"'],
  huge: ['return "x" * 6_000_000'],
};

export const faultyTs =
  TS_SOCKET +
  Object.entries(TS_FAULTS)
    .map(([name, body]) => tsTool(`ts_${name}`, body))
    .join('');

export const faultyPy = `${PY_HEAD}${PY_SOCKET}BORN = time.time()\n${Object.entries(PY_FAULTS)
  .map(([name, [body, isAsync]]) => pyTool(`py_${name}`, body, isAsync ? 'async ' : ''))
  .join('')}`;

/** The healthy tools, which are called continuously. */
const CALM: Files = {
  'calm/here.ts': tsTool('ts', 'return "calm";'),
  'calm/here.py': PY_HEAD + pyTool('py', 'return "calm"'),
};
const EXPECTED = { calm_ts: 'calm', calm_py: 'calm' };
/** The longest acceptable call of a healthy tool, in ms, on a busy machine. One that waited for a faulty tool would wait for ever. */
const MOST_WAIT = 10_000;

export interface Faulty extends Dock {
  /** Runs `act` while the healthy tools are called, and expects them all to answer. */
  during(what: string, act: () => Promise<unknown>): Promise<void>;
  /** Calls a tool that must end its worker, and waits for the next worker. Returns the text of the answer. */
  ended(namespace: string, tool: string): Promise<string>;
  /** Calls a tool that must not end its worker. */
  survived(namespace: string, tool: string): Promise<string>;
}

export interface FaultyOptions extends DockOptions {
  /** The memory limit of the faulty namespaces. */
  readonly memory?: string;
  readonly more?: Files;
  /** Additional configuration text. */
  readonly settings?: string;
}

/** Starts a gateway with these namespaces, each with its call timeout and with all faults in both languages. */
export async function startFaulty(timeouts: Record<string, string>, options: FaultyOptions = {}): Promise<Faulty> {
  const { memory = '1GiB', more = {}, settings = '', ...rest } = options;
  const namespaces = Object.keys(timeouts);
  const cwd = tempFolder(
    Object.fromEntries(
      namespaces.flatMap((name) => [
        [`faulty/${name}/a.ts`, faultyTs],
        [`faulty/${name}/a.py`, faultyPy],
      ]),
    ),
  );
  const servers = namespaces.map(
    (name) =>
      `[[servers]]\nnamespace = "${name}"\nfolder = "faulty/${name}"\ntimeout = "${timeouts[name]}"\nmemory = "${memory}"\n`,
  );
  const config = `controls = []\n${settings}${servers.join('')}`;
  const dock = await startDock({ ...CALM, ...more }, { config, cwd, ...rest });
  const wanted = [...namespaces.flatMap((name) => [`${name}_ts_born`, `${name}_py_born`]), ...Object.keys(EXPECTED)];
  await waitFor(async () => {
    const names = await dock.names();
    return wanted.every((name) => names.includes(name));
  }, 60_000);

  const said = async (name: string) => (await dock.call(name)).text;
  const bornOf = (namespace: string, tool: string) => `${namespace}_${tool.slice(0, 2)}_born`;

  return withMembers(dock, {
    async during(what: string, act: () => Promise<unknown>) {
      const neighbours = callAlways(dock.url, EXPECTED);
      const start = performance.now();
      try {
        await act();
      } finally {
        const { calls, slowest, failures } = await neighbours.stop();
        const took = Math.round(performance.now() - start);
        if (process.env.FIGURES)
          console.log(`${what}: ${took} ms, ${calls} calls of neighbours, the slowest ${slowest} ms`);
        expect(failures).toEqual([]);
        expect(slowest).toBeLessThan(MOST_WAIT);
      }
    },
    async ended(namespace: string, tool: string) {
      const born = bornOf(namespace, tool);
      const before = await said(born);
      const text = await said(`${namespace}_${tool}`);
      const start = performance.now();
      await dock.until(born, (called) => !called.isError && called.text !== before, 30_000);
      if (process.env.FIGURES)
        console.log(`${namespace} ${tool}: back ${Math.round(performance.now() - start)} ms after: ${text}`);
      return text;
    },
    async survived(namespace: string, tool: string) {
      const born = bornOf(namespace, tool);
      const before = await said(born);
      const text = await said(`${namespace}_${tool}`);
      expect(await said(born)).toBe(before);
      return text;
    },
  });
}
