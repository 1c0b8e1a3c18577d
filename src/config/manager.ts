/** The section `manager`: the process with which models build and repair folders of tools. */
import * as z from 'zod';
import type { ResolveContext } from './context.ts';
import { count, flag, type Section, section, text } from './fields.ts';

export interface ManagerConfig {
  /** Null: if there are folders of tools. */
  readonly enabled: boolean | null;
  readonly port: number;
  /** The gateway that it tells of changes; null for the one that started it, or the one of this configuration. */
  readonly coreUrl: string | null;
  /** A file with the authorities that the certificate of the gateway is checked with; null for those of the system. */
  readonly coreCa: string | null;
  readonly publicUrl: string | null;
}

const MAX_PORT = 65_535;
const DEFAULT_PORT = 8809;

const managerShape = {
  enabled: flag()
    .optional()
    .describe('Whether `toolgate serve` starts the manager. Default: if there are folders of tools.'),
  port: count(0, MAX_PORT)
    .optional()
    .describe(
      `The port of the manager; 0 takes any free one. The environment variable MANAGER_PORT overrides this. Default: ${DEFAULT_PORT}.`,
    ),
  core_url: text()
    .optional()
    .describe(
      'For `toolgate manager`: the address of the gateway that it tells of changes. The environment variable CORE_URL ' +
        'overrides this. Default: that of this configuration.',
    ),
  core_ca: text()
    .optional()
    .describe(
      'A PEM file with the authorities of the certificate of that gateway, relative to the folder of this file. The ' +
        'environment variable CORE_CA overrides this. Default: those of the system.',
    ),
  public_url: text().optional().describe("The URL of the manager's `/mcp` as clients know it; JWTs are issued for it."),
};

const managerSection = section(managerShape);

export const managerSchema = z.union([flag(), managerSection], { error: 'expected true, false or a map' });

type WrittenManager = boolean | Section<typeof managerShape>;

export function resolveManager(written: WrittenManager | null, context: ResolveContext): ManagerConfig {
  const given = typeof written === 'object' ? written : null;
  const address = (key: string, url: string | null | undefined): string | null => {
    if (url == null) return null;
    const expanded = context.text(['manager', key], url);
    if (!/^https?:\/\//i.test(expanded) || !URL.canParse(expanded))
      context.add(['manager', key], 'is not an address such as "http://127.0.0.1:8808"');
    return expanded.replace(/\/+$/, '');
  };
  const readUrl = (url: string) => (/^https?:\/\//i.test(url) && URL.canParse(url) ? url.replace(/\/+$/, '') : null);
  const readPort = (port: string) => (/^\d{1,5}$/.test(port) && Number(port) <= MAX_PORT ? Number(port) : null);
  return {
    enabled: typeof written === 'boolean' ? written : (given?.enabled ?? (given === null ? null : true)),
    port: context.variable('MANAGER_PORT', `a port from 0 to ${MAX_PORT}`, readPort) ?? given?.port ?? DEFAULT_PORT,
    coreUrl:
      context.variable('CORE_URL', 'an address such as http://127.0.0.1:8808', readUrl) ??
      address('core_url', given?.coreUrl),
    coreCa:
      context.variable('CORE_CA', 'a path', (path) => context.path(['manager', 'core_ca'], path)) ??
      (given?.coreCa == null ? null : context.path(['manager', 'core_ca'], given.coreCa)),
    publicUrl: address('public_url', given?.publicUrl),
  };
}
