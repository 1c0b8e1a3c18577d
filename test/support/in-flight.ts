/** Waits until a call has arrived, because a call that was sent may not have reached the gateway or the server yet. */
import { existsSync, readFileSync } from 'node:fs';
import { waitFor } from './processes.ts';

/** A gateway in its own process, with its token if it needs one, or one in this process. */
type Counting =
  | { readonly origin: string; readonly token?: string }
  | { readonly metrics: { readonly inFlight: number } };

/** Waits until the gateway has sent exactly so many calls to servers and waits for their answers, according to its metrics. */
export async function callsInFlight(gateway: Counting, count = 1): Promise<void> {
  await waitFor(async () => (await inFlight(gateway)) === count);
}

/** Waits until the log file of a fixture with `--log` contains the text `times` times. */
export async function arrived(log: string, text: string, times = 1): Promise<void> {
  await waitFor(() => existsSync(log) && readFileSync(log, 'utf8').split(text).length > times);
}

async function inFlight(gateway: Counting): Promise<number> {
  if ('metrics' in gateway) return gateway.metrics.inFlight;
  const headers: Record<string, string> = gateway.token ? { authorization: `Bearer ${gateway.token}` } : {};
  const text = await (await fetch(`${gateway.origin}/metrics`, { headers })).text();
  return Number(/^toolgate_calls_in_flight (\d+)$/m.exec(text)?.[1]);
}
