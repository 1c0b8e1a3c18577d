/** Whether the user trusts everything, for this start. Apart from `trust.ts`, because every window asks this. */
import type { CommandIo } from './command-io.ts';
import type { Options } from './options.ts';

/** Trusts what is found, for programs that start Toolgate where nobody can answer. */
const TRUST_VARIABLE = 'TOOLGATE_TRUST';

export function isTrustGiven(options: Options, { env }: CommandIo): boolean {
  return options.trust === true || /^(1|true|yes|on)$/i.test(env[TRUST_VARIABLE] ?? '');
}
