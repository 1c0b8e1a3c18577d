/** The HTTP door as middleware for Hono: on Node with Node's request and response, elsewhere with those of fetch. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { HttpDoor } from '../door.ts';
import { fetchHandler } from './fetch.ts';

/** The context of Hono, as far as it is used. */
interface HonoContext {
  readonly env: unknown;
  readonly req: { readonly raw: Request; readonly url: string; text(): Promise<string> };
}

/** Middleware of Hono. */
export type HonoMiddleware = (context: HonoContext, next: () => Promise<void>) => Promise<Response | undefined>;

/** Added to the context by @hono/node-server. */
interface NodeBindings {
  readonly incoming?: IncomingMessage & { body?: unknown };
  readonly outgoing?: ServerResponse;
}

/**
 * Serves a door in Hono 4. Requests for other addresses go on to the next middleware.
 *
 * @example
 * const door = await createHttpDoor(gateway, { basePath: '/gateway' });
 * app.use(honoMiddleware(door));
 */
export function honoMiddleware(door: HttpDoor): HonoMiddleware {
  const answer = fetchHandler(door);
  return async function toolgate({ env, req }, next) {
    const { incoming, outgoing } = (env ?? {}) as NodeBindings;
    if (incoming === undefined || outgoing === undefined) {
      const { pathname, search } = new URL(req.url);
      if (door.serves(pathname + search)) return answer(req.raw);
    } else if (door.serves(incoming.url ?? '/')) {
      // The body has already been read; Hono keeps a copy.
      if (incoming.readableEnded && incoming.body === undefined) incoming.body = await req.text();
      door.handle(incoming, outgoing);
      return alreadySent();
    }
    await next();
    return undefined;
  };
}

/** Tells @hono/node-server that the response was sent. */
function alreadySent(): Response {
  const sent = new Response(null, { headers: { 'x-hono-already-sent': 'true' } });
  // @hono/node-server replaces Response with its own class, and reads headers only from responses whose body was
  // accessed.
  return sent.body === null ? sent : sent.clone();
}
