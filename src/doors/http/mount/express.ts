/** The HTTP door as middleware for Express and Connect. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { GatewayError } from '../../../base/errors.ts';
import type { HttpDoor } from '../door.ts';

/** Express adds the full URL to a request, and the part of it that routers have stripped. */
type ExpressRequest = IncomingMessage & { readonly originalUrl?: string; readonly baseUrl?: string };

/** Middleware of Express and Connect. */
export type ExpressMiddleware = (
  request: ExpressRequest,
  response: ServerResponse,
  next: (error?: unknown) => void,
) => void;

/**
 * Serves a door in Express 4 and 5, and in Connect. Requests for other addresses go on to the next middleware.
 *
 * @example
 * const door = await createHttpDoor(gateway, { basePath: '/gateway' });
 * app.use(expressMiddleware(door));
 */
export function expressMiddleware({ handle, serves, basePath }: HttpDoor): ExpressMiddleware {
  return function toolgate(request, response, next) {
    const url = request.originalUrl ?? request.url ?? '/';
    if (!serves(url)) {
      const { baseUrl = '' } = request;
      if (`${basePath}/`.startsWith(`${baseUrl}/`)) next();
      else
        next(
          new GatewayError(
            'usage',
            `app.use does not move the door to "${baseUrl}": pass { basePath: "${baseUrl}" } to createHttpDoor.`,
          ),
        );
      return;
    }
    request.url = url;
    handle(request, response);
  };
}
