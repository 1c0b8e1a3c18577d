/** What a configuration says about secrets. Their values are elsewhere. */
import { flag, strictMap, text } from './fields.ts';

export const vaultSchema = strictMap({
  key_file: text()
    .optional()
    .describe(
      'File with the key that secrets are encrypted with, relative to the folder of this file; nobody else may be able to read it. ' +
        'The environment variables SECRETS_KEY and SECRETS_KEY_FILE go first.',
    ),
  redact_results: flag()
    .prefault(true)
    .describe(
      'Takes the secrets that a server was given out of what it answers. `false`: only out of errors and logs.',
    ),
});
