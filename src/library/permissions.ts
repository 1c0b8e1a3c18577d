/** Which toolsets a client gets: from a header of its requests, or from what the program says of it. */
import type { EventSink } from '../base/events.ts';
import { wrongOptions } from './errors.ts';
import type { ClientRequest, PermissionConfig } from './types.ts';

const HEADER = 'mcp-toolset-permissions';
const REFRESH = 60_000;

export interface Permissions {
  /** Those that there are, of those that it names. */
  resolve(clientId: string, headers: ClientRequest['headers']): readonly string[] | Promise<readonly string[]>;
  /** Those of them that there are. */
  among(toolsets: readonly string[]): readonly string[];
  /** Whether the header decides, and so every request does. */
  readonly byHeader: boolean;
  /** Milliseconds that an answer holds. */
  readonly refreshMs: number;
  readonly headerName: string;
}

export function checkPermissions(given: PermissionConfig | undefined): PermissionConfig {
  if (typeof given !== 'object' || given === null)
    throw wrongOptions('"permissions" is missing: say { source: "headers" }, or { source: "config", … }.');
  const { source, headerName, staticMap, resolver, defaultPermissions, refreshMs } = given;
  if (source !== 'headers' && source !== 'config')
    throw wrongOptions('permissions.source must be "headers" or "config".');
  if (headerName !== undefined && !/^[\w!#$%&'*+.^`|~-]+$/.test(headerName))
    throw wrongOptions('permissions.headerName must be the name of a header.');
  if (source === 'config' && staticMap === undefined && resolver === undefined)
    throw wrongOptions('permissions needs a "staticMap" or a "resolver" where its source is "config".');
  if (resolver !== undefined && typeof resolver !== 'function')
    throw wrongOptions('permissions.resolver must be a function.');
  const lists = { ...staticMap, defaultPermissions: defaultPermissions ?? [] };
  for (const [client, list] of Object.entries(lists))
    if (!isList(list)) throw wrongOptions(`permissions of "${client}" must be a list of toolsets.`);
  if (refreshMs !== undefined && !(Number.isFinite(refreshMs) && refreshMs >= 0))
    throw wrongOptions('permissions.refreshMs must be a number of milliseconds.');
  return given;
}

export function createPermissions(config: PermissionConfig, keys: readonly string[], events: EventSink): Permissions {
  const { staticMap = {}, resolver, defaultPermissions = [], refreshMs = REFRESH } = config;
  const headerName = (config.headerName ?? HEADER).toLowerCase();
  const byHeader = config.source === 'headers';

  /** In the order of the catalog; names that mean nothing are nothing. */
  const known = (named: readonly string[]) => keys.filter((key) => named.includes(key));

  function configured(clientId: string): readonly string[] {
    return Object.hasOwn(staticMap, clientId) ? staticMap[clientId]! : defaultPermissions;
  }

  function failed(clientId: string, error: unknown): readonly string[] {
    events.emit('failure', { where: `permissions of the client ${JSON.stringify(clientId)}`, error });
    return [];
  }

  function read(clientId: string, given: unknown): readonly string[] {
    if (given === undefined || given === null) return known(configured(clientId));
    if (isList(given)) return known(given);
    return failed(clientId, new TypeError('The resolver gave no list of toolsets.'));
  }

  return {
    among: known,
    byHeader,
    refreshMs,
    headerName,
    resolve(clientId, headers) {
      if (byHeader) {
        const said = headers[headerName];
        const text = Array.isArray(said) ? said.join(',') : (said ?? '');
        return known(text.split(',').map((name) => name.trim()));
      }
      if (resolver === undefined) return known(configured(clientId));
      try {
        const given = resolver(clientId);
        if (!isThenable(given)) return read(clientId, given);
        return Promise.resolve(given).then(
          (list) => read(clientId, list),
          (error: unknown) => failed(clientId, error),
        );
      } catch (error) {
        return failed(clientId, error);
      }
    },
  };
}

/** Also promises of other libraries. */
function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof (value as PromiseLike<unknown> | null | undefined)?.then === 'function';
}

function isList(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((one) => typeof one === 'string');
}
