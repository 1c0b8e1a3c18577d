/**
 * Many namespaces in both languages, into which faults are injected at random: broken files, crashes, endless loops,
 * missing secrets, installs that fail. A fault affects its own namespace only, and every surface tells the same state.
 */
import { expect, it } from 'vitest';
import { openHttpDoor } from '../../src/index.ts';
import { atEnd } from '../support/cleanup.ts';
import { callAlways, PY_HEAD, pyTool, tsTool } from '../support/dock.ts';
import { type OpenDock, openDock } from '../support/open-dock.ts';
import { waitFor } from '../support/processes.ts';
import { noPython } from '../support/python.ts';
import { createRandom } from '../support/random.ts';
import { useProcesses } from '../support/switch.ts';
import { isSoak } from '../support/wide.ts';

useProcesses();

/** Long enough for a worker on a busy machine. */
const PATIENCE = 60_000;
const COUNT = isSoak ? 20 : 6;
const FAULTS = isSoak ? 40 : 15;

const TS = {
  file: 'tools.ts',
  broken: 'export const = 3;\n',
  good: `${tsTool('hello', 'return "hello";')}${tsTool('crash', 'process.kill(process.pid, "SIGKILL"); await new Promise(() => {});')}
export const spin = { description: 'x', inputSchema: { type: 'object' }, timeoutMs: 300, execute: () => { for (;;) {} } };
`,
  manifest: ['package.json', '{ not json'],
};
const PY = {
  file: 'tools.py',
  broken: 'def = 3\n',
  good: `${PY_HEAD}import os, signal
${pyTool('hello', 'return "hello"')}${pyTool('crash', 'os.kill(os.getpid(), signal.SIGKILL)\nreturn ""')}
@tool(timeout=0.3)
async def spin() -> str:
    """x"""
    while True:
        pass
`,
  manifest: ['requirements.txt', '-r missing.txt\n'],
};

interface Faulty {
  readonly name: string;
  readonly language: typeof TS;
}

type Fault = (dock: OpenDock, victim: Faulty) => Promise<void>;

const stateOf = (dock: OpenDock, { name }: Faulty) =>
  dock.gateway.statuses().find(({ namespace }) => namespace === name);

const repaired = (dock: OpenDock, { name }: Faulty) => dock.answers(`${name}_hello`, 'hello');

const faults: Record<string, Fault> = {
  async 'a broken file'(dock, victim) {
    const { name, language } = victim;
    dock.put(`${name}/${language.file}`, language.broken);
    await waitFor(() => stateOf(dock, victim)?.problems.length === 1 || null, PATIENCE);
    expect(stateOf(dock, victim)).toMatchObject({ state: 'up', problems: [{ file: language.file, isKept: true }] });
    expect((await dock.call(`${name}_hello`)).text).toBe('hello');
    dock.put(`${name}/${language.file}`, language.good);
    await waitFor(() => stateOf(dock, victim)?.problems.length === 0 || null, PATIENCE);
  },
  async 'a crash'(dock, victim) {
    await expect(dock.call(`${victim.name}_crash`)).rejects.toMatchObject({ code: 'source_broken' });
    await repaired(dock, victim);
  },
  async 'an endless loop'(dock, victim) {
    const spun = await dock.call(`${victim.name}_spin`).then(
      ({ text }) => JSON.parse(text) as { code: string },
      (error: { code: string }) => error,
    );
    expect(spun.code).toBe('execution_timeout');
    await repaired(dock, victim);
  },
  async 'a missing secret'(dock, victim) {
    dock.put(`${victim.name}/tooldock.yaml`, 'secrets: [NOT_SET]\n');
    await waitFor(() => stateOf(dock, victim)?.state === 'locked' || null, PATIENCE);
    expect(stateOf(dock, victim)?.detail).toContain('NOT_SET');
    dock.remove(`${victim.name}/tooldock.yaml`);
    await repaired(dock, victim);
  },
  async 'an install that fails'(dock, victim) {
    const [file, text] = victim.language.manifest as [string, string];
    dock.put(`${victim.name}/${file}`, text);
    await waitFor(() => stateOf(dock, victim)?.problems[0]?.message.includes(file) || null, PATIENCE);
    // What was installed before goes on.
    expect(stateOf(dock, victim)?.state).toBe('up');
    expect((await dock.call(`${victim.name}_hello`)).text).toBe('hello');
    dock.remove(`${victim.name}/${file}`);
    await waitFor(() => stateOf(dock, victim)?.problems.length === 0 || null, PATIENCE);
    await repaired(dock, victim);
  },
};

it(`${COUNT} namespaces: a fault in one never affects another, and its state is told truly`, {
  timeout: (COUNT + FAULTS) * 60_000,
}, async () => {
  const languages = noPython === undefined ? [TS, PY] : [TS];
  const names = Array.from({ length: COUNT }, (_, i) => ({
    name: `n${i}`,
    language: languages[i % languages.length]!,
  }));
  const dock = await openDock(
    Object.fromEntries(names.map(({ name, language }) => [`${name}/${language.file}`, language.good])),
  );
  const http = await openHttpDoor(dock.gateway, { host: '127.0.0.1', port: 0, token: null });
  atEnd(() => http.close());
  for (const one of names) await repaired(dock, one);
  const random = createRandom();
  for (let i = 0; i < FAULTS; i++) {
    const victim = random.pick(names);
    const kinds = Object.keys(faults);
    // Each kind of fault comes first once, then any.
    const kind = i < kinds.length ? kinds[i]! : random.pick(kinds);
    const others = names.filter((one) => one !== victim);
    const neighbours = callAlways(http.url, Object.fromEntries(others.map(({ name }) => [`${name}_hello`, 'hello'])));
    await faults[kind]!(dock, victim).catch((error: Error) => {
      throw new Error(`seed ${random.seed}: ${kind} in ${victim.name}, ${victim.language.file}: ${error.message}`);
    });
    const { failures, calls } = await neighbours.stop();
    expect(failures, `${kind} in ${victim.name}`).toEqual([]);
    expect(calls).toBeGreaterThan(0);
    const told = (await (await fetch(new URL('/namespaces', http.url))).json()) as { name: string; state: string }[];
    expect(told.map(({ name, state }) => `${name} ${state}`).sort()).toEqual(
      names.map(({ name }) => `${name} up`).sort(),
    );
  }
});
