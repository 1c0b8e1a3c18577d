/** What the handlers of the API get from outside. */
import type { Config } from '../config/config.ts';
import type { Gateway } from '../gateway/gateway.ts';
import type { PageSessions } from './page-sessions.ts';

export interface DashboardOptions {
  /** For servers that a person adds: what they run is trusted by that. */
  trustServers(keys: readonly string[]): (config: Config) => Promise<void>;
  /** The same for tokens that are added while `act` runs. */
  trustTokens<T>(act: () => Promise<T>): Promise<T>;
}

export interface ApiContext extends DashboardOptions {
  readonly gateway: Gateway;
  readonly sessions: PageSessions;
  /** The URL of the MCP endpoint; null if the gateway does not listen. */
  url(): string | null;
  /** Where the page is; null if the gateway does not listen. */
  origin(): string | null;
}
