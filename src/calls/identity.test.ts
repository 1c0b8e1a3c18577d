import { expect, it } from 'vitest';
import { outlives } from './identity.ts';

const credential = (expires: number | null, more: { isRevoked?: boolean; isStandIn?: true } = {}) => ({
  expires,
  revocation: { isRevoked: more.isRevoked === true },
  ...(more.isStandIn && { isStandIn: more.isStandIn }),
});

it('the credential that is valid longer counts, and any real one more than a stand-in or one that was revoked', () => {
  expect(outlives(credential(null), credential(5))).toBe(true);
  expect(outlives(credential(6), credential(5))).toBe(true);
  expect(outlives(credential(5), credential(5))).toBe(false);
  expect(outlives(credential(5), credential(null))).toBe(false);
  expect(outlives(credential(null), credential(null))).toBe(false);
  expect(outlives(credential(5), credential(null, { isRevoked: true }))).toBe(true);
  // Without that, revoking the real one would not end the session of a call that was taken over.
  expect(outlives(credential(5), credential(null, { isStandIn: true }))).toBe(true);
});
