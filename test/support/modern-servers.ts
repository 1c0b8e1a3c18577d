/** Helpers for tests with servers behind a gateway. */
import { existsSync, readFileSync } from 'node:fs';
import { server, startListening } from './server.ts';

interface Result {
  readonly content: readonly { readonly text: string }[];
  readonly isError?: boolean;
}

/** The text of a good result, from the client of either SDK. */
export function textOf(result: object): string {
  const { content, isError } = result as Result;
  if (isError === true) throw new Error(`the call failed: ${content[0]?.text}`);
  return content[0]?.text ?? '';
}

/** Toolgate's own error in a result. */
export function errorOf(result: object): { code: string; message: string } {
  const { content, isError } = result as Result;
  if (isError !== true) throw new Error(`the call went well: ${JSON.stringify(content)}`);
  return JSON.parse(content[0]!.text);
}

/** Starts test/fixtures/modern.mjs over HTTP. */
export async function startModernFixture(...args: (string | number)[]) {
  const started = await startListening('modern', ...(args.includes('--port') ? [] : ['--port', 0]), ...args);
  return { ...started, url: `${started.origin}/mcp` };
}

/** The command line of stdio-server.mjs in this folder. */
export function stdioServer(...args: (string | number)[]): string {
  return server('../servers/stdio-server', ...args);
}

/** What stdio-server.mjs has read with `--chunks FILE`, chunk by chunk. */
export function chunksOf(file: string): string[] {
  const lines = existsSync(file) ? readFileSync(file, 'utf8').split('\n').filter(Boolean) : [];
  return lines.map((line) => JSON.parse(line) as string);
}

/** The messages in it. */
export function messagesOf(file: string): { id?: number | string; method: string; params?: Record<string, unknown> }[] {
  const lines = chunksOf(file).join('').split('\n');
  return lines.filter(Boolean).map((line) => JSON.parse(line));
}
