/** Secrets that tests plant, and the search for them in everything that leaves a gateway. */
import { readdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { atEnd } from './cleanup.ts';
import { descendants } from './processes.ts';

/** The places in a text that contain one of the values, in any encoding. */
export function findIn(text: string, values: readonly string[]): string[] {
  return values.flatMap((value) =>
    [
      value,
      JSON.stringify(value).slice(1, -1),
      JSON.stringify(JSON.stringify(value).slice(1, -1)).slice(1, -1),
      Buffer.from(value).toString('base64').replace(/=+$/, '').slice(0, -1),
      Buffer.from(`user:${value}`).toString('base64url').slice(8, -1),
      encodeURIComponent(value),
      // Truncated at either end, it still reveals most of the secret.
      value.slice(0, -4),
      value.slice(4),
    ].flatMap((form) => {
      const at = text.indexOf(form);
      return at < 0 ? [] : [`${value}: …${text.slice(Math.max(0, at - 80), at + 80)}…`];
    }),
  );
}

/** The name and the text of every file below a folder, except those of Python environments. */
export function filesIn(folder: string): [string, string][] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && !entry.parentPath.includes('venvs'))
    .map((entry) => [entry.name, readFileSync(join(entry.parentPath, entry.name), 'utf8')]);
}

/** The command lines of a process and of everything below it. */
export function commandLines(pid: number): string {
  return [pid, ...descendants(pid)]
    .map((one) => {
      try {
        return readFileSync(`/proc/${one}/cmdline`, 'utf8').replaceAll('\0', ' ');
      } catch {
        // It has ended.
        return '';
      }
    })
    .join('\n');
}

/** A server that answers 401 to every request and echoes it. Returns its port. */
export async function startEcho(): Promise<number> {
  const echo = createServer((request, response) => {
    response.writeHead(401, { 'content-type': 'text/plain' });
    response.end(`no: ${request.url} ${JSON.stringify(request.headers)}`);
  });
  await new Promise<void>((resolve) => echo.listen(0, '127.0.0.1', resolve));
  atEnd(() => {
    echo.closeAllConnections();
    echo.close();
  });
  return (echo.address() as AddressInfo).port;
}
