/**
 * The page that lists the tools and calls them: one file that loads nothing from elsewhere. The build assembles it from
 * the files in `page/`. It contains no tools itself: it requests them with its reader's token.
 */
import { readFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { sha256 } from '../../../base/hash.ts';
import { ownFile } from '../../../base/own-files.ts';
import { sendText } from '../wire/reply.ts';

/** The build inserts the page here, so that programs that bundle the package include it. */
declare const DOCS_PAGE: string | undefined;

interface DocsPage {
  readonly text: string;
  readonly headers: readonly string[];
}

let known: DocsPage | null = null;

export function sendDocsPage(_: IncomingMessage, response: ServerResponse, headers: readonly string[]): void {
  known ??= readPage();
  sendText(response, 200, 'text/html; charset=utf-8', known.text, [...headers, ...known.headers]);
}

function readPage(): DocsPage {
  // Undefined if the gateway runs from source.
  const text = typeof DOCS_PAGE === 'string' ? DOCS_PAGE : readFileSync(ownFile('dist/docs.html'), 'utf8');
  const policy = [
    "default-src 'none'",
    `script-src ${hashOf('script', text)}`,
    `style-src ${hashOf('style', text)}`,
    "connect-src 'self'",
    'img-src data:',
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ];
  return {
    text,
    headers: [
      ...['content-security-policy', policy.join('; ')],
      ...['x-content-type-options', 'nosniff', 'referrer-policy', 'no-referrer', 'cache-control', 'no-cache'],
    ],
  };
}

/** The hash of the page's own script or style. The browser allows no other. */
function hashOf(element: 'script' | 'style', page: string): string {
  const start = page.indexOf(`<${element}>`) + element.length + 2;
  const text = page.slice(start, page.indexOf(`</${element}>`, start));
  return `'sha256-${sha256(text, 'base64')}'`;
}
