/** The section `audit` as users write it. */
import * as z from 'zod';
import { count, flag, size, strictMap, text } from './fields.ts';

const MOST_DAYS = 36_500;
const DAYS = /^(\d{1,5})d$/;

/** Whole days. */
function days() {
  const error = 'expected a number of days such as "30d"';
  return z.union([z.string().regex(DAYS, { error }), count(1, MOST_DAYS)], { error }).transform((value, context) => {
    const result = typeof value === 'number' ? value : Number(DAYS.exec(value)?.[1]);
    if (result < 1 || result > MOST_DAYS)
      context.addIssue({ code: 'custom', message: `must be from 1d to ${MOST_DAYS}d` });
    return result;
  });
}

/** Days as an environment variable says them; null where it does not. */
export function readDays(value: string): number | null {
  const result = /^\d{1,5}$/.test(value) ? Number(value) : 0;
  return result >= 1 && result <= MOST_DAYS ? result : null;
}

export const auditSchema = strictMap({
  enabled: flag()
    .optional()
    .describe('Whether calls are written down. Default: `true` for `toolgate serve`, `false` for everything else.'),
  dir: text()
    .optional()
    .describe('Folder for the files, relative to the folder of this file. Default: `logs` in `data_dir`.'),
  retention: days()
    .prefault('30d')
    .describe('Files of days before that are removed. The environment variable LOG_RETENTION_DAYS goes first.'),
  arguments: flag().prefault(false).describe('Writes down the arguments of calls too, without known secrets.'),
  results: flag().prefault(false).describe('Writes down the results of calls too, without known secrets.'),
  max_value: size().prefault('16KiB').describe('Size to which arguments and results are cut.'),
  on_failure: z
    .enum(['continue', 'stop'], { error: 'expected "continue" or "stop"' })
    .prefault('continue')
    .describe(
      '`stop` refuses calls while nothing can be written down; `continue` goes on and keeps what fits in memory.',
    ),
});

export type AuditFile = z.output<typeof auditSchema>;
