/** `toolgate stdio`. */
import { followConfig, followSecrets, openStdioDoor } from '../internal.ts';
import type { Options } from './commands.ts';
import { loadOptions, startGateway } from './session.ts';
import { untilSignal } from './signals.ts';
import { followCalls } from './telemetry.ts';

export async function stdio(options: Options): Promise<number> {
  const gateway = await startGateway(options, 'warn');
  const stop = untilSignal();
  const telemetry = await followCalls(gateway);
  const following = followConfig(gateway, loadOptions(options));
  const secrets = followSecrets(gateway);
  const door = openStdioDoor(gateway, process.stdin, process.stdout, options.agent);
  await Promise.race([door.ended, stop]);
  following.close();
  secrets.close();
  door.close();
  await gateway.close();
  await telemetry.close();
  // A client that holds our input open must not keep us alive.
  process.stdin.destroy();
  return 0;
}
