// Folders of tools: a tool in a worker compared with the same tool in an MCP server on stdio, both behind Toolgate; and how soon
// a new folder is served.

import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { CONTENDERS, stdioUpstreams, VENVS, whyNoToolgate } from './contenders.mjs';
import { measure, measureGenerations, median, middle, ratio } from './measure.mjs';
import { ENVELOPE, MODERN_VERSION } from './offer.mjs';

const PATIENCE_MS = 120_000;

const PYTHON = `from fastmcp.tools import tool


@tool
def echo(text: str) -> str:
    """Returns its text."""
    return text
`;

const TYPESCRIPT = `export const echo = {
  description: 'Returns its text.',
  inputSchema: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] },
  execute: ({ text }: { text: string }) => text,
};
`;

const folder = (files) => [{ namespace: 'up', files }];

export async function dockPython(bench) {
  const python = await interpreter(bench);
  if (python === undefined) return [];
  const script = fileURLToPath(new URL('./fastmcp-server.py', import.meta.url));
  return compare(bench, [{ namespace: 'up', command: python, args: ['-I', script] }], folder({ 'echo.py': PYTHON }), {
    perSecond: { text: '>= 4 x on stdio', min: 4 },
  });
}

export function dockTypescript(bench) {
  return compare(bench, stdioUpstreams(), folder({ 'echo.ts': TYPESCRIPT }), {
    perSecond: { text: '>= on stdio / 1.5', min: 1 / 1.5 },
    p50: { text: '<= 1.5 x on stdio', max: 1.5 },
    cpu: { text: '<= 1.5 x on stdio', max: 1.5 },
  });
}

async function compare(bench, stdio, worker, limits) {
  const { generations, rounds, ms } = bench.plan;
  const entries = [
    { key: 'stdio', contender: 'toolgate', upstreams: stdio },
    { key: 'worker', contender: 'toolgate', upstreams: worker },
  ];
  const samples = await measureGenerations(bench, generations, entries, async (field) => ({
    many: await measure(bench, field, run('32 callers', 32, ms.many, rounds, { ms: 1200, atLeast: 4000 })),
    one: await measure(bench, field, run('1 caller', 1, ms.one, 2 * rounds, { ms: 200 })),
  }));
  const { one, many } = samples;
  return [
    row('calls per second, 32 callers', '/s', many, 'perSecond', limits.perSecond),
    row('p50, 1 caller', 'us', one, 'p50', limits.p50),
    row('p99, 32 callers', 'us', many, 'p99'),
    row('CPU of Toolgate per call, 32 callers', 'us', many, 'cpu', limits.cpu),
    row('CPU of Toolgate per call, 1 caller', 'us', one, 'cpu'),
  ];
}

const run = (label, callers, ms, rounds, warm) => ({ label, kind: 'echo', callers, ms, rounds, warm });

function row(label, unit, { stdio, worker }, figure, limit) {
  const measured = ratio(worker, stdio, figure);
  return {
    label,
    unit,
    values: { stdio: middle(stdio, figure), worker: middle(worker, figure) },
    ratios: { worker: measured },
    limit: limit && { ...limit, measured },
    rounds: { stdio: stdio?.map((one) => one[figure]), worker: worker?.map((one) => one[figure]) },
  };
}

/** The Python environment of folders without requirements. If there is none yet, serving a folder builds it. */
async function interpreter({ note, progress }) {
  if (whyNoToolgate()) return undefined;
  try {
    progress('an environment with FastMCP');
    const toolgate = await CONTENDERS.toolgate(folder({ 'echo.py': PYTHON }));
    await toolgate.stop();
  } catch (error) {
    note(`Python could not be measured: ${error.message}`);
    return undefined;
  }
  const names = readdirSync(VENVS, { recursive: true });
  return names.filter((name) => name.endsWith('bin/python')).map((name) => join(VENVS, name))[0];
}

const LANGUAGES = [
  { language: 'TypeScript', file: 'echo.ts', text: TYPESCRIPT, edited: ['=> text,', '=> `edited ${text}`,'] },
  { language: 'Python', file: 'echo.py', text: PYTHON, edited: ['return text', 'return f"edited {text}"'] },
];
const MAX_DROP = 2000;

/** The time from the last byte of a file to the first answer of its tool. */
export async function dockDrop(bench) {
  if (whyNoToolgate()) return [];
  const toolgate = await CONTENDERS.toolgate(folder({}));
  const rows = [];
  try {
    for (const { language, file, text, edited } of LANGUAGES) {
      if (language === 'Python' && !existsSync(VENVS)) continue;
      const dropped = [];
      const changed = [];
      for (let round = 0; round < bench.plan.starts; round++) {
        bench.progress(`${language}: drop ${round + 1} of ${bench.plan.starts}`);
        const namespace = `${language.toLowerCase()}${round}`;
        const place = join(toolgate.folder, '.toolgate/tools', namespace);
        mkdirSync(place, { recursive: true });
        writeFileSync(join(place, file), text);
        dropped.push(await untilAnswer(toolgate.url, `${namespace}_echo`, 'here'));
        writeFileSync(join(place, file), text.replace(...edited));
        changed.push(await untilAnswer(toolgate.url, `${namespace}_echo`, 'edited here'));
      }
      rows.push(dropRow(`${language}, from the file to its first answer`, dropped));
      rows.push(dropRow(`${language}, from an edit to its first answer`, changed));
    }
  } catch (error) {
    bench.note(error.message);
  } finally {
    await toolgate.stop();
  }
  return rows;
}

function dropRow(label, samples) {
  const measured = median(samples);
  return {
    label,
    unit: 'ms',
    values: { worker: measured },
    ratios: {},
    limit: { text: `<= ${MAX_DROP} ms`, max: MAX_DROP, measured, unit: 'each' },
    rounds: { worker: samples },
  };
}

async function untilAnswer(url, name, wanted) {
  const began = performance.now();
  const params = `{"name":"${name}","arguments":{"text":"here"},"_meta":${ENVELOPE}}`;
  const request = {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': MODERN_VERSION,
      'mcp-method': 'tools/call',
      'mcp-name': name,
    },
    body: `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${params}}`,
  };
  for (;;) {
    const reply = await (await fetch(url, request)).text();
    if (reply.includes(`"text":"${wanted}"`)) return performance.now() - began;
    if (performance.now() - began > PATIENCE_MS) throw new Error(`${name} was not served: ${reply.slice(0, 300)}`);
    await sleep(10);
  }
}
