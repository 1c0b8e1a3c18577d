/** The pages of `/login`. No script, nothing from elsewhere, and every text is escaped. */
import { sha256 } from '../../../base/hash.ts';
import { inHtml } from '../../../base/text.ts';
import type { OwnLogin } from '../../../sources/server-login.ts';

const STYLE = `
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { max-width: 42rem; margin: 3rem auto; padding: 0 1rem; }
table { width: 100%; border-collapse: collapse; }
td { padding: 0.6rem 0.5rem 0.6rem 0; border-bottom: 1px solid #8884; vertical-align: top; }
td:last-child { text-align: right; white-space: nowrap; padding-right: 0; }
form { display: inline; }
button { font: inherit; padding: 0.25rem 0.8rem; cursor: pointer; }
small { opacity: 0.75; }
pre { padding: 0.75rem 1rem; border-radius: 6px; background: #8882; overflow-x: auto; }
.note { padding: 0.6rem 1rem; border-left: 4px solid #146c2e; background: #8882; }
.failure { border-left-color: #b3261e; }
`;

const POLICY = [
  "default-src 'none'",
  `style-src 'sha256-${sha256(STYLE, 'base64')}'`,
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
];

/** With `no-referrer`, browsers would not say which page a form is from. */
export const PAGE_HEADERS: readonly string[] = [
  ...['content-security-policy', POLICY.join('; '), 'x-content-type-options', 'nosniff'],
  ...['referrer-policy', 'same-origin', 'cache-control', 'no-store', 'cross-origin-opener-policy', 'same-origin'],
];

function page(title: string, body: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${inHtml(title)}</title>
<style>${STYLE}</style>
</head>
<body>
<h1>${inHtml(title)}</h1>
${body}
</body>
</html>
`;
}

function form(action: string, button: string, fields: Readonly<Record<string, string>>): string {
  const inputs = Object.entries(fields).map(
    ([name, value]) => `<input type="hidden" name="${name}" value="${inHtml(value)}">`,
  );
  return `<form method="post" action="${inHtml(action)}">${inputs.join('')}<button>${inHtml(button)}</button></form>`;
}

/** The link was opened. A program that looks at links must not use it up, so a person has to confirm. */
export function invitationPage(path: string, agent: string, ticket: string): string {
  return page(
    'Log in to your servers',
    `<p>What you log in to here is used for the calls of the agent <b>${inHtml(agent)}</b>, through this gateway.</p>
<p>Go on only if you asked for this link yourself. If somebody sent it to you, they would act in your name.</p>
${form(path, 'Continue', { ticket })}`,
  );
}

/** One server on the page. */
export interface LoginLine {
  readonly server: string;
  readonly description: string;
  /** Who is logged in; null if nobody is. */
  readonly login: OwnLogin | null;
  readonly use: LoginUse;
}

/** What a login is for: the calls of this person; those of all callers; or the list of items, where each person has a login. */
export type LoginUse = 'own' | 'all' | 'list';

const ABOUT_USE: Readonly<Record<LoginUse, string>> = {
  own: '',
  all: 'For everybody who uses this gateway.',
  list: 'For the list of tools, which everybody shares. Calls are made with the login of each person.',
};

export function listPage(
  path: string,
  agent: string,
  rows: readonly LoginLine[],
  proof: string,
  note: { readonly text: string; readonly isFailure: boolean } | null,
): string {
  const said =
    note === null ? '' : `<p class="note${note.isFailure ? ' failure' : ''}" role="status">${inHtml(note.text)}</p>\n`;
  const lines = rows.map((row) => {
    const { server, description, login, use } = row;
    const about = [description, ABOUT_USE[use]].filter((text) => text !== '');
    const more = about.map((text) => `<br><small>${inHtml(text)}</small>`).join('');
    const hasOwn = login?.isOwn === true;
    const buttons = [
      form(path, login === null ? 'Log in' : 'Log in again', { act: 'login', server, use, proof }),
      ...(hasOwn ? [form(path, 'Log out', { act: 'logout', server, use, proof })] : []),
    ];
    return `<tr><td><b>${inHtml(server)}</b>${more}</td><td>${inHtml(stateText(row))}</td><td>${buttons.join(' ')}</td></tr>`;
  });
  const list =
    lines.length === 0
      ? '<p>No server wants a login of yours.</p>'
      : `<table><tbody>\n${lines.join('\n')}\n</tbody></table>`;
  return page(
    'Your logins',
    `${said}<p>For the calls of the agent <b>${inHtml(agent)}</b>.</p>
${list}
<p>${form(path, 'Close this page for good', { act: 'leave', proof })}</p>`,
  );
}

function stateText({ login }: LoginLine): string {
  if (login === null) return 'not logged in';
  const { who, expires, renews, isOwn, wanted } = login;
  const as = who === undefined ? '' : ` as ${who}`;
  const until = renews
    ? ', renewed by itself'
    : expires === null
      ? ''
      : `, until ${expires.slice(0, 16).replace('T', ' ')} UTC`;
  const whose = isOwn ? '' : ' (the login of the agent, not yours)';
  const more = wanted.length === 0 ? '' : `. A call needs more rights: ${wanted.join(' ')}`;
  return `logged in${as}${until}${whose}${more}`;
}

/** Says where the person is sent. A form may not redirect there: the policy of the page forbids it. */
export function leavingPage(path: string, server: string, address: string): string {
  const { host } = new URL(address);
  return page(
    `Log in to ${server}`,
    `<p>You log in at <b>${inHtml(host)}</b>, and return here after that.</p>
<p><a href="${inHtml(address)}" rel="noreferrer">Go to ${inHtml(host)}</a></p>
<p><a href="${inHtml(path)}">Back to your logins</a></p>`,
  );
}

/** There is no session: the link was used, or is too old, or there never was one. */
export function strangerPage(address: string): string {
  return page(
    'A link is needed',
    `<p>This page shows the logins of one person, so it opens only by a link that was made with their own credential. A link works once, for five minutes. To get one, with your token in <code>TOOLGATE_TOKEN</code>:</p>
<pre>toolgate login --url ${inHtml(address)}</pre>`,
  );
}

export function messagePage(path: string, title: string, text: string): string {
  return page(title, `<p>${inHtml(text)}</p>\n<p><a href="${inHtml(path)}">Your logins</a></p>`);
}
