/** The part of oidc-provider that the tests use. The package has no types. */
declare module 'oidc-provider' {
  import type { IncomingMessage, ServerResponse } from 'node:http';

  export interface TokenContext {
    readonly oidc: { readonly params: Readonly<Record<string, unknown>>; readonly client: object };
    body: unknown;
  }

  export const errors: { readonly OIDCProviderError: new (status: number, code: string) => Error };

  export default class Provider {
    constructor(issuer: string, configuration: object);
    callback(): (request: IncomingMessage, response: ServerResponse) => void;
    readonly issuer: string;
    readonly AccessToken: new (
      of: object,
    ) => { resourceServer: object; scope: string; readonly expiration: number; save(): Promise<string> };
    readonly ResourceServer: new (
      resource: string,
      settings: object,
    ) => object;
    registerGrantType(
      name: string,
      handler: (context: TokenContext) => Promise<void>,
      parameters: readonly string[],
    ): void;
    on(event: string, listener: (context: { oidc: { params: Record<string, unknown> } }) => void): void;
  }
}
