/** Verifies the JWTs of an identity provider, and maps each to an agent and a principal. */
import type { CryptoKey, JWK, JWTHeaderParameters, JWTPayload, JWTVerifyGetKey } from 'jose';
import type { TokenClaims } from '../../../access/circumstances.ts';
import { GatewayError } from '../../../base/errors.ts';
import { memo } from '../../../base/memo.ts';
import { toObject } from '../../../base/objects.ts';
import { matchesPattern } from '../../../base/pattern.ts';
import type { JwtConfig } from '../../../config/http.ts';
import { type Task, tasksFromValue } from '../../../config/task.ts';
import { createIssuerKeys } from './issuer.ts';

export interface Bearer {
  readonly agent: string;
  /** Issuer, subject and client, which together are unique. */
  readonly principal: string;
  readonly expires: number;
  readonly claims: TokenClaims;
  /** The only tasks that it may be used for; null for any. */
  readonly tasks: readonly Task[] | null;
}

/** Why a token is refused. `description` is sent to the client and contains nothing from the token. */
export class TokenRefused extends Error {
  override readonly name = 'TokenRefused';
  readonly kind: 'invalid' | 'scope' | 'agent';
  readonly description: string;

  constructor(kind: TokenRefused['kind'], description: string) {
    super(description);
    this.kind = kind;
    this.description = description;
  }
}

/** Rejects with TokenRefused, or with a GatewayError if the keys cannot be fetched. */
export type JwtVerifier = (token: string) => Promise<Bearer>;

const LONGEST_TOKEN = 8 * 1024;
/** Claims of identity providers, such as `auth0|5f7c`, are longer than the names of agents, and have more characters. */
const CLAIM_NAME = /^[A-Za-z0-9][\w.@:|/+=-]{0,255}$/;
/** Header parameters with which a token could supply its own key, or require extensions that we do not implement. */
const REFUSED_PARAMETERS = ['jku', 'x5u', 'jwk', 'x5c', 'crit'];
const TYPES = ['jwt', 'at+jwt', 'application/at+jwt'];
/** Agent names that a JWT must not claim: the gateway itself gives them to clients without a JWT. */
const RESERVED = ['default', 'anonymous'];

/** Whether a token has the form of a JWT. */
export function isJwt(token: string): boolean {
  return /^[\w-]+\.[\w-]+\.[\w-]*$/.test(token);
}

/**
 * The issuer that a token claims to be from; nothing is verified yet. It decides alone whose keys and rules the token is
 * held to: no other issuer is tried if those refuse it.
 */
export function claimedIssuer(token: string): string {
  if (token.length > LONGEST_TOKEN) throw new TokenRefused('invalid', 'The token is longer than 8 KiB');
  const claims = attempt(() => JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()) as unknown);
  const { iss } = toObject(claims);
  return typeof iss === 'string' ? iss : '';
}

/** `resource` is called for each token, because the port is not known before the door listens. */
export function createJwtVerifier(
  config: JwtConfig,
  resource: () => string,
  note: (message: string) => void,
): JwtVerifier {
  const issuer = createIssuerKeys(config, note);
  // Loaded only if JWTs are configured. A key set is created once for the same keys, because it imports them.
  const loading = import('jose').then((jose) => ({
    ...jose,
    keySetOf: memo((keys: readonly JWK[]) => jose.createLocalJWKSet({ keys: [...keys] })),
  }));
  loading.catch(() => {});

  return async (token) => {
    const { jwtVerify, keySetOf, decodeJwt, decodeProtectedHeader, errors } = await loading;
    // These checks come first, so that a bad token causes no fetch and no cryptography.
    const header = attempt(() => decodeProtectedHeader(token));
    const claims = attempt(() => decodeJwt(token));
    checkHeader(header as JWTHeaderParameters, config);
    if (claims.iss !== config.issuer) throw new TokenRefused('invalid', 'The token is from another issuer');

    const find: JWTVerifyGetKey<CryptoKey> = async (wanted, input) => {
      const keys = await issuer.keys();
      try {
        return await keySetOf(keys)(wanted, input);
      } catch (error) {
        if (!(error instanceof errors.JWKSNoMatchingKey) || !(await issuer.renew())) throw error;
        return keySetOf(await issuer.keys())(wanted, input);
      }
    };
    try {
      const { payload } = await jwtVerify(token, find, {
        issuer: config.issuer,
        audience: [...(config.audience ?? [resource()])],
        algorithms: [...config.algorithms],
        clockTolerance: config.clockSkew / 1000,
        requiredClaims: ['exp'],
      });
      return readBearer(payload, config);
    } catch (error) {
      if (error instanceof TokenRefused || error instanceof GatewayError) throw error;
      throw new TokenRefused('invalid', describe(error));
    }
  };
}

