/** Texts that go out to a client and come back from it: only we can have made them, and each is good for one thing only. */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';

export interface Seal {
  /** The text, signed for what it is bound to. */
  close(text: string, ...bound: readonly string[]): string;
  /** The text that was signed; null for what we did not sign, or signed for something else. */
  open(sealed: string, ...bound: readonly string[]): string | null;
}

export function createSeal(): Seal {
  const key = randomBytes(32);

  function close(text: string, ...bound: readonly string[]): string {
    const mac = createHmac('sha256', key)
      .update(JSON.stringify([text, ...bound]))
      .digest('base64url');
    return `${text}.${mac}`;
  }

  return {
    close,
    open(sealed, ...bound) {
      const text = sealed.slice(0, Math.max(0, sealed.lastIndexOf('.')));
      const expected = Buffer.from(close(text, ...bound));
      const given = Buffer.from(sealed);
      return given.length === expected.length && timingSafeEqual(given, expected) ? text : null;
    },
  };
}
