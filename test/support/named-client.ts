/** Clients of SDK v1 in this process, under the name of a client that people use. */
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import type { ClientCapabilities } from '@modelcontextprotocol/sdk/types.js';
import { connectInMemory, type Gateway, type MemoryOptions } from '../../src/index.ts';
import { atEnd } from './cleanup.ts';
import { type Connection, overhear } from './connection.ts';

export interface NamedOptions extends MemoryOptions {
  readonly capabilities?: ClientCapabilities;
}

/** Connects a client that introduces itself with this name, and records what it receives. */
export async function connectNamed(gateway: Gateway, name: string, options: NamedOptions = {}): Promise<Connection> {
  const { capabilities = {}, ...memory } = options;
  const client = new Client({ name, version: '1.0.0' }, { capabilities });
  const transport = connectInMemory(gateway, memory) as Transport;
  const told = overhear(transport);
  await client.connect(transport);
  atEnd(() => client.close());
  return { client, ...told };
}

/** The same without the record. */
export async function connectAs(gateway: Gateway, name: string, options?: NamedOptions): Promise<Client> {
  return (await connectNamed(gateway, name, options)).client;
}
