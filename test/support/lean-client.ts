/** Minimal requests, for hundreds of clients in one process: the HTTP client of Node, and messages as they arrive. */
import { Agent, type ClientRequest, type OutgoingHttpHeaders, request } from 'node:http';

export interface Message {
  readonly id?: number | string | null;
  readonly method?: string;
  readonly params?: Record<string, unknown> & { readonly _meta?: Record<string, unknown> };
  readonly result?: Record<string, unknown>;
  readonly error?: { readonly code: number; readonly message: string };
}

export interface Line {
  /** Sends a request. `heard` gets every message of the reply, `over` the status at its end, or 0 if the connection broke. */
  send(
    verb: 'GET' | 'POST' | 'DELETE',
    path: string,
    headers: OutgoingHttpHeaders,
    body: object | null,
    heard: (message: Message, eventId: string) => void,
    over: (status: number, headers: Record<string, unknown>) => void,
  ): ClientRequest;
  close(): void;
}

export function openLine(origin: string): Line {
  const agent = new Agent({ keepAlive: true });
  const { hostname, port } = new URL(origin);
  return {
    send(verb, path, headers, body, heard, over) {
      const text = body === null ? undefined : JSON.stringify(body);
      let isOver = false;
      const end = (status: number, received: Record<string, unknown> = {}) => {
        if (isOver) return;
        isOver = true;
        over(status, received);
      };
      const sent = request({ agent, hostname, port, method: verb, path, headers: { ...HEADERS[verb], ...headers } });
      sent.on('error', () => end(0));
      sent.on('response', (response) => {
        const isStream = response.headers['content-type'] === 'text/event-stream';
        let rest = '';
        response.setEncoding('utf8');
        response.on('data', (chunk: string) => {
          rest += chunk;
          if (!isStream) return;
          const events = rest.split('\n\n');
          rest = events.pop()!;
          for (const event of events) readEvent(event, heard);
        });
        response.on('end', () => {
          if (!isStream && rest.startsWith('{')) heard(JSON.parse(rest) as Message, '');
          end(response.statusCode!, response.headers);
        });
        response.on('close', () => end(0));
        response.on('error', () => end(0));
      });
      sent.end(text);
      return sent;
    },
    close: () => agent.destroy(),
  };
}

const HEADERS = {
  GET: { accept: 'text/event-stream' },
  POST: { accept: 'application/json, text/event-stream', 'content-type': 'application/json' },
  DELETE: {},
} as const;

function readEvent(event: string, heard: (message: Message, eventId: string) => void): void {
  let data = '';
  let id = '';
  let name = '';
  for (const line of event.split('\n')) {
    if (line.startsWith('data: ')) data = line.slice(6);
    else if (line.startsWith('id: ')) id = line.slice(4);
    else if (line.startsWith('event: ')) name = line.slice(7);
  }
  if (name === 'endpoint') heard({ method: 'endpoint', params: { path: data } }, id);
  else if (data !== '') heard(JSON.parse(data) as Message, id);
}
