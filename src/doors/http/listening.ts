/** Opening a port: whether it may be, and what is said where it cannot. */
import type { Server } from 'node:http';
import { GatewayError } from '../../base/errors.ts';
import { isLoopback } from '../../base/loopback.ts';
import type { HttpConfig } from '../../config/config.ts';

/** Why the door is not opened; null where it is. */
export function refusalToListen(
  host: string,
  { trustAgentHeader, jwt, publicUrl }: HttpConfig,
  hasCredentials: boolean,
): string | null {
  if (isLoopback(host)) return null;
  if (!hasCredentials && !trustAgentHeader)
    return `Toolgate does not listen on ${host} without a credential, because anyone there could use your tools. Set BEARER_TOKEN, or listen on 127.0.0.1. Other credentials are the tokens of toolgate agents add, [agents.NAME] and [http.jwt]; where the network itself is trusted, http.trust_agent_header = true.`;
  if (jwt !== null && publicUrl === null)
    return `Toolgate cannot take JWTs on ${host} without http.public_url, because tokens are made out to that address. Set it to the address that clients use, such as "https://tools.example.com/mcp".`;
  return null;
}

/** The same for a server that is not ours. There the door itself looks who comes from elsewhere. */
export function refusalToMount({ jwt, publicUrl }: HttpConfig): string | null {
  if (jwt === null || publicUrl !== null) return null;
  return 'Toolgate cannot take JWTs in the server of another program without http.public_url, because tokens are made out to that address. Set it to the address that clients use, such as "https://tools.example.com/gateway/mcp".';
}

export function listen(server: Server, port: number, host: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const why =
        error.code === 'EADDRINUSE'
          ? `port ${port} on ${host} is in use; choose another with --port`
          : error.code === 'EACCES'
            ? `port ${port} needs more rights; choose one above 1023 with --port`
            : error.message;
      reject(new GatewayError('listen_refused', `Toolgate cannot listen: ${why}.`));
    });
    server.listen(port, host, resolve);
  });
}
