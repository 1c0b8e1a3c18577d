import { constants, PerformanceObserver } from 'node:perf_hooks';
import { expect, it, onTestFinished, vi } from 'vitest';
import { countBuffer } from './external-memory.ts';

it('has young buffers collected after each 4 MB, and shows that function to nobody', async () => {
  let minor = 0;
  const observer = new PerformanceObserver((list) => {
    for (const entry of list.getEntries() as unknown as { readonly detail: { readonly kind: number } }[])
      if (entry.detail.kind === constants.NODE_PERFORMANCE_GC_MINOR) minor++;
  });
  observer.observe({ entryTypes: ['gc'] });
  onTestFinished(() => observer.disconnect());
  for (let n = 0; n < 10 * 4 * 4; n++) countBuffer(256 * 1024);
  await vi.waitFor(() => expect(minor).toBeGreaterThanOrEqual(10), { timeout: 30_000 });
  expect(globalThis).not.toHaveProperty('gc');
});
