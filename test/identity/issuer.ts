/** An identity provider that signs anything a test needs, including what a real one would not. */
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type CryptoKey, exportJWK, generateKeyPair, type JWTHeaderParameters, type JWTPayload, SignJWT } from 'jose';
import { atEnd } from '../support/cleanup.ts';

interface Key {
  readonly kid: string;
  readonly alg: string;
  readonly privateKey: CryptoKey;
  readonly publicKey: CryptoKey;
}

export interface Issuer {
  readonly issuer: string;
  readonly jwksUri: string;
  readonly keys: Key[];
  /** The requested paths. */
  readonly asked: string[];
  /** Members that override those of the metadata, to make it wrong. */
  metadata: Record<string, unknown>;
  /** A status to return instead of an answer. */
  failing: number | null;
  /** Adds a key. With `alone`, it replaces all others. */
  rotate(alg?: string, alone?: boolean): Promise<Key>;
  /** Signed with the newest key unless told otherwise. An undefined claim or header is left out. */
  sign(claims: JWTPayload, header?: Partial<JWTHeaderParameters>, key?: Key): Promise<string>;
}

let count = 0;

export async function makeKey(alg: string): Promise<Key> {
  const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true });
  return { kid: `key-${++count}`, alg, privateKey, publicKey };
}

export async function startIssuer(path = ''): Promise<Issuer> {
  const server = createServer((request: IncomingMessage, response) => {
    const { url = '/' } = request;
    made.asked.push(url);
    const answer = (body: object) => response.setHeader('content-type', 'application/json').end(JSON.stringify(body));
    if (made.failing !== null) response.writeHead(made.failing).end();
    else if (url === `/.well-known/openid-configuration${path}`) answer(made.metadata);
    else if (url === '/keys') void publicKeys(made.keys).then((keys) => answer({ keys }));
    else response.writeHead(404).end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  atEnd(() => {
    server.closeAllConnections();
    server.close();
  });
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const issuer = origin + path;
  const made: Issuer = {
    issuer,
    jwksUri: `${origin}/keys`,
    keys: [],
    asked: [],
    metadata: { issuer, jwks_uri: `${origin}/keys` },
    failing: null,
    // Making a key for RSA takes hundreds of times as long. tokens.test.ts has one of each kind.
    async rotate(alg = 'ES256', alone = false) {
      const key = await makeKey(alg);
      if (alone) made.keys.length = 0;
      made.keys.unshift(key);
      return key;
    },
    sign(claims, header = {}, key = made.keys[0]!) {
      const now = Math.floor(Date.now() / 1000);
      const all = { iss: issuer, iat: now, exp: now + 300, ...claims };
      const kept = Object.entries(all).filter(([, value]) => value !== undefined);
      const signed = { alg: key.alg, kid: key.kid, ...header };
      const heads = Object.entries(signed).filter(([, value]) => value !== undefined);
      return new SignJWT(Object.fromEntries(kept))
        .setProtectedHeader(Object.fromEntries(heads) as unknown as JWTHeaderParameters)
        .sign(key.privateKey, { crit: { 'urn:test': false } });
    },
  };
  return made;
}

function publicKeys(keys: readonly Key[]): Promise<object[]> {
  return Promise.all(
    keys.map(async ({ kid, alg, publicKey }) => ({ ...(await exportJWK(publicKey)), kid, alg, use: 'sig' })),
  );
}

/** A token of these parts without a valid signature. */
export function unsigned(header: object, claims: object, signature = ''): string {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  return `${part(header)}.${part(claims)}.${signature}`;
}
