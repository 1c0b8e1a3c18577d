import { describe, expect, it } from 'vitest';
import { createSeal } from '../seal.ts';
import { openTaskId, sealTaskId } from './tasks.ts';

describe('the sealed id of an MCP task', () => {
  const seal = createSeal();

  it.each(['task-1', '', 'with "quotes" and ü', 'a.b.c', 'x'.repeat(500)])(
    'opens to the server and its id %j',
    (id) => {
      const sealed = sealTaskId(seal, { sourceId: 7, id }, 'ann', 'modern');
      // The id is also sent in an HTTP header.
      expect(sealed).toMatch(/^[\w.-]+$/);
      expect(openTaskId(seal, sealed, 'ann', 'modern')).toEqual({ sourceId: 7, id, owner: '' });
      expect(openTaskId(seal, sealed, 'ann', 'legacy')).toBeNull();
      expect(openTaskId(seal, sealed, 'ben', 'modern')).toBeNull();
    },
  );
});
