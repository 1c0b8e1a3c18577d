/** Errors that end an HTTP exchange, written in the form that the route's clients expect. */
import { toGatewayError } from '../../base/errors.ts';
import type { HttpConfig } from '../../config/http.ts';
import type { Gateway } from '../../gateway/gateway.ts';
import { modernErrorObject } from '../../protocol/bridge.ts';
import { errorObject, errorReply } from '../../protocol/rpc.ts';
import { AccessRefused } from './auth/challenge.ts';
import { isModernHeader } from './mcp/stateless.ts';
import { pathOf } from './path.ts';
import { ownFailure, sendFailure } from './rest/failure.ts';
import { requestId, withOwnId } from './rest/request-id.ts';
import type { ErrorStyle, Router } from './router.ts';
import { type Fail, sendReply } from './wire/reply.ts';

/** Up to this length the rest of a refused body is read, so that the connection can be reused. */
const MOST_DISCARDED = 64 * 1024 * 1024;

/** `router` is a function, because the router is built from handlers that need `Fail`. */
export function createFail(gateway: Gateway, router: () => Router): Fail {
  const { events } = gateway;
  return (response, error, admitted) => {
    const { req: request } = response;
    const known = toGatewayError(error);
    if (known.code === 'internal') events.emit('failure', { where: 'http', error });
    events.emit('sent_away', { code: known.code });
    if (known.rule !== null)
      events.emit('forbidden', { rule: known.rule, remote: request.socket.remoteAddress ?? 'unknown' });
    const headers = [...admitted];
    if (known instanceof AccessRefused) headers.push('www-authenticate', known.challenge);
    else if (known.code === 'unauthorized') headers.push('www-authenticate', 'Bearer realm="toolgate"');
    const path = pathOf(request.url ?? '/');
    const isModern = isModernHeader(request.headers);
    if (known.code === 'store_unavailable') headers.push('retry-after', String(known.details.retryAfter ?? 1));
    if (known.code === 'method_not_allowed') headers.push('allow', router().methodsAt(path, isModern).join(', '));
    // Otherwise the rest of the body is read: a client that is still sending would not see the answer if the connection
    // were closed.
    if (!request.complete && !(Number(request.headers['content-length']) <= MOST_DISCARDED))
      headers.push('connection', 'close');
    const style = styleAt(router(), path, request.method ?? '', gateway.config.http);
    if (style !== 'rpc') {
      sendFailure(response, ownFailure(known), withOwnId(headers, requestId(request.headers)), style === 'mcpo');
      return;
    }
    const reply = isModern ? errorReply(null, modernErrorObject(known)) : errorReply('null', errorObject(known));
    sendReply(response, known.httpStatus, reply, headers);
  };
}

function styleAt({ find, fallback }: Router, path: string, method: string, config: HttpConfig): ErrorStyle {
  const route = find(path, method);
  return route.isEnabled?.(config) === false ? fallback.errors : route.errors;
}
