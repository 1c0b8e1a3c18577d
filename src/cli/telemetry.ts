/** OpenTelemetry for the commands that serve. */
import { Console } from 'node:console';
import { type Gateway, messageOf, openTelemetry } from '../internal.ts';

export interface Following {
  /** Sends what is left; called when everything else is closed. */
  close(): Promise<void>;
}

const NOTHING: Following = { async close() {} };

/** Traces and figures for whoever its variables name. Without it the gateway serves all the same. */
export async function followCalls(gateway: Gateway): Promise<Following> {
  // Exporters that print do so by the console, and standard output belongs to the protocol.
  Object.assign(console, new Console({ stdout: process.stderr, stderr: process.stderr }));
  try {
    const telemetry = await openTelemetry(gateway);
    if (telemetry === null) return NOTHING;
    return {
      async close() {
        // What still tries to send would keep us here for as long as it does.
        if (!(await telemetry.close())) process.exit();
      },
    };
  } catch (error) {
    gateway.events.emit('note', { source: 'telemetry', message: messageOf(error) });
    return NOTHING;
  }
}
