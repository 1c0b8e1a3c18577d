/** Reads `tooldock.yaml`, in which a namespace describes itself. A wrong value is reported and ignored. */
import * as z from 'zod';
import { messageOf } from '../base/errors.ts';
import { didYouMean } from '../base/text.ts';
import { duration, flag, size, text } from '../config/fields.ts';
import type { LineOf } from '../config/issues.ts';
import { parseConfig } from '../config/parse.ts';
import { RESERVED } from '../secrets/secret-names.ts';
import { METADATA_FILE } from './tool-files.ts';

export interface Metadata {
  readonly description: string;
  readonly version: string;
  readonly author: string;
  /** The names of the secrets that its tools need. */
  readonly secrets: readonly string[];
  /** Environment variables of its workers. */
  readonly env: Readonly<Record<string, string>>;
  /** Bounds that its author wants. They can only be closer than those of the configuration. */
  readonly limits: FolderLimits;
}

/** Null: as the configuration says. */
export interface FolderLimits {
  /** Milliseconds. */
  readonly timeout: number | null;
  /** Bytes. */
  readonly memory: number | null;
  /** False: its workers cannot reach the network. They are not started if that cannot be ensured. */
  readonly network: boolean;
}

const NO_LIMITS: FolderLimits = { timeout: null, memory: null, network: true };

export const NO_METADATA: Metadata = {
  description: '',
  version: '',
  author: '',
  secrets: [],
  env: {},
  limits: NO_LIMITS,
};

const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]*$/;

const name = z
  .string({ error: 'needs names of environment variables' })
  .regex(VARIABLE, { error: 'needs names of environment variables: letters, digits and "_"' })
  .refine((one) => !RESERVED.test(one), {
    error: (issue) => `cannot set ${String(issue.input)}, which is for Toolgate`,
  });

// `version: 1.0` and `PORT: 8080` are numbers in YAML, but meant as text.
const scalar = z.union([text(), z.number(), z.boolean()], { error: 'needs a text' }).transform(String);

const parts = {
  description: text('needs a text'),
  version: scalar,
  author: text('needs a text'),
  secrets: z.array(name, { error: 'needs a list of names' }).max(200, { error: 'has more than 200 names' }),
  env: z.record(name, scalar, {
    error: (issue) => (issue.code === 'invalid_type' ? 'needs a map of texts' : undefined),
  }),
  limits: z
    .strictObject(
      { timeout: duration(1).optional(), memory: size().optional(), network: flag().optional() },
      { error: limitsError },
    )
    .transform((given) => ({ ...NO_LIMITS, ...given })),
} as const satisfies Record<keyof Metadata, z.ZodType>;

function limitsError(issue: { readonly code?: string; readonly keys?: readonly string[] }): string {
  const known = 'timeout, memory, network';
  return issue.code === 'unrecognized_keys'
    ? `has an unknown key "${issue.keys?.[0]}"; known: ${known}`
    : `needs a map with ${known}`;
}

const KEYS = Object.keys(parts) as (keyof Metadata)[];

export interface ReadMetadata {
  readonly metadata: Metadata;
  readonly problems: readonly string[];
}

export async function readMetadata(bytes: string): Promise<ReadMetadata> {
  let value: unknown;
  let lineOf: LineOf;
  try {
    const parsed = await parseConfig(bytes, METADATA_FILE);
    value = parsed.value;
    lineOf = await parsed.lines();
  } catch (error) {
    return { metadata: NO_METADATA, problems: [messageOf(error)] };
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return { metadata: NO_METADATA, problems: [`${METADATA_FILE}: needs a map with ${KEYS.join(', ')}.`] };
  const problems: string[] = [];
  const good: Partial<Record<keyof Metadata, unknown>> = {};
  for (const [key, given] of Object.entries(value)) {
    const line = lineOf([key]);
    const place = line === undefined ? METADATA_FILE : `${METADATA_FILE}:${line}`;
    const known = KEYS.find((one) => one === key);
    if (known === undefined) {
      problems.push(
        `${place}: unknown key ${JSON.stringify(key)}.${didYouMean(key, KEYS) || ` Known: ${KEYS.join(', ')}.`}`,
      );
      continue;
    }
    // The key has no value.
    if (given === null) continue;
    const { data, error } = parts[known].safeParse(given);
    if (error === undefined) good[known] = data;
    else {
      const [issue] = error.issues;
      const path = known === 'limits' ? [key, ...issue!.path].join('.') : key;
      problems.push(`${place}: "${path}" ${firstReason(issue!)}.`);
    }
  }
  return { metadata: { ...NO_METADATA, ...(good as Partial<Metadata>) }, problems };
}

/** The reason for an invalid name is nested in the issue of its map. */
function firstReason(issue: z.core.$ZodIssue): string {
  return issue.code === 'invalid_key' ? (issue.issues[0]?.message ?? issue.message) : issue.message;
}
