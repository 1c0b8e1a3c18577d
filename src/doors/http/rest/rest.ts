/**
 * Tools over plain HTTP: calls, and information about tools. Clients have no session, and see everything that policy
 * allows.
 */
import { BoundedMap } from '../../../base/bounded-map.ts';
import { type Caller, FULL_SCOPE, type Scope } from '../../../calls/caller.ts';
import type { Identity } from '../../../calls/identity.ts';
import type { Gateway } from '../../../gateway/gateway.ts';
import { nameInCall, toolCallMessage } from '../../../protocol/tool-call.ts';
import { withHeaderTrace } from '../../../protocol/trace.ts';
import { decodePart, pathOf } from '../path.ts';
import type { AgentHandler } from '../router.ts';
import { requireNamespace } from '../scope.ts';
import { createSessionlessClients, type SessionlessClient } from '../sessionless.ts';
import type { Backpressure } from '../wire/backpressure.ts';
import { createBodyReader, Post } from '../wire/body.ts';
import { cancelOnClose } from '../wire/cancel-on-close.ts';
import { requireJson, requireJsonReader } from '../wire/content-types.ts';
import type { Fail } from '../wire/reply.ts';
import { createReadHandlers, type ReadHandlers } from './reads.ts';
import { requestId, withOwnId } from './request-id.ts';
import { RestCall } from './rest-call.ts';

export interface RestHandlers extends ReadHandlers {
  /** `POST /tools/{name}` */
  readonly call: AgentHandler;
  /** The same for the addresses of mcpo. */
  readonly mcpoCall: AgentHandler;
}

export interface RestApi {
  readonly handlers: RestHandlers;
  /** The number of calls whose clients still wait for an answer. */
  readonly awaited: number;
  /** Ends the calls whose credentials were revoked. */
  endRevoked(): void;
  close(): void;
}

export interface RestOptions {
  readonly backpressure: Backpressure;
  readonly fail: Fail;
  /** The server address in OpenAPI documents; empty for the address that a document is read from. */
  base(): string;
  /** Whether calls need a token. */
  needsToken(): boolean;
}

/** Over REST there is no selection to change, so everything is active and Toolgate's own tools are left out. */
export const REST_SCOPE: Scope = Object.freeze({ ...FULL_SCOPE, controls: false, selection: 'all' });

class RestClient implements SessionlessClient {
  readonly caller: Caller;
  readonly running: RestCall[] = [];

  constructor(gateway: Gateway, identity: Identity, scope: Scope) {
    this.caller = gateway.join({ identity, scope, door: 'rest' });
  }

  get isIdle(): boolean {
    return this.running.length === 0;
  }

  close(): void {
    for (const call of [...this.running]) call.cancel('the client is gone');
    this.caller.leave();
  }
}

const MOST_NAMES = 1_000;
const LONGEST_PATH = 200;

export function createRestApi(gateway: Gateway, { backpressure, fail, base, needsToken }: RestOptions): RestApi {
  const clients = createSessionlessClients((identity, scope) => new RestClient(gateway, identity, scope));
  const readBody = createBodyReader(() => gateway.config.limits.body, call, fail);
  const callerOf = (identity: Identity, scope: Scope) => clients.of(identity, scope).caller;

  /** Tool names as calls use them, cached by path: clients use the same few paths again and again. */
  const names = new BoundedMap<string, string>(MOST_NAMES);

  function nameAt(path: string): string {
    const known = names.get(path);
    if (known !== undefined) return known;
    const name = nameInCall(decodePart(path.slice(path.lastIndexOf('/') + 1), 'tool'));
    if (path.length <= LONGEST_PATH) names.set(path, name);
    return name;
  }

  function call({ request, response, headers, identity, scope, isMcpo }: Post, body: Buffer): void {
    // A content type was checked before the body was read.
    if (body.length > 0 && request.headers['content-type'] === undefined) requireJson(request.headers);
    const id = requestId(request.headers);
    const plain = toolCallMessage(id, nameAt(pathOf(request.url ?? '')), body, gateway.config.limits.depth);
    const message = request.headers.traceparent === undefined ? plain : withHeaderTrace(plain, request.headers);
    const { caller, running } = clients.of(identity, scope);
    const all = withOwnId(headers, id);
    const started = new RestCall(response, all, id, backpressure, identity.credential, isMcpo, running);
    started.start(gateway.pipeline, caller, message);
    // A finished call has nothing to cancel.
    if (started.place >= 0) cancelOnClose(response, started);
  }

  function calling(isMcpo: boolean): AgentHandler {
    return (request, response, headers, identity, scope) => {
      requireJsonReader(request.headers);
      // A request without a body needs no content type.
      if (request.headers['content-type'] !== undefined) requireJson(request.headers);
      requireNamespace(gateway, scope);
      readBody(new Post(request, response, headers, identity, scope, isMcpo));
    };
  }

  return {
    handlers: {
      ...createReadHandlers(gateway, { callerOf, base, needsToken }),
      call: calling(false),
      mcpoCall: calling(true),
    },
    get awaited() {
      let sum = 0;
      for (const { running } of clients.all) sum += running.filter(({ response }) => !response.destroyed).length;
      return sum;
    },
    endRevoked() {
      for (const { running } of clients.all) for (const one of [...running]) one.endIfRevoked();
    },
    close() {
      for (const client of clients.all) client.close();
    },
  };
}
