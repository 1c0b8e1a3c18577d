/** The section `repositories`: which repositories and packages may be fetched to be read, and how much room they get. */
import type * as z from 'zod';
import { choice, duration, section, size } from './fields.ts';

/** Sizes in bytes, times in milliseconds. */
export interface RepositoriesConfig {
  /** Each also allows what those before it allow. */
  readonly from: 'public' | 'private' | 'local';
  readonly size: number;
  readonly timeout: number;
  /** Bytes of all clones together. */
  readonly quota: number;
  /** How long a clone is kept after its last use. */
  readonly keep: number;
}

export const repositoriesSchema = section({
  from: choice(['public', 'private', 'local'])
    .prefault('public')
    .describe(
      '`public` clones over https from addresses on the internet, `private` also from your own network, `local` also ' +
        'from folders of this machine.',
    ),
  size: size().prefault('256MiB').describe('Maximum size of one clone or package.'),
  timeout: duration(1).prefault('5m').describe('How long fetching one may take.'),
  quota: size()
    .prefault('1GiB')
    .describe('Maximum size of all clones together; those that were not used for the longest time are removed first.'),
  keep: duration(1).prefault('168h').describe('How long a clone is kept after it was last used.'),
}) satisfies z.ZodType<RepositoriesConfig>;
