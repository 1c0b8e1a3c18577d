/** The address on this machine that the browser returns to after a login, and the page that says what happened. */
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { GatewayError } from '../base/errors.ts';
import { inHtml } from '../base/text.ts';

/** What the browser is told: a heading and a sentence. */
export interface CallbackPage {
  readonly title: string;
  readonly text: string;
  readonly isFailure: boolean;
}

export interface Callback {
  /** The address to return to. */
  readonly redirect: string;
  /** Takes the parameters of each return and answers with a page. Set before the browser is sent away. */
  handle: (parameters: URLSearchParams) => Promise<CallbackPage>;
  close(): Promise<void>;
}

const PATH = '/callback';

/** Listens on this port, or on any if it is taken and `isOptional`. */
export async function openCallback(port: number, isOptional: boolean): Promise<Callback> {
  const callback = {
    redirect: '',
    handle: async (): Promise<CallbackPage> => ({ title: 'Too early', text: 'No login was started.', isFailure: true }),
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeIdleConnections();
        setTimeout(() => server.closeAllConnections(), 500).unref();
      }),
  } as { -readonly [Key in keyof Callback]: Callback[Key] };
  const server = createServer((request, response) => {
    const url = URL.canParse(request.url ?? '', 'http://localhost') ? new URL(request.url!, 'http://localhost') : null;
    if (request.method !== 'GET' || url?.pathname !== PATH) {
      send(response, 404, {
        title: 'Nothing here',
        text: 'This address is only for the end of a login.',
        isFailure: true,
      });
      return;
    }
    callback.handle(url.searchParams).then(
      (page) => send(response, page.isFailure ? 400 : 200, page),
      () => send(response, 500, { title: 'Something went wrong', text: 'Look into the terminal.', isFailure: true }),
    );
  });
  const listen = (at: number) =>
    new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(at, '127.0.0.1', resolve);
    });
  await listen(port).catch((error: NodeJS.ErrnoException) => {
    if (isOptional && port !== 0) return listen(0);
    throw new GatewayError(
      'listen_refused',
      `The browser cannot return: port ${port} is taken (${error.code}). End the program that has it, or set oauth.callback_port to the port of another registered address.`,
    );
  });
  // A gateway that ends does not wait for a person who never came.
  server.unref();
  callback.redirect = `http://127.0.0.1:${(server.address() as AddressInfo).port}${PATH}`;
  return callback;
}

function send(response: ServerResponse, status: number, { title, text, isFailure }: CallbackPage): void {
  const colour = isFailure ? '#b3261e' : '#146c2e';
  response.writeHead(status, {
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
    'cache-control': 'no-store',
    'referrer-policy': 'no-referrer',
    connection: 'close',
  });
  response.end(
    `<!doctype html><html lang="en"><meta charset="utf-8"><title>${inHtml(title)}</title>` +
      '<style>body{font:16px/1.5 system-ui,sans-serif;max-width:34rem;margin:18vh auto;padding:0 1rem}</style>' +
      `<h1 style="color:${colour}">${inHtml(title)}</h1><p>${inHtml(text)}</p></html>\n`,
  );
}
