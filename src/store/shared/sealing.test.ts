import { expect, it } from 'vitest';
import { createSealing, createUnsealed } from './sealing.ts';

const sealing = createSealing(['the key']);

it('opens what was sealed for the same place, and nothing else', () => {
  const sealed = sealing.seal('secret', 'here');
  expect(sealed.toString('latin1')).not.toContain('secret');
  expect(sealing.open(sealed, 'here')?.toString()).toBe('secret');
  expect(sealing.open(sealed, 'elsewhere')).toBeNull();
  expect(createSealing(['another key']).open(sealed, 'here')).toBeNull();
  for (let i = 0; i < sealed.length; i++) {
    const broken = Buffer.from(sealed);
    broken[i]! ^= 1;
    expect(sealing.open(broken, 'here'), `byte ${i}`).toBeNull();
    expect(sealing.open(sealed.subarray(0, i), 'here')).toBeNull();
  }
});

it('opens with former keys, and seals with the first', () => {
  const before = sealing.seal('old', 'here');
  const now = createSealing(['a new key', 'the key']);
  expect(now.open(before, 'here')?.toString()).toBe('old');
  expect(sealing.open(now.seal('new', 'here'), 'here')).toBeNull();
  expect(now.keysFor('states')[1]).toEqual(sealing.keysFor('states')[0]);
  expect(now.keysFor('states')[0]).not.toEqual(now.keysFor('tasks')[0]);
});

it('marks what stays in our own memory, and does not take what has no mark', () => {
  const unsealed = createUnsealed('the key');
  expect(unsealed.open(unsealed.seal('text', 'here'), 'here')?.toString()).toBe('text');
  expect(unsealed.open(unsealed.seal(Buffer.alloc(0), 'here'), 'here')).toHaveLength(0);
  for (const other of [Buffer.alloc(0), Buffer.from('{}'), sealing.seal('secret', 'here')])
    expect(unsealed.open(other, 'here')).toBeNull();
  expect(unsealed.keysFor('states')).toEqual(sealing.keysFor('states'));
});
