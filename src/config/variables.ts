/** Variables of the environment that go before what the configuration says. */
import { isIP } from 'node:net';
import { ALL_REVISIONS } from '../protocol/revisions.ts';
import { readDays } from './audit-schema.ts';
import type { Environment } from './expand.ts';
import type { Issue } from './issues.ts';

/** Null where a variable is not set. */
export interface Variables {
  readonly dataDir: string | null;
  readonly port: number | null;
  readonly sse: boolean | null;
  /** Days. */
  readonly retention: number | null;
  readonly origins: readonly string[] | null;
  /** Milliseconds. */
  readonly sessionTtl: number | null;
  readonly revisions: readonly string[] | null;
  readonly watch: boolean | null;
  readonly debounce: number | null;
  readonly callTimeout: number | null;
  readonly concurrency: number | null;
  readonly managerToken: string | null;
  readonly managerNetworks: readonly string[] | null;
}

const HOUR = 3_600_000;

export function readVariables(env: Environment, issues: Issue[]): Variables {
  /** What `read` makes of the variable; null, and an issue, where that is nothing. */
  function variable<T>(name: string, expected: string, read: (text: string) => T | null): T | null {
    const text = env[name];
    if (!text) return null;
    const value = read(text);
    if (value === null)
      issues.push({ path: [], message: `the environment variable ${name} is not ${expected}. Correct it` });
    return value;
  }
  const number = (name: string, least: number, most: number, factor = 1) =>
    variable(name, `a number from ${least} to ${most}`, (text) => {
      const value = /^\d+(\.\d+)?$/.test(text) ? Number(text) : Number.NaN;
      return value >= least && value <= most ? Math.round(value * factor) : null;
    });
  const flag = (name: string) =>
    variable(name, 'true or false', (text) => (text === 'true' ? true : text === 'false' ? false : null));
  return {
    dataDir: env.DATA_DIR || null,
    port: variable('CORE_PORT', 'a port from 0 to 65535', (text) =>
      /^\d{1,5}$/.test(text) && Number(text) <= 65_535 ? Number(text) : null,
    ),
    sse: flag('ENABLE_LEGACY_MCP'),
    retention: variable('LOG_RETENTION_DAYS', 'a number of days', readDays),
    origins: env.CORS_ORIGINS ? list(env.CORS_ORIGINS) : null,
    sessionTtl: number('MCP_SESSION_TTL_HOURS', 0.01, 590, HOUR),
    revisions: variable('MCP_SUPPORTED_VERSIONS', `a list of ${ALL_REVISIONS.join(', ')}`, (text) => {
      const revisions = list(text);
      return revisions.length > 0 && revisions.every((one) => ALL_REVISIONS.includes(one)) ? revisions : null;
    }),
    watch: flag('ENABLE_FS_WATCHER'),
    debounce: number('FS_WATCHER_DEBOUNCE_MS', 0, 60_000),
    callTimeout: number('TOOL_CALL_TIMEOUT_SECONDS', 0.001, 2_000_000, 1_000),
    concurrency: number('NAMESPACE_MAX_CONCURRENCY', 1, 1_000_000),
    managerToken: env.MANAGER_INTERNAL_TOKEN || null,
    managerNetworks: variable('INTERNAL_ALLOWED_CIDRS', 'a list of networks such as 10.0.0.0/8', (text) => {
      const networks = list(text);
      return networks.every(isNetwork) ? networks : null;
    }),
  };
}

function list(text: string): string[] {
  return text
    .split(',')
    .map((one) => one.trim())
    .filter((one) => one !== '');
}

function isNetwork(text: string): boolean {
  const [base = '', bits, ...more] = text.split('/');
  const most = isIP(base) === 6 ? 128 : 32;
  return isIP(base) !== 0 && more.length === 0 && (bits === undefined || (/^\d+$/.test(bits) && Number(bits) <= most));
}
