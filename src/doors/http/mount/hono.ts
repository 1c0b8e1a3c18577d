/** The HTTP door in Hono: on Node with the request and the response that Node has, elsewhere with those of fetch. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { HttpDoor } from '../door.ts';
import { fetchHandler } from './fetch.ts';

/** What is needed of Hono's context. */
interface HonoContext {
  readonly env: unknown;
  readonly req: { readonly raw: Request; readonly url: string; text(): Promise<string> };
}

/** As Hono calls it. */
export type HonoMiddleware = (context: HonoContext, next: () => Promise<void>) => Promise<Response | undefined>;

/** What @hono/node-server gives. */
interface NodeBindings {
  readonly incoming?: IncomingMessage & { body?: unknown };
  readonly outgoing?: ServerResponse;
}

/**
 * A door for Hono 4. Requests that are none of its own go on to the next.
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
      // Somebody before us has read it; Hono keeps what it was.
      if (incoming.readableEnded && incoming.body === undefined) incoming.body = await req.text();
      door.handle(incoming, outgoing);
      return alreadySent();
    }
    await next();
    return undefined;
  };
}

/** By this @hono/node-server knows that it has nothing to send. */
function alreadySent(): Response {
  const sent = new Response(null, { headers: { 'x-hono-already-sent': 'true' } });
  // It puts a class of its own in the place of Response, and looks at the headers of those only that were looked into.
  return sent.body === null ? sent : sent.clone();
}
