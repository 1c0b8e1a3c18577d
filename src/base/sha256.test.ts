import { expect, it } from 'vitest';
import { sha256 } from './sha256.ts';

it('sha256 hashes text and bytes alike, in the requested encoding', () => {
  const hex = 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad';
  expect(sha256('abc')).toBe(hex);
  expect(sha256(Buffer.from('abc'))).toBe(hex);
  expect(sha256('abc', 'base64url')).toBe(Buffer.from(hex, 'hex').toString('base64url'));
});
