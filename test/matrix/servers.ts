/** The servers of the matrix: one fixture for each era, with every feature. */
import { server, startListening } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';
import { isBuilt } from './not-yet.ts';
import type { Side } from './sides.ts';

/** Its namespace: its tool `echo` is `up_echo` for clients. */
export const NAMESPACE = 'up';
/** The namespace of a server that each session has for itself, because only such a server gets roots. It has one tool. */
export const OWN = 'own';
/** The most items on one page. */
export const PAGE = 40;

/** A configuration with these servers. Over HTTP they are started here; on stdio each gateway starts its own. */
export async function configFor(side: Side): Promise<string> {
  // All gateways but the first know the servers already, as after a restart. Otherwise a slow machine takes too long.
  const lines = ['controls = []', 'start_wait = "60s"', `data_dir = ${JSON.stringify(tempFolder())}`];
  if (isBuilt('Pages: for a client')) lines.push('[limits]', `page = ${PAGE}`);
  // How long messages of a server may still belong to a cancelled call.
  lines.push('[[servers]]', `namespace = "${NAMESPACE}"`, 'timeout = "1s"', await placeOf(side));
  if (isBuilt('Roots'))
    lines.push('[[servers]]', `namespace = "${OWN}"`, 'share = "session"', await placeOf(side, '--only', 'ask_roots'));
  return `${lines.join('\n')}\n`;
}

async function placeOf({ era, transport }: Side, ...args: string[]): Promise<string> {
  const name = `whole-${era}`;
  if (transport === 'stdio') return `command = ${JSON.stringify(server(name, ...args))}\ncwd = "/"`;
  const { origin } = await startListening(name, '--transport', transport, ...args);
  return transport === 'sse' ? `url = "${origin}/sse"\ntransport = "sse"` : `url = "${origin}/mcp"`;
}
