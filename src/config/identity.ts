/** Who is let in over HTTP, as the gateway works with it: addresses checked, tokens hashed. */
import { createHash } from 'node:crypto';
import type * as z from 'zod';
import { isLoopback } from '../base/loopback.ts';
import type { AgentConfig, HttpConfig, JwtConfig } from './config.ts';
import { variablesIn } from './expand.ts';
import { AGENT_NAME, type agentsSchema, type jwtSchema, WRONG_NAME } from './identity-schema.ts';
import type { Issue, Path } from './issues.ts';

const SHORTEST_TOKEN = 16;

interface Written {
  readonly http: {
    readonly public_url?: string | undefined;
    readonly admins: readonly string[];
    readonly trust_agent_header: boolean;
    readonly jwt?: z.output<typeof jwtSchema> | undefined;
  };
  readonly agents?: z.output<typeof agentsSchema> | undefined;
}

type Expand = (path: Path, written: string) => string;

/** What is wrong goes to `issues`; `expand` puts variables in. */
export function resolveIdentity({ http, agents = {} }: Written, expand: Expand, issues: Issue[]) {
  const publicUrl = http.public_url === undefined ? null : expand(['http', 'public_url'], http.public_url);
  const known = {
    publicUrl: publicUrl === null ? null : resourceOf(publicUrl, issues),
    admins: http.admins.map((name, i) => expand(['http', 'admins', i], name)),
    trustAgentHeader: http.trust_agent_header,
    jwt: http.jwt === undefined ? null : resolveJwt(http.jwt, expand, issues),
  } satisfies Partial<HttpConfig>;
  return { http: known, agents: resolveAgents(agents, expand, issues) };
}

/** Variables that hold tokens of agents: servers have no business with them. */
export function tokenVariables({ agents = {} }: Pick<Written, 'agents'>): string[] {
  return [...new Set(Object.values(agents).flatMap(({ token = [] }) => token.flatMap(variablesIn)))].sort();
}

/** Without a fragment and a slash at its end, as the specification wants it. */
function resourceOf(text: string, issues: Issue[]): string {
  const path = ['http', 'public_url'];
  const url = addressOf(text);
  if (url === null || url.search !== '' || url.hash !== '' || url.username !== '') {
    issues.push({ path, message: 'is no address such as "https://tools.example.com/mcp", without "?" and "#"' });
    return text;
  }
  return url.origin + url.pathname.replace(/\/+$/, '');
}

function resolveJwt(jwt: z.output<typeof jwtSchema>, expand: Expand, issues: Issue[]): JwtConfig {
  const place = (key: string): Path => ['http', 'jwt', key];
  const address = (key: string, written: string): string => {
    const given = expand(place(key), written);
    const url = addressOf(given);
    if (url === null) issues.push({ path: place(key), message: 'is no address such as "https://login.example.com"' });
    else if (url.protocol !== 'https:' && !isLoopback(url.hostname))
      issues.push({
        path: place(key),
        message: 'must begin with https, because whoever answers there decides who gets in; http is for loopback only',
      });
    return given;
  };
  const { audience, agents } = jwt;
  const audiences = audience === undefined ? null : typeof audience === 'string' ? [audience] : audience;
  if (audiences?.length === 0) issues.push({ path: place('audience'), message: 'names nobody' });
  for (const [claim, agent] of Object.entries(agents ?? {}))
    if (!AGENT_NAME.test(agent)) issues.push({ path: [...place('agents'), claim], message: WRONG_NAME });
  return {
    issuer: address('issuer', jwt.issuer),
    audience: audiences === null ? null : audiences.map((one) => expand(place('audience'), one)),
    jwksUri: jwt.jwks_uri === undefined ? null : address('jwks_uri', jwt.jwks_uri),
    algorithms: jwt.algorithms,
    agentClaim: jwt.agent_claim,
    agents: agents === undefined ? null : Object.entries(agents).map(([claim, agent]) => ({ claim, agent })),
    requiredScopes: jwt.required_scopes,
    clockSkew: jwt.clock_skew,
  };
}

/** Tokens are hashed here: the configuration that the gateway works with, and shows, has none. */
function resolveAgents(agents: z.output<typeof agentsSchema>, expand: Expand, issues: Issue[]): AgentConfig[] {
  const owners = new Map<string, string>();
  return Object.entries(agents).map(([name, { token = [], token_sha256: given = [], description }]) => {
    const path = (key: string, i: number, list: readonly string[]): Path =>
      list.length === 1 ? ['agents', name, key] : ['agents', name, key, i];
    const hashes = token.map((written, i) => {
      const secret = expand(path('token', i, token), written);
      if (secret.length < SHORTEST_TOKEN)
        issues.push({
          path: path('token', i, token),
          message: `is shorter than ${SHORTEST_TOKEN} characters and could be guessed. toolgate agents add makes a good one`,
        });
      return sha256(secret);
    });
    const ready = given.map((written, i) => {
      const hash = expand(path('token_sha256', i, given), written).toLowerCase();
      if (!/^[0-9a-f]{64}$/.test(hash))
        issues.push({ path: path('token_sha256', i, given), message: 'is no SHA-256 hash of 64 hexadecimal digits' });
      return hash;
    });
    const all = [...new Set([...hashes, ...ready])];
    for (const hash of all) {
      const owner = owners.get(hash);
      if (owner !== undefined)
        issues.push({ path: ['agents', name], message: `has the same token as "${owner}". Give each agent its own` });
      owners.set(hash, name);
    }
    return { name, description, tokens: all };
  });
}

export function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

function addressOf(text: string): URL | null {
  return URL.canParse(text) && /^https?:\/\//i.test(text) ? new URL(text) : null;
}
