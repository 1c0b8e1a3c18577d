/** Ten thousand rounds of equipping and unequipping leave nothing behind. */
import { readdirSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { startHttp } from '../support/gateway.ts';
import { waitFor } from '../support/processes.ts';
import { useProcesses } from '../support/switch.ts';
import { control, refs, THREE, toolsetsToml } from '../support/toolsets.ts';

useProcesses();

const ROUNDS = 10_000;
/** How much two measurements of the heap may differ, in MB. */
const SLACK = 40;

it('reports each change once, and does not grow', { timeout: 300_000 }, async () => {
  const gateway = await startHttp({ config: toolsetsToml(THREE) });
  const { client, changes } = await gateway.connect();
  await client.listTools();
  await control(client, 'build-toolset', { name: 'dev', tools: refs('git.status', 'docker.ps') });
  // The description of equip-toolset names every toolset.
  const built = await waitFor(() => changes('tools'));
  const start = performance.now();
  const rounds = async (count: number) => {
    for (let round = 0; round < count; round++) {
      await control(client, 'equip-toolset', { name: 'dev' });
      await control(client, 'unequip-toolset');
    }
  };
  const size = () => {
    const resident = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${gateway.pid}/status`, 'utf8'))![1];
    return { memory: Number(resident) / 1024, handles: readdirSync(`/proc/${gateway.pid}/fd`).length };
  };
  await rounds(ROUNDS / 5);
  const early = size();
  await rounds(ROUNDS - ROUNDS / 5);
  await waitFor(() => changes('tools') === built + ROUNDS * 2);
  const late = size();
  const seconds = Math.round((performance.now() - start) / 1000);
  console.log(
    `${ROUNDS} rounds in ${seconds} s, ${changes('tools')} changes reported; ${Math.round(early.memory)} to ${Math.round(late.memory)} MB, ${early.handles} to ${late.handles} handles`,
  );
  expect(late.memory).toBeLessThan(early.memory + SLACK);
  expect(late.handles).toBeLessThanOrEqual(early.handles + 2);
  expect(gateway.stderr()).not.toContain('MaxListeners');
});
