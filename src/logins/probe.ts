/** Asks a server without a token, to learn what it says about logging in. */
import { Agent, request } from 'undici';
import { readAuthorities, readKeyPair } from '../base/certificates.ts';
import { IDENTITY } from '../base/version.ts';
import type { Launch } from '../config/launch.ts';
import { OWN_META } from '../protocol/envelope.ts';
import { LATEST_REVISION, MODERN_REVISION } from '../protocol/revisions.ts';
import { type LoginChallenge, readChallenge } from './challenge.ts';

type ProbedLaunch = Extract<Launch, { kind: 'http' }>;

export interface Probed {
  /** Whether the server refused to answer somebody whom it does not know. */
  readonly isRefused: boolean;
  readonly challenge: LoginChallenge | null;
}

/** Both eras are asked, because some servers answer the first question of one of them to everybody. */
export async function probe(
  { url, headers }: ProbedLaunch,
  certificates: Readonly<Record<string, unknown>>,
): Promise<Probed> {
  const dispatcher = new Agent({ connect: { timeout: 10_000, ...certificates } });
  const first = { jsonrpc: '2.0', id: 1 };
  const initialize = { protocolVersion: LATEST_REVISION, capabilities: {}, clientInfo: IDENTITY };
  const questions = [
    { body: { ...first, method: 'server/discover', params: { _meta: OWN_META } }, revision: MODERN_REVISION },
    { body: { ...first, method: 'initialize', params: initialize }, revision: null },
  ];
  try {
    for (const { body, revision } of questions) {
      const {
        statusCode,
        headers: answered,
        body: rest,
      } = await request(url, {
        method: 'POST',
        dispatcher,
        headersTimeout: 10_000,
        bodyTimeout: 10_000,
        headers: {
          ...headers,
          'content-type': 'application/json',
          accept: 'application/json, text/event-stream',
          ...(revision !== null && { 'mcp-protocol-version': revision, 'mcp-method': body.method }),
        },
        body: JSON.stringify(body),
      });
      rest.destroy();
      rest.on('error', () => {});
      const challenge = readChallenge(String(answered['www-authenticate'] ?? ''));
      if (statusCode === 401 || challenge !== null) return { isRefused: true, challenge };
    }
    return { isRefused: false, challenge: null };
  } finally {
    await dispatcher.destroy();
  }
}

/** The certificates that a server is asked with. */
export function certificatesOf({ tls }: ProbedLaunch): {
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
} {
  if (tls === undefined) return {};
  const own = tls.pair === null ? null : readKeyPair(tls.pair.cert, tls.pair.key, 'tls.cert', 'tls.key');
  return {
    ...(tls.ca !== null && { ca: readAuthorities(tls.ca, 'tls.ca') }),
    ...(own !== null && { cert: own.cert, key: own.key }),
  };
}
