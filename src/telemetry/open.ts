/** OpenTelemetry, loaded only if one of its variables is set. */
import type { Gateway } from '../gateway/gateway.ts';
import type { Telemetry } from './start.ts';

/** Null if no variable asks for it. Throws a GatewayError if one does and the packages are not installed. */
export async function openTelemetry(gateway: Gateway): Promise<Telemetry | null> {
  if (!Object.keys(gateway.env).some((name) => name.startsWith('OTEL_'))) return null;
  const { startTelemetry } = await import('./start.ts');
  return startTelemetry(gateway);
}
