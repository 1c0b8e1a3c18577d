/** Whether a window has the environment that a gateway was started with, as far as the gateway uses it. */
import { readFileSync } from 'node:fs';
import { matchesPattern } from '../../base/pattern.ts';
import type { Config } from '../../config/config.ts';
import type { EnvVars } from '../../config/expand.ts';
import { isOrdinary } from '../../sources/environment.ts';
import { type EnvHashes, hashEnv } from './hello.ts';

/** Read by Toolgate itself, or by Node and the programs that install packages. */
const OWN = /^(?:TOOLGATE_(?!SHARED$)\w+|DATA_DIR|SECRETS_\w+|BEARER_TOKEN|MANAGER_\w+|MCP_\w+|OTEL_\w+|NODE_\w+)$/;

/** Of a terminal or a login session. They differ between windows of one project and say nothing about it. */
const OF_SESSION =
  /^(?:TERM|SHELL|XDG_(?:SESSION_\w+|VTNR|SEAT\w*|ACTIVATION_TOKEN|CURRENT_DESKTOP|MENU_PREFIX|GREETER_\w+))$/;

/** Compares by hashes, because only those are sent. */
export function isSameEnvironment(config: Config, env: EnvVars, theirs: EnvHashes): boolean {
  const ours = hashEnv(env);
  const matters = usedBy(config);
  const names = new Set([...Object.keys(ours), ...Object.keys(theirs)]);
  return [...names].every((name) => ours[name] === theirs[name] || !matters(name));
}

/**
 * A variable that the configuration mentions in any way counts, also in an entry that is broken because the variable is not
 * set. The file is read again: it may mention more than the gateway was started with.
 */
function usedBy(config: Config): (name: string) => boolean {
  const { settings, servers } = config.written();
  const text = `${JSON.stringify([settings, [...servers]])} ${textOf(config.file)}`;
  const mentioned = new Set(text.match(/[A-Za-z_]\w*/g));
  const inherited = config.servers.flatMap(({ launch }) => (launch.kind === 'stdio' ? (launch.inherits ?? []) : []));
  return (name) => {
    if (mentioned.has(name) || OWN.test(name)) return true;
    if (OF_SESSION.test(name)) return false;
    return isOrdinary(name) || inherited.some((pattern) => matchesPattern(pattern, name));
  };
}

function textOf(file: string | null): string {
  try {
    return file === null ? '' : readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}
