/** The ways to the HTTP door: loaded when it is opened, because a gateway on stdio should start without it. */
import type { Gateway } from '../../gateway/types.ts';
import type { HttpDoor, HttpDoorOptions } from './door.ts';
import type { ListeningDoor, ListenOptions } from './server.ts';

/**
 * Serves a gateway over HTTP: `/mcp`, REST, probes and figures, as `toolgate serve` does. Rejects where it must not listen: on other addresses than loopback without a credential.
 *
 * @example
 * const http = await openHttpDoor(gateway, { host: '127.0.0.1', port: 8808 });
 * console.log(http.url);
 * await http.close();
 */
export async function openHttpDoor(gateway: Gateway, options: ListenOptions): Promise<ListeningDoor> {
  const door = await import('./server.ts');
  return door.openHttpDoor(gateway, options);
}

/**
 * The same without a port: for a server that you have.
 *
 * @example
 * const door = await createHttpDoor(gateway, { basePath: '/gateway' });
 * const server = createServer((request, response) => {
 *   if (door.serves(request.url!)) door.handle(request, response);
 *   else response.end('the rest of your site');
 * });
 */
export async function createHttpDoor(gateway: Gateway, options?: HttpDoorOptions): Promise<HttpDoor> {
  const door = await import('./server.ts');
  return door.createHttpDoor(gateway, options);
}
