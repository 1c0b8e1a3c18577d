/** Edits tool files under load, with good and broken contents of every kind, in both languages at the same time. */
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { callTool, type Dock, PY_HEAD, pyTool, save, startDock, tsTool } from '../support/dock.ts';
import { waitFor } from '../support/processes.ts';
import type { Random } from '../support/random.ts';

export interface EditReport {
  readonly edits: number;
  readonly broken: number;
  readonly calls: number;
  /** Calls to tools whose files were not edited. */
  readonly failures: readonly string[];
  /** Moments in which an edited tool was not available in its last good version or a newer one. */
  readonly gaps: readonly string[];
  /** Milliseconds from an edit to the first answer of the new version. */
  readonly served: Record<Language, number[]>;
}

type Language = 'typescript' | 'python';

interface Edited {
  readonly file: string;
  readonly tool: string;
  good(version: number): string;
  readonly broken: readonly ((version: number) => string)[];
}

const ts = (version: number) => tsTool('changing_ts', `return '${version}';`);
const py = (version: number) => PY_HEAD + pyTool('changing_py', `return "${version}"`);

const EDITED: Record<Language, Edited> = {
  typescript: {
    file: 'changing.ts',
    tool: 'moving_changing_ts',
    good: ts,
    broken: [
      (n) => `${ts(n)}\nexport const = ${n};\n`,
      (n) => `${ts(n)}\nthrow new Error('at load ${n}');\n`,
      (n) => `import { x } from './not-there-${n}.ts';\n${ts(n)}\nconsole.log(x);\n`,
      (n) => `import x from 'no-such-package-${n}';\n${ts(n)}\nconsole.log(x);\n`,
      (n) => ts(n).slice(0, -12),
      (n) => `${ts(n)}\nprocess.exit(${n});\n`,
    ],
  },
  python: {
    file: 'changing.py',
    tool: 'moving_changing_py',
    good: py,
    broken: [
      (n) => `${py(n)}\ndef broken(:\n`,
      (n) => `${py(n)}\nraise RuntimeError("at load ${n}")\n`,
      (n) => `${py(n)}\nimport not_there_${n}\n`,
      (n) => `${py(n)}\nimport sys\nsys.exit(${n})\n`,
      (n) => `${py(n)}\nimport os\nos._exit(${n % 200})\n`,
      (n) => py(n).replace('return', ' return'),
    ],
  },
};

export async function editUnderLoad(edits: number, random: Random): Promise<EditReport> {
  const dock = await startDock({
    'still/a.ts': tsTool('ts', 'return "still";'),
    'still/a.py': PY_HEAD + pyTool('py', 'return "still"'),
    'moving/changing.ts': ts(0),
    'moving/same.ts': tsTool('same_ts', 'return "same";'),
    'moving/changing.py': py(0),
    'moving/same.py': PY_HEAD + pyTool('same_py', 'return "same"'),
  });
  await waitFor(async () => (await dock.names()).length === 6, 60_000);
  const good = { typescript: 0, python: 0 };
  /** The last version that was written and is not known to be served yet. */
  const next = { typescript: 0, python: 0 };
  const served = { typescript: [] as number[], python: [] as number[] };
  let broken = 0;
  const load = startLoad(dock, good, next);
  const each = Math.ceil(edits / 2);
  try {
    await Promise.all([edit('typescript'), edit('python')]);
  } finally {
    load.end();
  }
  return { edits: 2 * each, broken, served, ...(await load.done) };

  async function edit(language: Language): Promise<void> {
    const { file, tool, good: text, broken: kinds } = EDITED[language];
    const path = join(dock.tools, 'moving', file);
    for (let n = 1; n <= each; n++) {
      // The last version is good, so that the end state can be checked.
      if (n < each && random.chance(0.4)) {
        broken++;
        save(path, random.pick(kinds)(n));
        // Often the next edit comes while this one is being loaded.
        await sleep(random.number(1_500));
        continue;
      }
      next[language] = n;
      const start = performance.now();
      save(path, text(n));
      if (n < each && random.chance(0.15)) continue;
      await dock.until(tool, (called) => called.text === String(n), 60_000);
      served[language].push(Math.round(performance.now() - start));
      good[language] = n;
    }
  }
}

/** Calls a tool again and again. */
function startLoad(dock: Dock, good: Record<Language, number>, next: Record<Language, number>) {
  let stopped = false;
  let calls = 0;
  const failures: string[] = [];
  const gaps: string[] = [];
  const ask = async (name: string) => {
    calls++;
    return callTool(dock.url, name).catch((error: Error) => ({ text: error.message, isError: true }));
  };
  const steady = async (name: string, answer: string) => {
    while (!stopped) {
      const { text } = await ask(name);
      if (text !== answer) failures.push(`${name}: ${text}`);
      await sleep(5);
    }
  };
  const changing = async (language: Language) => {
    while (!stopped) {
      const least = good[language];
      const { text, isError } = await ask(EDITED[language].tool);
      const version = isError ? Number.NaN : Number(text);
      if (!(version >= least && version <= next[language])) gaps.push(`${language}: ${text}, not ${least} or later`);
      await sleep(5);
    }
  };
  // Several for each tool, so that calls are always running when one worker takes over from another.
  const loops = Array.from({ length: 3 }, () => [
    steady('still_ts', 'still'),
    steady('still_py', 'still'),
    steady('moving_same_ts', 'same'),
    steady('moving_same_py', 'same'),
    changing('typescript'),
    changing('python'),
  ]);
  const done = Promise.all(loops.flat()).then(() => ({ calls, failures, gaps }));
  return {
    done,
    end() {
      stopped = true;
    },
  };
}
