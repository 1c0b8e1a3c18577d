/** Proves with each request that a token is ours, if it is bound to a key (DPoP, RFC 9449). */
import { createHash, randomUUID } from 'node:crypto';
import { importJWK, type JWK, SignJWT } from 'jose';
import type { Login } from './record.ts';

/** Makes a proof for a request with this method to this address. */
export type Prover = (method: string, url: string, nonce: string | null) => Promise<string>;

export async function createProver({ key, token = '' }: Login): Promise<Prover> {
  const { kty, crv, x, y } = key as JWK;
  const jwk = { kty, crv, x, y } as JWK;
  const signer = await importJWK(key as JWK, 'ES256');
  const ath = createHash('sha256').update(token).digest('base64url');
  return (htm, url, nonce) => {
    const { origin, pathname } = new URL(url);
    return new SignJWT({ jti: randomUUID(), htm, htu: `${origin}${pathname}`, ath, ...(nonce !== null && { nonce }) })
      .setProtectedHeader({ typ: 'dpop+jwt', alg: 'ES256', jwk })
      .setIssuedAt()
      .sign(signer);
  };
}
