/** Requests of the revision without sessions. Headers and envelope are checked before anything else. */
import type { KeptSelection } from '../../../access/selection.ts';
import { GatewayError } from '../../../base/errors.ts';
import type { KeptCaller } from '../../../calls/caller.ts';
import type { Gateway } from '../../../gateway/gateway.ts';
import { modernErrorObject } from '../../../protocol/bridge.ts';
import {
  type ClientAbilities,
  claimedRevision,
  readAbilities,
  requireEnvelope,
  requireModern,
} from '../../../protocol/envelope.ts';
import { claimsRevision, idText, isRequest, isResponse, type Message } from '../../../protocol/message.ts';
import { checkMethodHeader, checkNameHeader, type Headers, mismatch } from '../../../protocol/param-headers.ts';
import { isModern, MODERN_REVISION } from '../../../protocol/revisions.ts';
import { errorReply } from '../../../protocol/rpc.ts';
import { ModernPeer } from '../../modern.ts';
import { clientIdOf } from '../client-id.ts';
import { requireNamespace } from '../scope.ts';
import { createSessionlessClients, type Memory, type SessionlessClients } from '../sessionless.ts';
import type { Backpressure } from '../wire/backpressure.ts';
import type { Post } from '../wire/body.ts';
import { cancelOnClose } from '../wire/cancel-on-close.ts';
import { sendReply } from '../wire/reply.ts';
import { HttpExchange } from './exchange.ts';

export interface Stateless {
  receive(message: Message, post: Post): void;
  /** The number of requests whose clients still wait for an answer. */
  readonly awaited: number;
  keepAlive(now: number): void;
  /** Ends the requests whose credentials were revoked. */
  endRevoked(): void;
  close(): void;
}

/** Whether the header names a revision without sessions. */
export function isModernHeader(headers: Headers): boolean {
  const version = headers['mcp-protocol-version'];
  return version === MODERN_REVISION || (typeof version === 'string' && isModern(version));
}

/** Whether a message belongs to that revision. Its envelope decides; without an envelope the header does. */
export function isStateless(message: Message, headers: Headers): boolean {
  if (!claimsRevision(message)) return isModernHeader(headers);
  return message.method !== 'initialize' || isModernHeader(headers);
}

/** The clients of this revision: one for each principal and scope. Replicas share what they have switched. */
export function createModernPeers(gateway: Gateway, memory?: Memory): SessionlessClients<ModernPeer> {
  const peers = new Map<string, WeakRef<ModernPeer>>();
  const selections = gateway.replica?.map('selections', (key, kept) => {
    peers
      .get(key)
      ?.deref()
      ?.adopt(kept as KeptSelection | null);
  });
  return createSessionlessClients((identity, scope, clientId) => {
    const options = { identity, scope, door: 'http', clientId, isSingle: false } as const;
    if (selections === undefined) return new ModernPeer(gateway, options);
    const { principal, agent, claims } = identity;
    const key = JSON.stringify([principal, agent, claims, scope.toolset?.name, scope.namespace, scope.task, clientId]);
    const shared = {
      selection: (selections.get(key) ?? null) as KeptSelection | null,
      known: null,
      keep: ({ selection }: KeptCaller) => selections.set(key, selection),
    };
    const peer = new ModernPeer(gateway, { ...options, shared });
    peers.set(key, new WeakRef(peer));
    return peer;
  }, memory);
}

export function createStateless(gateway: Gateway, backpressure: Backpressure, memory?: Memory): Stateless {
  const peers = createModernPeers(gateway, memory);

  return {
    get awaited() {
      let sum = 0;
      for (const peer of peers.all) sum += peer.awaited;
      return sum;
    },
    receive(message, { request, response, headers, identity, scope }) {
      let abilities: ClientAbilities | null;
      let clientId: string | null;
      try {
        abilities = check(message, request.headers, gateway.config.revisions);
        if (abilities !== null) requireNamespace(gateway, scope);
        clientId = clientIdOf(identity, request.headers);
      } catch (error) {
        if (!(error instanceof GatewayError)) throw error;
        const id = isRequest(message) ? idText(message) : null;
        sendReply(response, error.httpStatus, errorReply(id, modernErrorObject(error)), headers);
        return;
      }
      if (abilities === null) {
        response.writeHead(202, [...headers, 'content-length', '0']).end();
        return;
      }
      const answer = peers
        .of(identity, scope, clientId)
        .request(
          message,
          abilities,
          new HttpExchange(response, headers, backpressure, null, identity.credential),
          request.headers,
        );
      // A finished answer has nothing to cancel.
      if (answer.place >= 0) cancelOnClose(response, answer);
    },
    keepAlive(now) {
      peers.sweep(now);
      for (const peer of peers.all) peer.keepAlive(now);
    },
    endRevoked() {
      for (const peer of peers.all) peer.turnOut();
    },
    close() {
      for (const peer of peers.all) peer.close();
    },
  };
}

/**
 * Throws at the first error, in the order that the specification's conformance tests expect. Null for a notification:
 * none of them needs any action.
 */
function check(message: Message, headers: Headers, supported: readonly string[]): ClientAbilities | null {
  if (isResponse(message))
    throw new GatewayError('request_invalid', 'In this revision of the protocol clients send no responses.');
  if (!isRequest(message)) {
    if (claimsRevision(message)) requireModern(claimedRevision(message), supported);
    return null;
  }
  if (!claimsRevision(message)) requireEnvelope(message);
  const abilities = readAbilities(message);
  const version = headers['mcp-protocol-version'];
  const claimed = claimedRevision(message);
  if (version !== undefined && version !== claimed)
    throw mismatch(`MCP-Protocol-Version is not the revision "${claimed}" that the body names`);
  requireModern(claimed, supported);
  if (version === undefined) throw mismatch('the header MCP-Protocol-Version is missing');
  checkMethodHeader(headers, message.method);
  switch (message.method) {
    case 'tools/call':
    case 'prompts/get':
      checkNameHeader(headers, message, message.nameStart, message.nameEnd);
      break;
    case 'resources/read':
      checkNameHeader(headers, message, message.uriStart, message.uriEnd);
      break;
    case 'tasks/get':
    case 'tasks/update':
    case 'tasks/cancel':
      checkNameHeader(headers, message, message.taskIdStart, message.taskIdEnd);
      break;
    default:
  }
  return abilities;
}
