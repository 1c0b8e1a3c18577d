/**
 * Signs texts that are sent to a client and come back from it. A client cannot forge them or use them for another
 * purpose.
 */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';

export interface Seal {
  /** Returns the text, signed together with the values it is bound to. */
  close(text: string, ...bound: readonly string[]): string;
  /** Returns the signed text; null if we did not sign it or signed it for other values. */
  open(sealed: string, ...bound: readonly string[]): string | null;
}

/** Replicas have the same keys, so that each opens what another has signed. The first signs; the others still open. */
export function createSeal(keys: readonly Buffer[] = [randomBytes(32)]): Seal {
  function closeWith(key: Buffer, text: string, bound: readonly string[]): string {
    const mac = createHmac('sha256', key)
      .update(JSON.stringify([text, ...bound]))
      .digest('base64url');
    return `${text}.${mac}`;
  }

  return {
    close: (text, ...bound) => closeWith(keys[0]!, text, bound),
    open(sealed, ...bound) {
      const text = sealed.slice(0, Math.max(0, sealed.lastIndexOf('.')));
      const given = Buffer.from(sealed);
      const isSigned = keys.some((key) => {
        const expected = Buffer.from(closeWith(key, text, bound));
        return given.length === expected.length && timingSafeEqual(given, expected);
      });
      return isSigned ? text : null;
    },
  };
}
