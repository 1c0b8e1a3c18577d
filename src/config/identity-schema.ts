/** Who is let in over HTTP: the part of the configuration about tokens, JWTs and admins. */
import * as z from 'zod';
import { duration, flag, strictMap, text, textList, textMap } from './fields.ts';

/** As names stand in policies, in files and in the header `X-Agent-Id`. */
export const AGENT_NAME = /^[A-Za-z0-9][\w.@:-]{0,63}$/;
export const WRONG_NAME =
  'an agent is named by at most 64 letters, digits and "_", ".", "@", ":", "-", and begins with a letter or digit. Rename it';

/** Signatures that need a private key which only the issuer has. */
const ALGORITHMS = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
  'Ed25519',
] as const;
const MOST_SKEW = 60_000;

export const jwtSchema = strictMap({
  issuer: text().describe('Who signs the tokens: the exact value of their claim `iss`, an address.'),
  audience: z
    .union([text(), textList()], { error: 'expected a string or a list of strings' })
    .optional()
    .describe('For whom tokens have to be: one of these in their claim `aud`. Default: `public_url`.'),
  jwks_uri: text().optional().describe("Where the issuer's keys are. Default: what its metadata says."),
  algorithms: z
    .array(z.enum(ALGORITHMS, { error: `expected one of ${ALGORITHMS.join(', ')}` }), {
      error: 'expected a list such as ["RS256"]',
    })
    .min(1, { error: 'needs at least one algorithm' })
    .prefault(['RS256', 'PS256', 'ES256', 'ES384', 'EdDSA', 'Ed25519'])
    .describe('Signatures that are accepted.'),
  agent_claim: text().prefault('sub').describe('The claim that says which agent it is.'),
  agents: textMap(/^[^\0]+$/, 'expected the value of a claim, or a pattern')
    .optional()
    .describe(
      'Values of that claim, or patterns over them, and the agent each stands for; the first that fits counts, and nobody else gets in. Default: the value is the name of the agent.',
    ),
  required_scopes: z
    .array(
      text().regex(/^[\x21\x23-\x5b\x5d-\x7e]+$/, { error: 'is not a scope: it must have no blanks and quotes' }),
      {
        error: 'expected a list of strings',
      },
    )
    .prefault([])
    .describe('Scopes that a token must have, all of them.'),
  clock_skew: duration(0)
    .refine((value) => value <= MOST_SKEW, { error: 'must be at most "60s"' })
    .prefault('30s')
    .describe('How far the clocks of the issuer and of this machine may differ; at most 60 s.'),
}).meta({ description: 'Tokens of an identity provider.' });

export const identityShape = {
  public_url: text()
    .optional()
    .describe(
      'The address of `/mcp` as clients know it, such as "https://tools.example.com/mcp"; tokens are made out to it. Default: that of `host` and `port`, on loopback.',
    ),
  admins: textList()
    .prefault(['default'])
    .describe('Agents that may read `/metrics` and whatever else is about the whole gateway.'),
  trust_agent_header: flag()
    .prefault(false)
    .describe(
      'Lets the header `X-Agent-Id` name the agent. Only where everybody who can reach the gateway may be any agent.',
    ),
  jwt: jwtSchema.optional().describe('Lets clients in with tokens of an identity provider.'),
};

const tokens = (expected: string) =>
  z.union([text(), textList()], { error: expected }).transform((value) => (Array.isArray(value) ? value : [value]));

export const agentSchema = strictMap({
  token: tokens('expected a token or a list of tokens')
    .optional()
    .describe('What the agent shows as bearer token; several may be good at one time. Write it as `${NAME}`.'),
  token_sha256: tokens('expected a SHA-256 hash in hexadecimal digits, or a list of them')
    .optional()
    .describe('The same by its SHA-256 hash, in hexadecimal digits.'),
  description: text().prefault('').describe('Who or what the agent is.'),
}).meta({ id: 'Agent', description: 'A client of the gateway that has a name.' });

export const agentsSchema = z.record(z.string().regex(AGENT_NAME, { error: WRONG_NAME }), agentSchema, {
  error: (issue) => (issue.code === 'invalid_type' ? 'expected a map of agents' : undefined),
});
