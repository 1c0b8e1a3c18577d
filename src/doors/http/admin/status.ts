/** `/admin/status`: the state of the running gateway. For the operator only. */
import type { ServerResponse } from 'node:http';
import type { Gateway } from '../../../gateway/gateway.ts';
import type { GatewayStatus } from '../../../gateway/status.ts';
import { sendJson } from '../wire/reply.ts';

export const STATUS_PATH = '/admin/status';

/** How the gateway was started. */
export interface StartedAs {
  readonly command: 'serve' | 'stdio' | 'daemon';
  /** The URL of its MCP endpoint; null on stdio. */
  readonly url: string | null;
}

/** What `/admin/status` answers. `startedAs` is known on the operator's socket only. */
export type StatusReport = GatewayStatus & Partial<StartedAs>;

export async function sendStatus(
  gateway: Gateway,
  startedAs: StartedAs | null,
  response: ServerResponse,
  headers: readonly string[],
): Promise<void> {
  await gateway.caughtUp();
  const report: StatusReport = { ...startedAs, ...gateway.status() };
  sendJson(response, 200, report, [...headers, 'cache-control', 'no-store']);
}
