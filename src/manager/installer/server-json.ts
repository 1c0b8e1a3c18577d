/** Entries of the MCP registry: `server.json` of 2025-09-16 and later, as far as an installation needs it. */
import * as z from 'zod';

const text = z.string().max(4_000);

/** A value that somebody may have to give. */
const inputShape = {
  description: text.optional(),
  isRequired: z.boolean().optional(),
  isSecret: z.boolean().optional(),
  format: z.string().optional(),
  value: text.optional(),
  default: text.optional(),
  placeholder: text.optional(),
  choices: z.array(text).max(500).optional(),
};
const inputSchema = z.object(inputShape);
const variables = z.record(z.string(), inputSchema).optional();
const keyedInput = z.object({ ...inputShape, name: text, variables });
const argument = z.object({
  ...inputShape,
  type: z.enum(['positional', 'named']),
  name: text.optional(),
  valueHint: text.optional(),
  isRepeated: z.boolean().optional(),
  variables,
});
const transport = z.object({
  type: z.string(),
  url: text.optional(),
  headers: z.array(keyedInput).optional(),
  variables,
});

const packageSchema = z.object({
  registryType: z.string(),
  registryBaseUrl: text.optional(),
  identifier: text,
  version: text.optional(),
  runtimeHint: text.optional(),
  runtimeArguments: z.array(argument).optional(),
  packageArguments: z.array(argument).optional(),
  environmentVariables: z.array(keyedInput).optional(),
  transport: transport.optional(),
});

export const serverJsonSchema = z.object({
  name: text,
  description: text.default(''),
  title: text.optional(),
  version: text.default(''),
  repository: z.object({ url: text.optional(), source: text.optional(), subfolder: text.optional() }).optional(),
  packages: z.array(packageSchema).optional(),
  remotes: z.array(transport).optional(),
});

/** An entry as the registry sends it: the document and what the registry says about it. */
export const registryEntrySchema = z.object({
  server: serverJsonSchema,
  _meta: z.record(z.string(), z.unknown()).optional(),
});

export type ServerJson = z.output<typeof serverJsonSchema>;
export type ServerPackage = z.output<typeof packageSchema>;
export type ServerTransport = z.output<typeof transport>;
export type ServerArgument = z.output<typeof argument>;
export type ServerInput = z.output<typeof inputSchema>;
export type KeyedInput = z.output<typeof keyedInput>;
export type RegistryEntry = z.output<typeof registryEntrySchema>;

const OFFICIAL = 'io.modelcontextprotocol.registry/official';

/** Whether the registry still stands for the entry. */
export function entryStatus({ _meta }: RegistryEntry): 'active' | 'deprecated' | 'deleted' {
  const { status } = (_meta?.[OFFICIAL] ?? {}) as { status?: unknown };
  return status === 'deprecated' || status === 'deleted' ? status : 'active';
}
