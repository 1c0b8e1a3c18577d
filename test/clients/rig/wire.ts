/** What a client and the gateway say to each other, noted on the way, over HTTP or stdio. */
import { existsSync, readFileSync } from 'node:fs';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';

/** The fields of messages that are looked at. */
export interface Message {
  readonly id?: string | number;
  readonly method?: string;
  readonly params?: {
    readonly name?: string;
    readonly arguments?: { readonly name?: string };
    readonly clientInfo?: { readonly name: string };
    readonly _meta?: {
      readonly 'io.modelcontextprotocol/clientInfo'?: { readonly name: string };
      readonly 'io.modelcontextprotocol/protocolVersion'?: string;
    };
  };
  readonly result?: {
    readonly protocolVersion?: string;
    readonly instructions?: string;
    readonly tools?: readonly { readonly name: string; readonly description: string }[];
    readonly isError?: boolean;
  };
}

export interface Said {
  /** In milliseconds since the epoch. */
  readonly at: number;
  readonly by: 'client' | 'server';
  readonly message: Message;
}

export interface Wire {
  readonly origin: string;
  said(): Said[];
  close(): void;
}

/** A server that passes every request on to the gateway and notes the messages. */
export async function recordHttp(target: string): Promise<Wire> {
  const said: Said[] = [];
  const note = (by: Said['by'], text: string) => {
    try {
      const value = JSON.parse(text) as Message | Message[];
      for (const message of Array.isArray(value) ? value : [value]) said.push({ at: now(), by, message });
    } catch {
      // Not a message, such as the page of an error.
    }
  };
  const server = createServer((incoming, outgoing) => {
    const asked: Buffer[] = [];
    const url = new URL(incoming.url ?? '/', target);
    const onward = request(
      url,
      { method: incoming.method, headers: { ...incoming.headers, host: url.host } },
      (answer) => {
        outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
        outgoing.flushHeaders();
        const isStream = answer.headers['content-type']?.includes('event-stream') === true;
        let text = '';
        answer.on('data', (chunk: Buffer) => {
          text += chunk.toString();
          if (isStream) {
            const parts = text.split(/\r?\n\r?\n/);
            text = parts.pop() ?? '';
            for (const part of parts) note('server', dataOf(part));
          }
          outgoing.write(chunk);
        });
        answer.once('end', () => {
          if (!isStream) note('server', text);
          outgoing.end();
        });
        answer.once('error', () => outgoing.destroy());
      },
    );
    onward.once('error', () => outgoing.destroy());
    outgoing.once('close', () => onward.destroy());
    incoming.on('data', (chunk: Buffer) => {
      asked.push(chunk);
      onward.write(chunk);
    });
    incoming.once('end', () => {
      note('client', Buffer.concat(asked).toString());
      onward.end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    said: () => said,
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

/** What tee.mjs wrote. */
export function readTee(log: string): Said[] {
  if (!existsSync(log)) return [];
  return readFileSync(log, 'utf8')
    .trim()
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Said);
}

export function now(): number {
  return performance.timeOrigin + performance.now();
}

function dataOf(event: string): string {
  return event
    .split(/\r?\n/)
    .filter((line) => line.startsWith('data:'))
    .map((line) => line.slice(5).trim())
    .join('\n');
}
