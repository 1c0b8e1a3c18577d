/** Who the server says it is: as the program says, or as a server of the official SDK that it makes knows. */

import { isObject, type JsonObject } from '../base/objects.ts';
import { IDENTITY } from '../base/version.ts';
import type { ServerIdentity } from '../gateway/types.ts';

/** Who a server says it is. */
export interface ServerInfo extends ServerIdentity {
  /** What models are told about the use of its tools. */
  readonly instructions?: string;
}

export interface Introduced {
  readonly identity: ServerIdentity;
  readonly instructions: string;
}

/** `server` is whatever the program's `createServer` gave; the SDK keeps the name in fields of its own. */
export function readServerInfo(own: ServerInfo | undefined, server: unknown): Introduced {
  const inner = isObject(server) && isObject(server.server) ? server.server : server;
  const fields: JsonObject = isObject(inner) ? inner : {};
  const found = [fields._serverInfo, fields.serverInfo].find(isIdentity);
  const { instructions: _, ...said } = own ?? { ...IDENTITY };
  const identity = own !== undefined ? said : found === undefined ? IDENTITY : pick(found);
  const instructions = own?.instructions ?? fields._instructions;
  return { identity, instructions: typeof instructions === 'string' ? instructions.trim() : '' };
}

function isIdentity(value: unknown): value is ServerIdentity {
  return isObject(value) && typeof value.name === 'string' && typeof value.version === 'string';
}

function pick({ name, version, title }: ServerIdentity): ServerIdentity {
  return { name, version, ...(title !== undefined && { title }) };
}
