/** Limits in tooldock.yaml: an author may tighten what the configuration allows, for one folder. */
import { describe, expect, it } from 'vitest';
import { readMetadata } from '../../src/workers/metadata.ts';
import { startDock, tsTool } from '../support/dock.ts';
import { isWithoutIsolation } from '../support/needs.ts';
import { waitFor } from '../support/processes.ts';

const slow = tsTool('slow', 'await new Promise((resolve) => setTimeout(resolve, 60_000)); return "late";');
const quick = tsTool('quick', 'return "quick";');
const hog = tsTool(
  'hog',
  'const all = []; for (;;) { all.push(Buffer.alloc(2 ** 22, 1)); await new Promise(setImmediate); }',
);
const fetches = tsTool(
  'fetches',
  'const { connect } = await import("node:net"); return new Promise((resolve) => connect(PORT, "127.0.0.1").on("connect", () => resolve("reached")).on("error", (e: any) => resolve(e.code)));',
);

it('bound the time of calls and the memory of the process, and other folders are as before', async () => {
  const dock = await startDock(
    {
      'hasty/a.ts': slow + quick,
      'hasty/tooldock.yaml': 'limits:\n  timeout: 500ms\n',
      'small/a.ts': hog + quick,
      'small/tooldock.yaml': 'limits: { memory: 150MiB, timeout: 10h }\n',
      'usual/a.ts': quick,
    },
    { python: false },
  );
  for (const name of ['hasty', 'small', 'usual']) await dock.until(`${name}_quick`, ({ text }) => text === 'quick');
  // Without the limit it would take 60 s.
  expect((await dock.call('hasty_slow')).text).toContain('within 0.5 s');
  expect((await dock.call('small_hog')).text).toMatch(/150 MiB|memory/);
  expect((await dock.call('usual_quick')).text).toBe('quick');
});

describe('network: false', async () => {
  const without = await isWithoutIsolation();

  it.skipIf(without)('keeps tools from the network', async () => {
    const open = await startDock({ 'usual/a.ts': quick }, { python: false });
    const port = new URL(open.url).port;
    const dock = await startDock(
      {
        'alone/a.ts': fetches.replace('PORT', port),
        'alone/tooldock.yaml': 'limits: { network: false }\n',
        'usual/a.ts': fetches.replace('PORT', port),
      },
      { python: false },
    );
    await dock.until('usual_fetches', ({ text }) => text === 'reached');
    await dock.until('alone_fetches', ({ text }) => /^E[A-Z]+$/.test(text));
  });

  it('is not served if that cannot be ensured', async () => {
    const config = 'controls = []\n[folders]\nisolation = "off"\n';
    const files = { 'alone/a.ts': quick, 'alone/tooldock.yaml': 'limits: { network: false }\n', 'usual/a.ts': quick };
    const dock = await startDock(files, { config, python: false });
    await dock.until('usual_quick', ({ text }) => text === 'quick');
    await waitFor(() => dock.stderr().includes('network: false, which needs bubblewrap'));
    expect(await dock.names()).not.toContain('alone_quick');
  });
});

it('mistakes in limits are named, and the rest of the file is used', async () => {
  const { metadata, problems } = await readMetadata('version: 2\nlimits:\n  timeuot: 3s\n');
  expect(problems).toEqual([
    'tooldock.yaml:2: "limits" has an unknown key "timeuot"; known: timeout, memory, network.',
  ]);
  expect(metadata).toMatchObject({ version: '2', limits: { timeout: null } });
  expect((await readMetadata('limits: { timeout: soon }')).problems[0]).toMatch(/^tooldock.yaml:1: "limits.timeout" /);
  expect((await readMetadata('limits: 3')).problems[0]).toContain('needs a map with timeout, memory, network');
});
