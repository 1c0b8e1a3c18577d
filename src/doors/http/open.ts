/** The way to the HTTP door: loaded when it is opened, because a gateway on stdio should start without it. */
import type { Gateway } from '../../gateway-types.ts';
import type { HttpDoor, HttpDoorOptions } from './server.ts';

export async function openHttpDoor(gateway: Gateway, options: HttpDoorOptions): Promise<HttpDoor> {
  const door = await import('./server.ts');
  return door.openHttpDoor(gateway, options);
}
