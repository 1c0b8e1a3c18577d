/** The page that shows the tools, and tries them: one file, which loads nothing from elsewhere. What it shows it asks for as its reader. */
import { createHash } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { SCRIPT } from './docs-script.ts';

const STYLE = `
:root { color-scheme: light dark; --line: #8884; --soft: #8882; --accent: #2563eb; --bad: #dc2626 }
* { box-sizing: border-box }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 0 auto; padding: 1.5rem 1rem 4rem }
h1 { font-size: 1.4rem; margin: 0 0 .25rem }
header p, .about { white-space: pre-wrap }
header p { max-height: 10rem; overflow: auto }
a { color: var(--accent) }
form, fieldset { border: 0; margin: 0; padding: 0 }
label { display: block; margin: .6rem 0 }
label b { font-family: ui-monospace, monospace; font-weight: 600 }
label small { display: block; opacity: .75 }
input, textarea, select { font: inherit; width: 100%; padding: .35rem .5rem; border: 1px solid var(--line); border-radius: .35rem; background: transparent; color: inherit }
textarea, pre, code { font-family: ui-monospace, monospace; font-size: 13px }
textarea { min-height: 3.5rem }
button { font: inherit; padding: .35rem .9rem; border: 0; border-radius: .35rem; background: var(--accent); color: #fff; cursor: pointer }
button:disabled { opacity: .5 }
details { border: 1px solid var(--line); border-radius: .5rem; margin: .5rem 0; padding: .5rem .8rem }
summary { cursor: pointer }
summary code { font-weight: 600 }
pre { background: var(--soft); border-radius: .35rem; padding: .6rem; overflow: auto; max-height: 30rem; white-space: pre-wrap; word-break: break-word }
.bad { color: var(--bad) }
[hidden] { display: none }
`;

const PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Toolgate</title>
<style>${STYLE}</style>
</head>
<body>
<header>
<h1 id="title">Toolgate</h1>
<p id="about"></p>
<p><a id="document" href="openapi.json">openapi.json</a></p>
</header>
<form id="sign" hidden>
<label><b>Token</b> <small>It stays in this page.</small><input id="token" type="password" autocomplete="off"></label>
<button>Show the tools</button>
</form>
<p id="state" role="status">Loading…</p>
<input id="filter" type="search" placeholder="Find a tool" aria-label="Find a tool" hidden>
<main id="tools"></main>
<script>${SCRIPT}</script>
</body>
</html>
`;

const BODY = Buffer.from(PAGE);

function hashOf(text: string): string {
  return `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
}

const HEADERS: readonly string[] = [
  ...['content-type', 'text/html; charset=utf-8', 'content-length', String(BODY.length)],
  'content-security-policy',
  `default-src 'none'; script-src ${hashOf(SCRIPT)}; style-src ${hashOf(STYLE)}; connect-src 'self'; img-src data:; ` +
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  ...['x-content-type-options', 'nosniff', 'referrer-policy', 'no-referrer', 'cache-control', 'no-cache'],
];

export function sendDocsPage(_request: IncomingMessage, response: ServerResponse, headers: readonly string[]): void {
  response.writeHead(200, [...headers, ...HEADERS]).end(BODY);
}