function attempt<T>(decode: () => T): T {
  try {
    return decode();
  } catch {
    throw new TokenRefused('invalid', 'The token is not a JWT');
  }
}

function checkHeader(header: JWTHeaderParameters, { algorithms }: JwtConfig): void {
  if (!algorithms.includes(header.alg))
    throw new TokenRefused('invalid', 'The token is signed with an algorithm that is not allowed here');
  if (REFUSED_PARAMETERS.some((name) => Object.hasOwn(header, name)))
    throw new TokenRefused('invalid', 'The token has a header parameter that is not allowed here');
  if (header.typ !== undefined && !TYPES.includes(String(header.typ).toLowerCase()))
    throw new TokenRefused('invalid', 'Tokens of this type are not accepted here');
}

/** Returns a message of our own, because the library's messages may contain parts of the token. */
function describe(error: unknown): string {
  const { code, claim } = error as { code?: unknown; claim?: unknown };
  if (code === 'ERR_JWT_EXPIRED') return 'The token has expired';
  if (code === 'ERR_JWT_CLAIM_VALIDATION_FAILED') {
    if (claim === 'aud') return 'The token is for another resource';
    if (claim === 'nbf') return 'The token is not valid yet';
    if (claim === 'exp') return 'The token has no expiry time';
    return `The claim ${String(claim)} is not valid`;
  }
  if (code === 'ERR_JWKS_NO_MATCHING_KEY') return 'The token is signed with an unknown key';
  if (code === 'ERR_JWKS_MULTIPLE_MATCHING_KEYS') return 'The token does not say which key signed it';
  if (code === 'ERR_JWS_SIGNATURE_VERIFICATION_FAILED') return 'The signature of the token is wrong';
  return 'The token could not be verified';
}

function readBearer(payload: JWTPayload, config: JwtConfig): Bearer {
  const { sub = '', exp } = payload;
  const client = payload.client_id ?? payload.azp ?? '';
  if (typeof sub !== 'string' || typeof client !== 'string' || sub + client === '')
    throw new TokenRefused('invalid', 'The token names neither a subject nor a client');
  const granted = scopesOf(payload);
  if (config.requiredScopes.some((scope) => !granted.has(scope)))
    throw new TokenRefused('scope', 'The token lacks a required scope');
  return {
    agent: agentOf(payload, config),
    principal: JSON.stringify([config.issuer, sub, client]),
    expires: exp! * 1000 + config.clockSkew,
    claims: payload,
    tasks: config.taskClaim === null ? null : tasksOf(payload, config.taskClaim),
  };
}

/** A token without a task is refused: where tokens have to name one, it would open everything. */
function tasksOf(payload: JWTPayload, claim: string): Task[] {
  const value = Object.hasOwn(payload, claim) ? payload[claim] : undefined;
  try {
    const tasks = tasksFromValue(value, 'The task of the token');
    if (tasks !== null) return tasks;
  } catch {
    throw new TokenRefused('agent', 'The task that the token names cannot be read');
  }
  throw new TokenRefused('agent', 'The token names no task');
}

/** Scopes are in `scope` (RFC 9068), or in `scp` with some providers. */
function scopesOf({ scope, scp }: JWTPayload): Set<string> {
  const lists = [scope, scp].map((value) => {
    if (typeof value === 'string') return value.split(' ');
    return Array.isArray(value) ? value.filter((one) => typeof one === 'string') : [];
  });
  return new Set(lists.flat());
}

function agentOf(payload: JWTPayload, { agentClaim, agents }: JwtConfig): string {
  const claim = Object.hasOwn(payload, agentClaim) ? payload[agentClaim] : undefined;
  const values = (Array.isArray(claim) ? claim : [claim]).filter((value): value is string => typeof value === 'string');
  if (agents !== null) {
    const found = agents.find((one) => values.some((value) => matchesPattern(one.claim, value)));
    if (found === undefined) throw new TokenRefused('agent', 'The token matches no agent that is allowed here');
    return found.agent;
  }
  const [name] = values;
  if (values.length !== 1 || name === undefined || !CLAIM_NAME.test(name))
    throw new TokenRefused('agent', 'The token names no agent');
  if (RESERVED.includes(name)) throw new TokenRefused('agent', 'The token names an agent that JWTs must not use');
  return name;
}
