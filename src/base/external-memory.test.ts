import { expect, it } from 'vitest';
import { countBuffer } from './external-memory.ts';

it('has young buffers collected before V8 does', () => {
  const MB = 1024 * 1024;
  const buffers = () => process.memoryUsage().arrayBuffers;
  const before = buffers();
  let most = 0;
  for (let n = 0; n < 100; n++) {
    Buffer.allocUnsafeSlow(MB);
    countBuffer(MB);
    most = Math.max(most, buffers() - before);
  }
  // V8 itself waits until there are 32 MB.
  expect(most).toBeLessThan(24 * MB);
  expect(globalThis).not.toHaveProperty('gc');
});
