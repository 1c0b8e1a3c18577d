/** The section `registry`: the MCP registry that servers are looked up in. */
import type * as z from 'zod';
import type { ResolveContext } from './context.ts';
import { duration, flag, section, text } from './fields.ts';

export interface RegistryConfig {
  /** Without a slash at its end. */
  readonly url: string;
  /** Milliseconds. */
  readonly timeout: number;
  /** Whether servers in private networks may be installed from it. */
  readonly allowPrivate: boolean;
}

export const registrySchema = section({
  url: text()
    .prefault('https://registry.modelcontextprotocol.io')
    .describe(
      'Address of a registry with the interface of the official one, without `/v0.1`. ' +
        'The environment variable MCP_REGISTRY_URL overrides this.',
    ),
  timeout: duration(1).prefault('20s').describe('How long one answer of the registry may take.'),
  allow_private: flag()
    .prefault(false)
    .describe('Whether servers at addresses in your own network may be installed from it. They may be plain http.'),
}) satisfies z.ZodType<RegistryConfig>;

export function resolveRegistry(written: RegistryConfig, context: ResolveContext): RegistryConfig {
  const { env, add } = context;
  const url = (env.MCP_REGISTRY_URL || context.text(['registry', 'url'], written.url)).replace(/\/+$/, '');
  const isWeb = URL.canParse(url) && /^https?:$/.test(new URL(url).protocol);
  if (!isWeb) add(['registry', 'url'], 'expected an address such as "https://registry.example.com"');
  return { ...written, url };
}
