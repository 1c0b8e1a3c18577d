import { describe, expect, it } from 'vitest';
import { createSeal } from './seal.ts';
import { createTaskNames } from './tasks/task-names.ts';

describe('a seal', () => {
  const seal = createSeal();
  const sealed = seal.close('text.with.dots', 'ann', 'x');

  it('opens what it closed, for what it is bound to', () => {
    expect(seal.open(sealed, 'ann', 'x')).toBe('text.with.dots');
    expect(seal.open(sealed, 'ben', 'x')).toBeNull();
    expect(seal.open(sealed, 'ann', 'y')).toBeNull();
    expect(seal.open(sealed, 'ann')).toBeNull();
    expect(createSeal().open(sealed, 'ann', 'x')).toBeNull();
  });

  it.each(['', '.', 'text', sealed.slice(1), sealed.slice(0, -1), `${sealed} `, sealed.replace('with', 'hith'), 'ü.ü'])(
    'does not open %j',
    (text) => {
      expect(seal.open(text, 'ann', 'x')).toBeNull();
    },
  );
});

describe('the names of tasks', () => {
  const names = createTaskNames();

  it.each(['task-1', '', 'with "quotes" and ü', 'a.b.c', 'x'.repeat(500)])('lead back to %j', (id) => {
    const name = names.close({ sourceId: 7, id }, 'ann', 'modern');
    // It has to stand in a header.
    expect(name).toMatch(/^[\w.-]+$/);
    expect(names.open(name, 'ann', 'modern')).toEqual({ sourceId: 7, id });
    expect(names.open(name, 'ann', 'legacy')).toBeNull();
    expect(names.open(name, 'ben', 'modern')).toBeNull();
  });
});
