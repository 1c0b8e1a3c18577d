/** The HTTP door in Express, or in whatever else has middleware of that kind. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { GatewayError } from '../../../base/errors.ts';
import type { HttpDoor } from '../door.ts';

/** What Express adds to a request: the address before routers took off what they are mounted at, and what that is. */
type ExpressRequest = IncomingMessage & { readonly originalUrl?: string; readonly baseUrl?: string };

/** As Express and Connect call it. */
export type ExpressMiddleware = (
  request: ExpressRequest,
  response: ServerResponse,
  next: (error?: unknown) => void,
) => void;

/**
 * A door for Express 4 and 5, and for Connect. Requests that are none of its own go on to the next.
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
            `The door is not moved by app.use: give createHttpDoor { basePath: "${baseUrl}" }.`,
          ),
        );
      return;
    }
    request.url = url;
    handle(request, response);
  };
}
