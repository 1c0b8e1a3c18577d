/**
 * Keeps Toolgate from starting itself without end. Every server gets a variable with the configurations of the gateways
 * that it runs inside of. A wrapper script that starts Toolgate again hands it on, and the inner one finds its own
 * configuration there. With another configuration Toolgate may well run inside of Toolgate.
 */
import { realpathSync } from 'node:fs';
import { GatewayError } from '../base/errors.ts';
import type { Config } from './config.ts';
import type { EnvVars } from './expand.ts';

export const INSIDE = 'TOOLGATE_INSIDE';

/** Against loops through configurations that are new each time. */
const MOST = 8;

/** The gateways around this process, the outermost first. */
function gatewaysAround(env: EnvVars): string[] {
  try {
    const chain: unknown = JSON.parse(env[INSIDE] ?? '[]');
    return Array.isArray(chain) ? chain.map(String) : [];
  } catch {
    return [];
  }
}

/** What tells one gateway from another: its file, or its data folder if it has none. */
function identityOf({ file, dataDir }: Pick<Config, 'file' | 'dataDir'>): string {
  const path = file ?? dataDir;
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}

/** The environment for the servers of a gateway. */
export function markInside(config: Pick<Config, 'file' | 'dataDir'>, env: EnvVars): EnvVars {
  return { ...env, [INSIDE]: JSON.stringify([...gatewaysAround(env), identityOf(config)]) };
}

/**
 * Throws if this gateway would be inside of itself. A command that ends by itself may be, once: a tool that runs
 * `toolgate call` starts nothing that calls it again.
 */
export function requireOutside(config: Pick<Config, 'file' | 'dataDir'>, env: EnvVars, endsByItself: boolean): void {
  const around = gatewaysAround(env);
  const own = identityOf(config);
  const depth = around.filter((one) => one === own).length;
  if (depth > (endsByItself ? 1 : 0))
    throw new GatewayError(
      'usage',
      `Toolgate with ${own} runs already, and one of its servers starts it again: that would never end. Take that server out of the configuration, or let it use another one with --config. ` +
        `(The variable ${INSIDE} says which gateways are around this one.)`,
    );
  if (around.length >= MOST)
    throw new GatewayError(
      'usage',
      `${around.length} gateways are started inside of each other (${INSIDE}), which looks like a loop. Take the server that starts Toolgate out of ${around.at(-1)}.`,
    );
}
