/**
 * The document with which a gateway describes itself to authorization servers that accept one in place of a registration
 * (client id metadata document). Its address is the client id. The gateway serves it next to the address that browsers
 * return to after a login on its page, so each follows from the other.
 */
const CALLBACK = '/login/callback';
const DOCUMENT = '/login/client.json';

/** The address of the gateway's own document, by the address that the browser returns to; null if there is none. */
export function documentFor(redirect: string): string | null {
  if (!redirect.startsWith('https://') || !redirect.endsWith(CALLBACK)) return null;
  return `${redirect.slice(0, -CALLBACK.length)}${DOCUMENT}`;
}

/** Whether a browser that returns to `redirect` may have been sent with this document: one of a gateway names only its page. */
export function describes(document: string, redirect: string): boolean {
  return !document.endsWith(DOCUMENT) || document === documentFor(redirect);
}

/** The content. Null for a gateway whose address is not encrypted: servers accept no document from there. */
export function clientDocument(redirect: string): object | null {
  const address = documentFor(redirect);
  if (address === null) return null;
  return {
    client_id: address,
    client_name: 'Toolgate',
    client_uri: address.slice(0, -'/client.json'.length),
    redirect_uris: [redirect],
    application_type: 'web',
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    token_endpoint_auth_method: 'none',
  };
}
