/** What a client certificate says: its names, and the agent that they stand for. TLS has verified it before. */
import type { IncomingMessage } from 'node:http';
import type { TLSSocket } from 'node:tls';
import { matchesPattern } from '../../../base/pattern.ts';
import { AGENT_NAME } from '../../../config/agents.ts';
import type { ClientCertificates } from '../../../config/http.ts';

export type PresentedCertificate =
  | { readonly kind: 'none' }
  | { readonly kind: 'refused'; readonly reason: string }
  | { readonly kind: 'accepted'; readonly names: readonly string[]; readonly expires: number };

/**
 * The certificate with which the connection of a request was opened. `authorized` alone says nothing: it is also true
 * for a resumed TLS session that began without a certificate.
 */
export function presentedBy({ socket }: IncomingMessage): PresentedCertificate {
  const { authorized, authorizationError, getPeerX509Certificate } = socket as Partial<TLSSocket>;
  const certificate = getPeerX509Certificate?.call(socket);
  if (certificate === undefined) return { kind: 'none' };
  if (authorized !== true) return { kind: 'refused', reason: String(authorizationError ?? 'not verified') };
  const { CN } = (socket as TLSSocket).getPeerCertificate().subject ?? {};
  return {
    kind: 'accepted',
    // Two common names are no name: nobody could say which of them was verified.
    names: [...alternativeNames(certificate.subjectAltName ?? ''), ...(typeof CN === 'string' ? [`CN:${CN}`] : [])],
    expires: Date.parse(certificate.validTo),
  };
}

/** One name of a list such as `URI:spiffe://a, DNS:"b, c"`. Names with special characters are in quotes, as in JSON. */
const NAME = /(\w[\w ]*):("(?:[^"\\]|\\.)*"|[^,"]*)(?:, |$)/y;
const KINDS: Readonly<Record<string, string>> = { URI: 'URI', DNS: 'DNS', email: 'EMAIL' };

/** Nothing if the list cannot be read: part of a name could be taken for another one. */
export function alternativeNames(list: string): string[] {
  const names: string[] = [];
  NAME.lastIndex = 0;
  while (NAME.lastIndex < list.length) {
    const [, kind = '', value = ''] = NAME.exec(list) ?? [];
    if (kind === '') return [];
    const known = KINDS[kind];
    if (known !== undefined) names.push(`${known}:${value.startsWith('"') ? String(JSON.parse(value)) : value}`);
  }
  return names;
}

/** Agents that a common name must not claim: the gateway itself gives these names to clients without a certificate. */
const RESERVED = ['default', 'anonymous'];

/** The agent of a certificate and the name that says so; null if it stands for none. */
export function agentOf(
  names: readonly string[],
  { agents }: Pick<ClientCertificates, 'agents'>,
): { readonly agent: string; readonly name: string } | null {
  for (const one of agents ?? []) {
    const name = names.find((candidate) => matchesPattern(one.name, candidate));
    if (name !== undefined) return { agent: one.agent, name };
  }
  const name = names.find((candidate) => candidate.startsWith('CN:'));
  const agent = name?.slice('CN:'.length) ?? '';
  if (agents !== null || name === undefined || !AGENT_NAME.test(agent) || RESERVED.includes(agent)) return null;
  return { agent, name };
}
