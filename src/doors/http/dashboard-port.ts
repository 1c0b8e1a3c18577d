/** The dashboard, as the HTTP door reaches it. The door cannot import it: the dashboard needs the manager, which needs doors. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Route } from './router.ts';

export interface DashboardPort {
  /** What it answers in addition to the door's own routes. */
  readonly routes: readonly Route[];
  /**
   * Who sends a request without the operator key: the holder of a page session or of an admin token; null for neither.
   * Throws if the session is over, or if another page than ours sent a change.
   */
  admit(request: IncomingMessage): Promise<string | null>;
  /** Sends the page. False if the request has no page session, or the page is not part of this build. */
  sendPage(request: IncomingMessage, response: ServerResponse, headers: readonly string[]): Promise<boolean>;
}
