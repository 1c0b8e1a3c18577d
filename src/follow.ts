/** Keeps a gateway on its configuration file: every edit and every SIGHUP is read, checked whole, and only then applied. */
import { isDeepStrictEqual } from 'node:util';
import type { Config } from './config/config.ts';
import { type LoadOptions, loadConfig } from './config/load.ts';
import { watchConfig } from './config/watch.ts';
import { GatewayError, messageOf } from './errors.ts';
import type { Gateway } from './gateway.ts';

/** Milliseconds after the start: late enough not to slow it down. */
const SECOND_LOOK = 500;

export interface Following {
  close(): void;
}

export function followConfig(gateway: Gateway, options: LoadOptions): Following {
  let last = Promise.resolve();
  let closed = false;

  async function reload(onlyIfChanged = false): Promise<void> {
    if (closed) return;
    let next: Config;
    try {
      next = await loadConfig(options);
    } catch (error) {
      if (!(error instanceof GatewayError)) gateway.events.emit('failure', { where: 'configuration', error });
      gateway.events.emit('config', {
        ok: false,
        message: `kept the configuration in force, the new one is refused:\n${messageOf(error)}`,
      });
      return;
    }
    if (closed || (onlyIfChanged && isDeepStrictEqual(next, gateway.config))) return;
    const { started, replaced, stopped } = gateway.apply(next);
    const parts = [part('started', started), part('restarted', replaced), part('stopped', stopped), ...next.notices];
    gateway.events.emit('config', { ok: true, message: ['applied', ...parts.filter((one) => one !== '')].join('; ') });
  }

  // One after the other: the last edit is the one that stays.
  const queue = (onlyIfChanged = false) => {
    last = last.then(() => reload(onlyIfChanged));
  };
  const onSignal = () => queue();
  const { file } = gateway.config;
  const watcher = file === null ? null : watchConfig(file, onSignal);
  process.on('SIGHUP', onSignal);
  // An edit between reading the file and watching it would otherwise wait for the next one.
  const second = setTimeout(queue, SECOND_LOOK, true).unref();
  return {
    close() {
      closed = true;
      clearTimeout(second);
      watcher?.close();
      process.off('SIGHUP', onSignal);
    },
  };
}

function part(verb: string, servers: readonly string[]): string {
  return servers.length === 0 ? '' : `${verb} ${servers.join(', ')}`;
}
