/** The HTTP door as a plugin for Fastify. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { GatewayError } from '../../../base/errors.ts';
import type { HttpDoor } from '../door.ts';

/** A Fastify instance, as far as it is used. */
interface FastifyApp {
  addHook(
    name: 'onRequest',
    hook: (request: { readonly raw: IncomingMessage }, reply: FastifyReply, done: () => void) => void,
  ): unknown;
  addHook(name: 'preClose', hook: () => Promise<void>): unknown;
}

interface FastifyReply {
  readonly raw: ServerResponse;
  hijack(): unknown;
}

/** A plugin for `app.register`. */
export type FastifyPlugin = (
  app: FastifyApp,
  options: { readonly prefix?: string },
  done: (error?: Error) => void,
) => void;

/**
 * Serves a door in Fastify 5. It handles its requests before Fastify parses them. Closing the app closes the door.
 *
 * @example
 * const door = await createHttpDoor(gateway, { basePath: '/gateway' });
 * await app.register(fastifyPlugin(door));
 */
export function fastifyPlugin({ handle, serves, drain, close }: HttpDoor): FastifyPlugin {
  const plugin: FastifyPlugin = (app, { prefix = '' }, done) => {
    if (prefix !== '') {
      done(
        new GatewayError(
          'usage',
          `A prefix does not move the door to "${prefix}": pass { basePath: "${prefix}" } to createHttpDoor.`,
        ),
      );
      return;
    }
    app.addHook('onRequest', (request, reply, next) => {
      if (!serves(request.raw.url ?? '/')) {
        next();
        return;
      }
      reply.hijack();
      handle(request.raw, reply.raw);
    });
    // Open streams would keep the server from closing.
    app.addHook('preClose', async () => {
      await drain();
      await close();
    });
    done();
  };
  // As fastify-plugin does. Otherwise the hook would apply only to the plugin's own routes, and it has none.
  return Object.assign(plugin, {
    [Symbol.for('skip-override')]: true,
    [Symbol.for('fastify.display-name')]: 'toolgate',
  });
}
