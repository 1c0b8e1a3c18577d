import { describe, expect, it } from 'vitest';
import { createSeal } from './seal.ts';

describe('a seal', () => {
  const seal = createSeal();
  const sealed = seal.close('text.with.dots', 'ann', 'x');

  it('opens what it sealed only with the values it is bound to', () => {
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

describe('seals with the same keys', () => {
  const [own, former] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)];

  it('open what each other has signed, also before a key was changed', () => {
    const before = createSeal([former]).close('text', 'ann');
    expect(createSeal([own, former]).open(before, 'ann')).toBe('text');
    expect(createSeal([own]).open(before, 'ann')).toBeNull();
    expect(createSeal([own]).open(createSeal([own, former]).close('new', 'ann'), 'ann')).toBe('new');
  });
});
