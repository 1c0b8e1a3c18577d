/** What it means when a modern server does not take a request as we sent it. These codes are never passed on. */
import { GatewayError } from '../base/errors.ts';
import { PASSED_ON, TASKS_CAPABILITY } from '../protocol/envelope.ts';
import { TASKS } from '../protocol/meta.ts';

export const HEADER_MISMATCH = -32_020;
export const CAPABILITY_MISSING = -32_021;
export const REVISION_UNSUPPORTED = -32_022;

/** The error for a caller whose call needs more than it can do. */
export function capabilityMissing(source: string, data: unknown): GatewayError {
  const required = (data as { requiredCapabilities?: unknown } | null)?.requiredCapabilities;
  if (isTasks(required))
    return new GatewayError(
      'capability_missing',
      `Server "${source}" does this only as a task: it needs a client that declares the extension "${TASKS}".`,
      { details: { requiredCapabilities: TASKS_CAPABILITY } },
    );
  const names = typeof required === 'object' && required !== null ? Object.keys(required) : [];
  const list = names.length === 0 ? 'a capability' : names.map((name) => `"${name}"`).join(', ');
  if (names.some((name) => !PASSED_ON.includes(name))) {
    return new GatewayError(
      'source_broken',
      `Server "${source}" needs ${list} of its client, which Toolgate cannot pass on.`,
    );
  }
  return new GatewayError('capability_missing', `Server "${source}" needs a client that declares ${list}.`, {
    details: { requiredCapabilities: Object.fromEntries(names.map((name) => [name, {}])) },
  });
}

/** Whether all that is missing is the one extension that we pass on. */
function isTasks(required: unknown): boolean {
  const { extensions, ...others } = (required ?? {}) as { readonly extensions?: object | null };
  return Object.keys(others).length === 0 && Object.keys(extensions ?? {}).join() === TASKS;
}

export function refusalText(source: string, code: number): string {
  const what =
    code === REVISION_UNSUPPORTED ? 'the revision of the protocol that it agreed to' : 'the headers of the request';
  return `Server "${source}" does not accept ${what}. Try again later.`;
}
