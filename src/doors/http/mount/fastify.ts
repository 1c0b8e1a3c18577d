/** The HTTP door in Fastify. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { GatewayError } from '../../../base/errors.ts';
import type { HttpDoor } from '../door.ts';

/** What is needed of a Fastify instance. */
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

/** As `app.register` takes it. */
export type FastifyPlugin = (
  app: FastifyApp,
  options: { readonly prefix?: string },
  done: (error?: Error) => void,
) => void;

/**
 * A door for Fastify 5. It looks at requests before Fastify reads them, and takes its own; closing the app closes the door.
 *
 * @example
 * const door = await createHttpDoor(gateway, { basePath: '/gateway' });
 * await app.register(fastifyPlugin(door));
 */
export function fastifyPlugin({ handle, serves, drain, close }: HttpDoor): FastifyPlugin {
  const plugin: FastifyPlugin = (app, { prefix = '' }, done) => {
    if (prefix !== '') {
      done(
        new GatewayError('usage', `The door is not moved by a prefix: give createHttpDoor { basePath: "${prefix}" }.`),
      );
      return;
    }
    app.addHook('onRequest', (request, reply, goOn) => {
      if (!serves(request.raw.url ?? '/')) {
        goOn();
        return;
      }
      reply.hijack();
      handle(request.raw, reply.raw);
    });
    // Streams that are open would keep the server from closing.
    app.addHook('preClose', async () => {
      await drain();
      await close();
    });
    done();
  };
  // As fastify-plugin does it: a hook of a plugin's own scope would hear of its own routes only, and it has none.
  return Object.assign(plugin, {
    [Symbol.for('skip-override')]: true,
    [Symbol.for('fastify.display-name')]: 'toolgate',
  });
}
