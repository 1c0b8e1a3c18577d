/**
 * A file of a folder that cannot be loaded affects that file only: its last good version is served, and everything else
 * is served as it is now.
 */
import { describe, expect, it } from 'vitest';
import { PY_HEAD, pyTool, tsTool } from '../support/dock.ts';
import { type OpenDock, openDock } from '../support/open-dock.ts';
import { waitFor } from '../support/processes.ts';
import { noPython } from '../support/python.ts';
import { useProcesses } from '../support/switch.ts';
import { isWide, onePart } from '../support/wide.ts';

useProcesses();

interface LanguageCase {
  readonly name: string;
  readonly ending: string;
  /** The text of a file with these tools, which answer with these texts. */
  file(tools: Record<string, string>): string;
  /** A file that takes its answer from `_helper`. */
  readonly usesHelper: string;
  helper(text: string): string;
  readonly syntaxError: string;
  readonly throwing: string;
  readonly missingPackage: string;
  /** A file in which one of two tools is not valid. */
  readonly badTool: string;
  readonly skip: boolean;
}

const typescript: LanguageCase = {
  name: 'TypeScript',
  ending: 'ts',
  file: (tools) =>
    Object.entries(tools)
      .map(([name, text]) => tsTool(name, `return ${JSON.stringify(text)};`))
      .join(''),
  usesHelper: `import { text } from './_helper';\n${tsTool('helped', 'return text;')}`,
  helper: (text) => `export const text = ${JSON.stringify(text)};\n`,
  syntaxError: 'export const = 3;\n',
  throwing: `throw new Error('not today');\n`,
  missingPackage: `import 'not-there';\n`,
  badTool: `${tsTool('steady', 'return "new";')}export const zz = { description: '', inputSchema: {}, execute: () => '' };\n`,
  skip: false,
};

const python: LanguageCase = {
  name: 'Python',
  ending: 'py',
  file: (tools) =>
    PY_HEAD +
    Object.entries(tools)
      .map(([name, text]) => pyTool(name, `return ${JSON.stringify(text)}`))
      .join(''),
  usesHelper: `${PY_HEAD}from _helper import text\n${pyTool('helped', 'return text')}`,
  helper: (text) => `text = ${JSON.stringify(text)}\n`,
  syntaxError: 'def = 3\n',
  throwing: `raise RuntimeError('not today')\n`,
  missingPackage: 'import not_there\n',
  badTool: `${PY_HEAD}${pyTool('steady', 'return "new"')}\n@tool\ndef zz(*args) -> str:\n    """x"""\n    return ""\n`,
  skip: noPython !== undefined,
};

const problemsOf = ({ gateway }: OpenDock) =>
  gateway.statuses().flatMap(({ problems }) => problems.map(({ file, isKept }) => `${file}${isKept ? ' kept' : ''}`));

