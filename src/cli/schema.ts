/** `toolgate schema`: what a configuration may have, for editors. */
import { configJsonSchema } from '../internal.ts';

export function schema(): number {
  process.stdout.write(`${JSON.stringify(configJsonSchema(), null, 2)}\n`);
  return 0;
}
