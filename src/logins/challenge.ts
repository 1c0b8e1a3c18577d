/** What a server says when it refuses a request because of who sent it: the header `WWW-Authenticate`. */

export interface LoginChallenge {
  readonly scheme: 'bearer' | 'dpop';
  /** Where the server describes itself. */
  readonly resourceMetadata: string | null;
  /** The scopes that the request needs. */
  readonly scopes: readonly string[];
  readonly error: string | null;
}

/** Null if the server does not ask for a token. */
export function readChallenge(header: string): LoginChallenge | null {
  // Values with commas and the next scheme look alike, so parameters are read one after another.
  const scheme = /(?:^|[\s,])(bearer|dpop)(?=[\s,]|$)/i.exec(header);
  if (scheme === null) return null;
  const parameters = new Map<string, string>();
  const rest = header.slice(scheme.index + scheme[0].length, scheme.index + 8_192);
  for (const [, name, quoted, bare] of rest.matchAll(/([A-Za-z][\w-]*)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))/g))
    if (!parameters.has(name!.toLowerCase()))
      parameters.set(name!.toLowerCase(), quoted?.replace(/\\(.)/g, '$1') ?? bare ?? '');
  return {
    scheme: scheme[1]!.toLowerCase() as LoginChallenge['scheme'],
    resourceMetadata: parameters.get('resource_metadata') ?? null,
    scopes: splitScopes(parameters.get('scope') ?? ''),
    error: parameters.get('error') ?? null,
  };
}

export function splitScopes(text: string): string[] {
  return [...new Set(text.split(/\s+/).filter((scope) => scope !== ''))];
}
