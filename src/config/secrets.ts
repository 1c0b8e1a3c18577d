/** The values that a configuration brings along and nobody is to read in a log. */

import { referTo } from '../secrets/reference.ts';
import { environmentSecrets, headerSecrets, looksSecret, urlSecrets } from '../secrets/secret-values.ts';
import { type Environment, expand, variablesIn } from './expand.ts';
import type { Entry } from './schema.ts';

/** What such variables hold is known to everybody on the machine. */
const ORDINARY = /^(?:HOME|USER|LOGNAME|SHELL|PATH|PWD|TMPDIR|TERM|LANG|HOSTNAME|LC_\w+|XDG_\w+)$/;

/** From the servers as they are written, because only there it can be seen what came out of the environment. */
export function secretsOf(entries: readonly Entry[], env: Environment): string[] {
  return [...new Set([...environmentSecrets(env), ...entries.flatMap(({ server }) => serverSecrets(server, env))])];
}

function serverSecrets({ env: variables = {}, headers = {}, url = '' }: Entry['server'], env: Environment): string[] {
  const text = (written: string): string => {
    const expansion = expand(written, env, referTo);
    return 'text' in expansion ? expansion.text : '';
  };
  const texts = (map: Readonly<Record<string, string>>) =>
    Object.fromEntries(Object.entries(map).map(([name, written]) => [name, text(written)]));
  const fromOutside = Object.entries(variables).flatMap(([name, written]) => {
    const taken = variablesIn(written).filter((one) => env[one] && !ORDINARY.test(one));
    // A default that stands in for a variable is in the file, for everybody to read.
    if (taken.length === 0) return looksSecret(name) ? [text(written)] : [];
    return [text(written), ...taken.map((one) => env[one] ?? '')];
  });
  return [
    ...fromOutside,
    ...environmentSecrets(texts(variables)),
    ...headerSecrets(texts(headers)),
    ...urlSecrets(text(url)),
  ];
}
