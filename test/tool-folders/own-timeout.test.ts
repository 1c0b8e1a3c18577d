/** Tools that take longer than they may: their own timeouts, also when they block their process, and the codes. */
import { describe, expect, it } from 'vitest';
import { PY_HEAD, pyTool, tsTool } from '../support/dock.ts';
import { openDock } from '../support/open-dock.ts';
import { patient } from '../support/patience.ts';
import { waitFor } from '../support/processes.ts';
import { noPython } from '../support/python.ts';
import { useProcesses } from '../support/switch.ts';
import { tempFolder } from '../support/temp.ts';
import { isWide, onePart } from '../support/wide.ts';

useProcesses();

const SPIN_TS = `export const spin = {
  description: 'Spins.',
  inputSchema: { type: 'object' },
  timeoutMs: 700,
  execute: () => { for (;;) {} },
};
export const spinLater = { ...spin, name: 'spin_later', async execute() { await null; for (;;) {} } };
`;
const SPIN_PY = `${PY_HEAD}
@tool(timeout=0.7)
async def spin() -> str:
    """Spins."""
    while True:
        pass

@tool(timeout=0.7)
def spin_later() -> str:
    """Spins in a thread."""
    while True:
        pass
`;

const HELLO_TS = tsTool('hello', 'return "hello";');

const cases = [
  { name: 'TypeScript', file: 'a.ts', spin: SPIN_TS, hello: HELLO_TS, skip: false },
  {
    name: 'Python',
    file: 'a.py',
    spin: SPIN_PY,
    hello: PY_HEAD + pyTool('hello', 'return "hello"'),
    skip: noPython !== undefined,
  },
];

for (const { name, file, spin, hello, skip } of cases) {
  describe.skipIf(skip)(`a ${name} tool that spins`, { timeout: 120_000 }, () => {
    it('is ended by its own timeout, and its neighbours go on', async () => {
      const dock = await openDock({ [`x/${file}`]: spin, [`x/b${file}`]: hello, 'other/a.ts': HELLO_TS });
      await dock.lists('other_hello', 'x_hello', 'x_spin', 'x_spin_later');
      // Each of them ends its worker.
      for (const spinning of onePart(2, ['x_spin', 'x_spin_later'])) {
        const started = performance.now();
        const spun = dock.call(spinning).then(
          ({ text }) => JSON.parse(text) as { code: string },
          (error: { code: string }) => error,
        );
        expect((await dock.call('other_hello')).text).toBe('hello');
        expect((await spun).code).toBe('execution_timeout');
        // The gateway's own timeout is 60 s. A busy machine needs a few seconds at most.
        expect(performance.now() - started).toBeLessThan(patient(20_000));
        expect((await dock.call('other_hello')).text).toBe('hello');
        await dock.answers('x_hello', 'hello');
      }
    });

    // The gateway's part, and the same for both languages.
    if (!isWide && name === 'Python') return;

    it('gives calls that wait behind it an answer that says what happened', async () => {
      const dock = await openDock({ [`x/${file}`]: spin, [`x/b${file}`]: hello });
      await dock.lists('x_hello', 'x_spin', 'x_spin_later');
      const spun = dock.call('x_spin').catch((error: { code: string }) => error);
      await waitFor(() => dock.gateway.statuses()[0]!.pid);
      const behind = await dock.call('x_hello').catch((error: { code: string; message: string }) => error);
      expect(await spun).toMatchObject({ code: 'execution_timeout' });
      if ('code' in behind) {
        expect(behind.code).toBe('source_broken');
        expect(behind.message).toMatch(/did not end in time.*Try again/);
      } else expect(behind.text).toBe('hello');
      await dock.answers('x_hello', 'hello');
    });
  });
}

it('a tool that exceeds the timeout of its folder fails with the code of workers', async () => {
  const dock = await openDock(
    { 'x/a.ts': tsTool('slow', 'await new Promise(() => {}); return "";') },
    { folders: { timeout: '300ms' } },
  );
  await dock.lists('x_slow');
  await expect(dock.call('x_slow')).rejects.toMatchObject({ code: 'execution_timeout', httpStatus: 504 });
});

it.skipIf(noPython !== undefined)(
  'a call to a folder whose dependencies cannot be installed fails with the code of workers',
  { timeout: 120_000 },
  async () => {
    const home = tempFolder();
    const files = { 'x/a.py': PY_HEAD + pyTool('hello', 'return "hello"') };
    const first = await openDock(files, {}, {}, home);
    await first.answers('x_hello', 'hello');
    await first.gateway.close();
    // The tool is known from the last run, so it can be called while its folder is being prepared.
    const second = await openDock(files, {}, { TOOLGATE_PYTHON: '/no/such/python' }, home);
    await expect(second.call('x_hello')).rejects.toMatchObject({
      code: 'dependency_error',
      httpStatus: 503,
      message: expect.stringContaining('TOOLGATE_PYTHON'),
    });
  },
);