for (const { name, ending, file, usesHelper, helper, syntaxError, throwing, missingPackage, badTool, skip } of [
  typescript,
  python,
]) {
  // Each edit starts a worker, which takes seconds on a busy machine.
  describe.skipIf(skip)(`a broken ${name} file`, { timeout: 180_000 }, () => {
    const named = (stem: string) => `hot/${stem}.${ending}`;
    // Each edit starts a worker, and one of Python takes two seconds. There the edits come together.
    const isShort = !isWide && name === python.name;

    it('does not stop edits, additions and deletions of other files, and keeps its own last good version', async () => {
      const dock = await openDock({
        [named('a')]: file({ one: '1', danger: 'x' }),
        [named('gone')]: file({ gone: 'x' }),
        [named('zz')]: file({ zz: 'good' }),
      });
      await dock.lists('hot_danger', 'hot_gone', 'hot_one', 'hot_zz');
      dock.put(named('zz'), syntaxError);
      if (!isShort) {
        await waitFor(() => problemsOf(dock).length > 0 || null, 60_000);
        expect(problemsOf(dock)).toEqual([`zz.${ending} kept`]);
        expect(await dock.call('hot_zz')).toEqual({ text: 'good', isError: false });
      }

      dock.put(named('a'), file({ one: '1, edited' }));
      dock.put(named('b'), file({ added: 'new' }));
      dock.remove(named('gone'));
      await dock.lists('hot_added', 'hot_one', 'hot_zz');
      expect((await dock.call('hot_one')).text).toBe('1, edited');
      expect((await dock.call('hot_added')).text).toBe('new');
      expect((await dock.call('hot_zz')).text).toBe('good');
      for (const deleted of ['hot_danger', 'hot_gone'])
        await expect(dock.call(deleted)).rejects.toMatchObject({ code: 'item_unknown' });
      expect(problemsOf(dock)).toEqual([`zz.${ending} kept`]);
      if (isShort) return;

      dock.remove(named('zz'));
      await dock.lists('hot_added', 'hot_one');
      expect(problemsOf(dock)).toEqual([]);
    });

    // What follows is the gateway's part, and the same for both languages.
    if (isShort) return;

    it('is reported with file, line and reason, whatever is wrong with it', async () => {
      const dock = await openDock({
        [named('a')]: file({ one: '1' }),
        [named('zz')]: file({ steady: 'good', zz: 'good' }),
      });
      await dock.lists('hot_one', 'hot_steady', 'hot_zz');
      const mistakes: [string, string | RegExp][] = [
        [throwing, 'not today'],
        [missingPackage, /not.there/],
        [badTool, 'zz'],
      ];
      for (const [text, reason] of onePart(3, mistakes)) {
        dock.put(named('zz'), text);
        await waitFor(() => {
          const [problem] = dock.gateway.statuses().flatMap(({ problems }) => problems);
          return problem?.message.match(reason) ?? null;
        }, 60_000);
        const [problem] = dock.gateway.statuses().flatMap(({ problems }) => problems);
        expect(problem).toMatchObject({ file: `zz.${ending}`, line: expect.any(Number), isKept: true });
        expect((await dock.call('hot_zz')).text).toBe('good');
        expect((await dock.call('hot_steady')).text).toBe('good');
        expect((await dock.call('hot_one')).text).toBe('1');
      }
      dock.put(named('zz'), file({ zz: 'repaired' }));
      await dock.answers('hot_zz', 'repaired');
      await dock.lists('hot_one', 'hot_zz');
      expect(problemsOf(dock)).toEqual([]);
    });

    it('that others import breaks only those, and each keeps the helper that it was good with', async () => {
      const dock = await openDock({
        [named('_helper')]: helper('first'),
        [named('a')]: usesHelper,
        [named('b')]: file({ other: '1' }),
      });
      await dock.answers('hot_helped', 'first');
      dock.put(named('_helper'), helper('second'));
      await dock.answers('hot_helped', 'second');
      dock.put(named('_helper'), syntaxError);
      dock.put(named('b'), file({ other: '2' }));
      await dock.answers('hot_other', '2');
      expect((await dock.call('hot_helped')).text).toBe('second');
      expect(problemsOf(dock)).toEqual([`a.${ending} kept`]);
      dock.put(named('_helper'), helper('third'));
      await dock.answers('hot_helped', 'third');
      expect(problemsOf(dock)).toEqual([]);
    });

    it('stays in its last good version when the worker is replaced after a crash', async () => {
      const dock = await openDock({ [named('a')]: file({ one: '1' }), [named('zz')]: file({ zz: 'good' }) });
      await dock.lists('hot_one', 'hot_zz');
      dock.put(named('zz'), syntaxError);
      await waitFor(() => problemsOf(dock).length > 0 || null, 60_000);
      const pid = dock.gateway.statuses()[0]!.pid!;
      process.kill(pid, 'SIGKILL');
      await waitFor(() => {
        const [status] = dock.gateway.statuses();
        return (status?.state === 'up' && status.pid !== pid) || null;
      }, 60_000);
      await dock.answers('hot_zz', 'good');
      expect(problemsOf(dock)).toEqual([`zz.${ending} kept`]);
    });
  });
}

describe('a folder whose dependencies cannot be installed any more', { timeout: 180_000 }, () => {
  it('is served as it was, without the tools of deleted files', async () => {
    const { file } = typescript;
    const dock = await openDock({ 'hot/a.ts': file({ one: '1' }), 'hot/gone.ts': file({ gone: 'x' }) });
    await dock.lists('hot_gone', 'hot_one');
    dock.put('hot/package.json', '{');
    dock.remove('hot/gone.ts');
    await dock.lists('hot_one');
    await expect(dock.call('hot_gone')).rejects.toMatchObject({ code: 'item_unknown' });
    expect((await dock.call('hot_one')).text).toBe('1');
    expect(problemsOf(dock)).toEqual(['the folder as it is now kept']);

    // An edit is served when the folder can be installed again.
    dock.put('hot/a.ts', file({ one: '2' }));
    dock.put('hot/package.json', '{}');
    await dock.answers('hot_one', '2');
    await dock.lists('hot_one');
    expect(problemsOf(dock)).toEqual([]);
  });
});
