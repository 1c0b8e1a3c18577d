/** What requests to the API may have in their bodies and queries. */
import * as z from 'zod';
import { choice, count, flag, strictMap, text } from '../config/fields.ts';

const MINUTE = 60_000;

const anyMap = () => z.record(z.string(), z.unknown(), { error: 'expected a map' });
const lifetime = () =>
  count(1_000, 10 * 365 * 24 * 60 * MINUTE)
    .nullable()
    .optional();
export const recordingSchema = strictMap({ arguments: flag(), results: flag(), minutes: count(1, 1_440) });
export const trySchema = strictMap({
  kind: choice(['tool', 'resource', 'prompt']),
  name: text(),
  arguments: anyMap().optional(),
  agent: text('expected a string, or null').nullable(),
  dryRun: flag().optional(),
});
export type TryInput = z.output<typeof trySchema>;
export const answerSchema = strictMap({
  action: choice(['accept', 'decline', 'cancel']),
  content: anyMap().optional(),
});
export type AnswerInput = z.output<typeof answerSchema>;
export const dryRunSchema = strictMap({
  text: text(),
  agents: z.array(text(), { error: 'expected a list' }).optional(),
});
export const agentSchema = strictMap({ name: text(), description: text().optional(), lifetime: lifetime() });
export const rotateSchema = strictMap({ grace: count(0, 30 * 24 * 60 * MINUTE).optional(), lifetime: lifetime() });
export const secretSchema = strictMap({ name: text(), scope: text(), value: text() });
export const secretNameSchema = strictMap({ name: text(), scope: text() });
export const installSchema = strictMap({
  package: text(),
  namespace: text(),
  kind: choice(['npm', 'pypi', 'oci', 'remote']).optional(),
  inputs: z.record(z.string(), text(), { error: 'expected a map of texts' }).optional(),
});

export function wordsOf(query: string | null): string[] {
  return (query ?? '')
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== '');
}
