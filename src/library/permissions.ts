/** Decides which toolsets a client gets. A header of its requests names them, or the program decides. */
import type { EventSink } from '../base/events.ts';
import { warn, wrongOptions } from './errors.ts';
import { unknownNames } from './exposure.ts';
import type { ClientRequest, PermissionConfig } from './types.ts';

const HEADER = 'mcp-toolset-permissions';
const REFRESH = 60_000;

export interface Permissions {
  /** The toolsets that the client may use. Unknown names are ignored. */
  resolve(clientId: string, headers: ClientRequest['headers']): readonly string[] | Promise<readonly string[]>;
  /** The given toolsets that exist, in the order of the catalog. */
  among(toolsets: readonly string[]): readonly string[];
  /** Whether a header decides. Then every request brings its own permissions. */
  readonly byHeader: boolean;
  /** For how many milliseconds an answer is used. */
  readonly refreshMs: number;
  readonly headerName: string;
}

/** `keys` are the toolsets that exist. */
export function checkPermissions(given: PermissionConfig | undefined, keys: readonly string[]): PermissionConfig {
  if (typeof given !== 'object' || given === null)
    throw wrongOptions('"permissions" is missing: use { source: "headers" } or { source: "config", … }.');
  const { source, headerName, staticMap, resolver, defaultPermissions, refreshMs } = given;
  if (source !== 'headers' && source !== 'config')
    throw wrongOptions('permissions.source must be "headers" or "config".');
  if (headerName !== undefined && !/^[\w!#$%&'*+.^`|~-]+$/.test(headerName))
    throw wrongOptions('permissions.headerName must be the name of a header.');
  // If a header decides, none of these would.
  if (source === 'headers')
    for (const [name, value] of Object.entries({ staticMap, resolver, defaultPermissions, refreshMs }))
      if (value !== undefined)
        throw wrongOptions(
          `permissions.${name} needs the source "config". With the source "headers", a header decides.`,
        );
  if (source === 'config' && headerName !== undefined)
    throw wrongOptions(
      'permissions.headerName needs the source "headers". With the source "config", no header decides.',
    );
  if (source === 'config' && staticMap === undefined && resolver === undefined)
    throw wrongOptions('permissions needs a "staticMap" or a "resolver" if its source is "config".');
  if (resolver !== undefined && typeof resolver !== 'function')
    throw wrongOptions('permissions.resolver must be a function.');
  const lists = { ...staticMap, defaultPermissions: defaultPermissions ?? [] };
  for (const [client, list] of Object.entries(lists))
    if (!isList(list)) throw wrongOptions(`permissions of "${client}" must be a list of toolsets.`);
  const unknown = unknownNames(Object.values(lists).flat(), keys);
  if (unknown !== '') warn(`permissions name ${unknown}`);
  if (refreshMs !== undefined && !(Number.isFinite(refreshMs) && refreshMs >= 0))
    throw wrongOptions('permissions.refreshMs must be a number of milliseconds.');
  return given;
}

export function createPermissions(config: PermissionConfig, keys: readonly string[], events: EventSink): Permissions {
  const { staticMap = {}, resolver, defaultPermissions = [], refreshMs = REFRESH } = config;
  const headerName = (config.headerName ?? HEADER).toLowerCase();
  const byHeader = config.source === 'headers';

  const known = (named: readonly string[]) => keys.filter((key) => named.includes(key));
  let reported = '';

  function configured(clientId: string): readonly string[] {
    return Object.hasOwn(staticMap, clientId) ? staticMap[clientId]! : defaultPermissions;
  }

  function failed(clientId: string, error: unknown): readonly string[] {
    events.emit('failure', { where: `permissions of the client ${JSON.stringify(clientId)}`, error });
    return [];
  }

  function read(clientId: string, given: unknown): readonly string[] {
    if (given === undefined || given === null) return known(configured(clientId));
    if (isList(given)) {
      const unknown = unknownNames(given, keys);
      // Once for each mistake: the resolver is asked again and again.
      if (unknown !== '' && unknown !== reported) {
        reported = unknown;
        events.emit('failure', { where: 'permissions.resolver', error: wrongOptions(`It names ${unknown}`) });
      }
      return known(given);
    }
    return failed(clientId, new TypeError('The resolver did not return a list of toolsets.'));
  }

  return {
    among: known,
    byHeader,
    refreshMs,
    headerName,
    resolve(clientId, headers) {
      if (byHeader) {
        const header = headers[headerName];
        const text = Array.isArray(header) ? header.join(',') : (header ?? '');
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

/** Recognizes promises of other libraries too. */
function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof (value as PromiseLike<unknown> | null | undefined)?.then === 'function';
}

function isList(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((one) => typeof one === 'string');
}
