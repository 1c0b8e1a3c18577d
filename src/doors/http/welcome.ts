/**
 * What `/` says: what this is, and how a client connects to it. Anyone may read it, so it names no tools and no servers.
 * Browsers get a page, programs that want JSON get that, all others get plain text.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { sha256 } from '../../base/hash.ts';
import { inHtml } from '../../base/text.ts';
import { VERSION } from '../../base/version.ts';
import { sendJson, sendText } from './wire/reply.ts';

export interface WelcomeOptions {
  /** Where the door is mounted; empty for the root. */
  readonly base: string;
  /** The address of MCP, as the operator configured it; null if it is below the address of the request. */
  publicUrl(): string | null;
  /** Whether clients need a credential. */
  needsToken(): boolean;
  /** Whether there is a dashboard that one can get into. */
  hasDashboard(): boolean;
}

/** What a reader has to know. */
interface Connecting {
  readonly base: string;
  readonly url: string;
  readonly needsToken: boolean;
  readonly hasDashboard: boolean;
}

export function sendWelcome(
  options: WelcomeOptions,
  request: IncomingMessage,
  response: ServerResponse,
  headers: readonly string[],
): void {
  const { accept = '', host = 'localhost' } = request.headers;
  const { base } = options;
  // The guard has checked the host: it contains nothing that means something in HTML.
  const url = options.publicUrl() ?? `http://${host}${base}/mcp`;
  const connecting = { base, url, needsToken: options.needsToken(), hasDashboard: options.hasDashboard() };
  const all = [...headers, ...headersOf(connecting.hasDashboard)];
  if (accept.includes('text/html')) sendText(response, 200, 'text/html; charset=utf-8', page(connecting), all);
  else if (accept.includes('application/json')) sendJson(response, 200, summary(connecting), all);
  else sendText(response, 200, 'text/plain; charset=utf-8', text(connecting), all);
}

const GET_IN = 'toolgate dashboard';

const WHAT = 'One gateway for all the MCP tools an agent uses.';

function summary({ base, url, needsToken }: Connecting): object {
  return { name: 'toolgate', version: VERSION, mcp: url, needsToken, docs: `${base}/docs`, health: `${base}/health` };
}

function claudeLine({ url, needsToken }: Connecting): string {
  const header = needsToken ? ' --header "Authorization: Bearer $TOKEN"' : '';
  return `claude mcp add --transport http toolgate ${url}${header}`;
}

function entry({ url, needsToken }: Connecting): string {
  // Clients expand the variable.
  const headers = { Authorization: 'Bearer ${TOKEN}' };
  const server = { type: 'http', url, ...(needsToken && { headers }) };
  return JSON.stringify({ mcpServers: { toolgate: server } }, null, 2);
}

function text(connecting: Connecting): string {
  const { base, url, hasDashboard } = connecting;
  return `Toolgate ${VERSION}
${WHAT}

MCP is at ${url}

Connect Claude Code:
  ${claudeLine(connecting)}

or any client, in its .mcp.json:
${entry(connecting).replace(/^/gm, '  ')}

${hasDashboard ? `The dashboard, for its operator: ${GET_IN}\n` : ''}Tools in a browser: ${base}/docs
Health: ${base}/health
`;
}

const STYLE = `
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { max-width: 42rem; margin: 3rem auto; padding: 0 1rem; }
small { font-weight: normal; opacity: 0.6; }
pre { padding: 0.75rem 1rem; border-radius: 6px; background: #8882; overflow-x: auto; }
`;

/** Who has no terminal there, such as somebody with a phone, enters a key. It is sent in the body, never in a URL. */
function entrance(base: string): string {
  return `<h2>Dashboard</h2>
<p>On the machine of the gateway run <code>${GET_IN}</code>: it prints a link that lets this browser in. Or enter the operator key, or an admin token:</p>
<form method="post" action="${base}/admin/session">
<label>Key <input type="password" name="key" autocomplete="off" required></label>
<button>Open the dashboard</button>
</form>
`;
}

function page(connecting: Connecting): string {
  const { base, url, hasDashboard } = connecting;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Toolgate</title>
<style>${STYLE}</style>
</head>
<body>
<h1>Toolgate <small>${VERSION}</small></h1>
<p>${WHAT} MCP is at <code>${inHtml(url)}</code>.</p>
${hasDashboard ? entrance(base) : ''}<h2>Connect a client</h2>
<p>Claude Code:</p>
<pre>${inHtml(claudeLine(connecting))}</pre>
<p>Any client, in its <code>.mcp.json</code>:</p>
<pre>${inHtml(entry(connecting))}</pre>
<p><a href="${base}/docs">The tools, to read and to try</a> · <a href="${base}/health">Health</a></p>
</body>
</html>
`;
}

function headersOf(hasForm: boolean): readonly string[] {
  const policy = [
    "default-src 'none'",
    `style-src 'sha256-${sha256(STYLE, 'base64')}'`,
    "base-uri 'none'",
    `form-action ${hasForm ? "'self'" : "'none'"}`,
    "frame-ancestors 'none'",
  ];
  return [
    ...['content-security-policy', policy.join('; '), 'x-content-type-options', 'nosniff'],
    // With a session the same address has another page.
    ...['referrer-policy', 'no-referrer', 'cache-control', 'no-cache', 'vary', 'accept, cookie'],
  ];
}
