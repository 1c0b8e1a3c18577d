/** The types for authors of TypeScript tools. Any object of the right shape is a tool; `defineTool` only adds types. */
import type { LogLevel } from '../protocol/levels.ts';

export type { LogLevel };

/** A schema from zod, arktype, valibot or any other library that follows https://standardschema.dev. */
export interface StandardSchema<Input = unknown, Output = Input> {
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>;
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
  };
}

export type StandardResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly StandardIssue[] };

export interface StandardIssue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** A plain JSON Schema: draft 2020-12 unless `$schema` names another. */
export type JsonSchema = { readonly [keyword: string]: unknown };

type AnySchema = StandardSchema | JsonSchema;

/** The arguments a tool receives: the output of a Standard Schema, or any object for a plain JSON Schema. */
export type ToolInput<Schema> = Schema extends { readonly '~standard': { readonly types?: infer Types } }
  ? NonNullable<Types> extends { readonly output: infer Output }
    ? Output
    : unknown
  : Record<string, unknown>;

/** What a tool may return: a value that its output schema accepts, or a complete MCP result. */
export type ToolOutput<Schema> = Schema extends { readonly '~standard': { readonly types?: infer Types } }
  ? (NonNullable<Types> extends { readonly input: infer Input } ? Input : unknown) | ToolResult
  : unknown;

/** A result as MCP defines it, for a tool that returns more than one value. */
export interface ToolResult {
  readonly content: readonly { readonly type: string; readonly [key: string]: unknown }[];
  readonly structuredContent?: Readonly<Record<string, unknown>>;
  readonly isError?: boolean;
  readonly _meta?: Readonly<Record<string, unknown>>;
}

/** Sends log messages to the client that made the call. */
export interface ToolLog {
  (level: LogLevel, data: unknown): void;
  debug(data: unknown, more?: unknown): void;
  info(data: unknown, more?: unknown): void;
  notice(data: unknown, more?: unknown): void;
  warning(data: unknown, more?: unknown): void;
  warn(data: unknown, more?: unknown): void;
  error(data: unknown, more?: unknown): void;
}

/** What a tool receives in addition to its arguments. */
export interface ToolContext {
  /** Aborted when the call is cancelled or times out. */
  readonly signal: AbortSignal;
  readonly log: ToolLog;
  progress(progress: number, total?: number, message?: string): void;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly requestId: string;
  readonly namespace: string;
  /** The id of the client. Only tools inside a program (`createMcpServer`) get it; workers do not. */
  readonly clientId?: string | undefined;
}

/** A tool. Any object of this shape is one; `defineTool` only adds types. */
export interface ToolDefinition<Input extends AnySchema = JsonSchema, Output extends AnySchema = JsonSchema> {
  /** Default: the name of the export; for a default export, the name of the file. */
  readonly name?: string;
  readonly title?: string;
  readonly description: string;
  readonly inputSchema: Input;
  readonly outputSchema?: Output;
  readonly annotations?: {
    readonly title?: string;
    readonly readOnlyHint?: boolean;
    readonly destructiveHint?: boolean;
    readonly idempotentHint?: boolean;
    readonly openWorldHint?: boolean;
  };
  readonly timeoutMs?: number;
  readonly _meta?: Readonly<Record<string, unknown>>;
  execute(input: ToolInput<Input>, context: ToolContext): ToolOutput<Output> | Promise<ToolOutput<Output>>;
}

/** A zod 3 schema, by its shape. */
export interface Zod3Schema {
  readonly _def: Readonly<Record<string, unknown>> & { readonly typeName: string };
  safeParse(value: unknown): Zod3Result;
  safeParseAsync(value: unknown): Promise<Zod3Result>;
}

/** The result of parsing a value with a zod 3 schema. */
export interface Zod3Result {
  readonly success: boolean;
  readonly data?: unknown;
  readonly error?: { readonly issues: readonly { message: string; path: PropertyKey[] }[] };
}

/** What goes between the braces of `z.object({ … })`: a schema for each argument. */
export type ToolShape = { readonly [argument: string]: StandardSchema | Zod3Schema };

/** The arguments a handler receives. */
export type HandlerInput<Schema> = [Schema] extends [ToolShape]
  ? { [Key in keyof Schema]: ToolInput<Schema[Key]> }
  : ToolInput<Schema>;

/** A tool whose function is called `handler` instead of `execute`. */
export interface McpToolDefinition<
  // biome-ignore lint/suspicious/noExplicitAny: any schema, and then any arguments
  Schema = any,
> {
  readonly name: string;
  readonly title?: string;
  readonly description: string;
  /** A JSON Schema, a Standard Schema (zod, arktype, valibot, …), or a shape: a schema for each argument. */
  readonly inputSchema?: Schema;
  readonly outputSchema?: StandardSchema | JsonSchema;
  readonly annotations?: ToolDefinition['annotations'];
  readonly timeoutMs?: number;
  // biome-ignore lint/suspicious/noExplicitAny: the schema decides, if there is one
  handler(args: 0 extends 1 & Schema ? any : HandlerInput<Schema>, context: ToolContext): unknown;
}

/**
 * Returns the tool unchanged. Its types are inferred: the arguments from the input schema.
 *
 * @example
 * export const add = defineTool({
 *   description: 'Adds two numbers.',
 *   inputSchema: z.object({ a: z.number(), b: z.number() }),
 *   execute: ({ a, b }) => a + b,
 * });
 */
export function defineTool<const Input extends AnySchema, const Output extends AnySchema = JsonSchema>(
  tool: ToolDefinition<Input, Output>,
): ToolDefinition<Input, Output>;
/** The same for a tool whose function is called `handler`. */
export function defineTool<const Schema>(tool: McpToolDefinition<Schema>): McpToolDefinition<Schema>;
export function defineTool<Tool>(tool: Tool): Tool {
  return tool;
}
