/** The JSON that comes with a request to one of the program's own endpoints. */
import type { IncomingMessage } from 'node:http';
import { GatewayError } from '../base/errors.ts';

/** Undefined where there is none; a SyntaxError where it is not JSON. Rejects where it is too long. */
export async function readJson(request: IncomingMessage, limit: number): Promise<unknown> {
  if (request.method === 'GET' || request.method === 'HEAD') return undefined;
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > limit) throw new GatewayError('too_large', `The body has more than ${limit} bytes.`);
    chunks.push(chunk);
  }
  if (size === 0) return undefined;
  try {
    return JSON.parse(Buffer.concat(chunks).toString());
  } catch {
    return new SyntaxError('The body is not JSON.');
  }
}
