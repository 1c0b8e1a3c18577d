/** The JSON Schema of the configuration, for editors and for `toolgate schema`. */

import * as z from 'zod';
import { fileSchema } from './schema.ts';

export function configJsonSchema(): Record<string, unknown> {
  // What users write, before defaults and units are worked out.
  return z.toJSONSchema(fileSchema, { io: 'input', target: 'draft-2020-12' });
}
