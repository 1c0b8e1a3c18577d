import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, it } from 'vitest';
import { residentOf, watchMemory } from './memory.ts';

const MB = 1024 ** 2;

it.skipIf(process.platform !== 'linux')(
  'counts the memory of a process and its children, and reports when it is too much',
  async () => {
    const eat = `const kept = Buffer.alloc(120 * 1024 ** 2, 1);`;
    const script = `${eat} require('node:child_process').spawn(process.execPath, ['-e', '${eat} console.log("there"); setInterval(() => kept, 1000)'], { stdio: 'inherit' });`;
    const child = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'inherit'], detached: true });
    try {
      await once(child.stdout, 'data');
      const used = residentOf(child.pid!);
      expect(used).toBeGreaterThan(240 * MB);
      expect(used).toBeLessThan(800 * MB);
      const roomy = watchMemory(
        child.pid!,
        2_000 * MB,
        () => true,
        () => expect.fail('it is not too much'),
      );
      await new Promise<void>((resolve) => watchMemory(child.pid!, 200 * MB, () => true, resolve));
      roomy.stop();
    } finally {
      process.kill(-child.pid!, 'SIGKILL');
    }
    expect(residentOf(2 ** 22)).toBe(0);
  },
);
