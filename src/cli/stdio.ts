/** `toolgate stdio`. */
import { followConfig, followSecrets, openStdioDoor } from '../internal.ts';
import type { Options } from './commands.ts';
import { loadOptions, startGateway } from './session.ts';
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

export function untilSignal(): Promise<void> {
  return new Promise((resolve) => {
    const stop = () => {
      resolve();
      // Whoever asks twice does not want to wait.
      process.once('SIGINT', () => process.exit(130));
      process.once('SIGTERM', () => process.exit(143));
    };
    process.once('SIGINT', stop);
    process.once('SIGTERM', stop);
  });
}
