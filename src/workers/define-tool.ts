/** What a TypeScript tool file exports. Any object of this shape is a tool; `defineTool` only adds the types. */
import type { Zod3 } from './host/zod3.ts';

/** A schema of zod, arktype, valibot or any other library that follows https://standardschema.dev. */
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

/** A plain JSON Schema, draft 2020-12 unless it says otherwise. */
export type JsonSchema = { readonly [keyword: string]: unknown };

type AnySchema = StandardSchema | JsonSchema;

/** What a tool gets of its arguments: parsed by a Standard Schema, checked by a JSON Schema. */
export type ToolInput<Schema> = Schema extends { readonly '~standard': { readonly types?: infer Types } }
  ? NonNullable<Types> extends { readonly output: infer Output }
    ? Output
    : unknown
  : Record<string, unknown>;

/** What a tool may return: what its output schema takes, or a finished result of MCP. */
export type ToolOutput<Schema> = Schema extends { readonly '~standard': { readonly types?: infer Types } }
  ? (NonNullable<Types> extends { readonly input: infer Input } ? Input : unknown) | ToolResult
  : unknown;

/** A result in the form of the protocol, for a tool that wants to say more than one value. */
export interface ToolResult {
  readonly content: readonly { readonly type: string; readonly [key: string]: unknown }[];
  readonly structuredContent?: Readonly<Record<string, unknown>>;
  readonly isError?: boolean;
  readonly _meta?: Readonly<Record<string, unknown>>;
}

/** How much a log message matters. */
export type LogLevel = 'debug' | 'info' | 'notice' | 'warning' | 'error' | 'critical' | 'alert' | 'emergency';

/** Log messages go to the client that called. */
export interface ToolLog {
  (level: LogLevel, data: unknown): void;
  debug(data: unknown, more?: unknown): void;
  info(data: unknown, more?: unknown): void;
  notice(data: unknown, more?: unknown): void;
  warning(data: unknown, more?: unknown): void;
  warn(data: unknown, more?: unknown): void;
  error(data: unknown, more?: unknown): void;
}

/** What a tool is told beside its arguments. */
export interface ToolContext {
  /** Aborted when the call is cancelled or has taken too long. */
  readonly signal: AbortSignal;
  readonly log: ToolLog;
  progress(progress: number, total?: number, message?: string): void;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly requestId: string;
  readonly namespace: string;
  /** Who calls. Known where the tool runs inside of a program, with `createMcpServer`; a worker is not told. */
  readonly clientId?: string | undefined;
}

/** A tool. Any object of this shape is one; `defineTool` only adds the types. */
export interface ToolDefinition<Input extends AnySchema = JsonSchema, Output extends AnySchema = JsonSchema> {
  /** The name of the export where it is left out; of the file for a default export. */
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

/** What stands between the braces of `z.object({ … })`. */
export type ToolShape = { readonly [argument: string]: StandardSchema | Zod3 };

/** What a handler gets of its arguments. */
export type HandlerInput<Schema> = [Schema] extends [ToolShape]
  ? { [Key in keyof Schema]: ToolInput<Schema[Key]> }
  : ToolInput<Schema>;

/** A tool whose function is called `handler`. */
export interface McpToolDefinition<
  // biome-ignore lint/suspicious/noExplicitAny: any schema, and then any arguments
  Schema = any,
> {
  readonly name: string;
  readonly title?: string;
  readonly description: string;
  /** JSON Schema, a Standard Schema (zod, arktype, valibot, …), or a shape of such schemas. */
  readonly inputSchema?: Schema;
  readonly outputSchema?: StandardSchema | JsonSchema;
  readonly annotations?: ToolDefinition['annotations'];
  readonly timeoutMs?: number;
  // biome-ignore lint/suspicious/noExplicitAny: the schema decides, where it can
  handler(args: 0 extends 1 & Schema ? any : HandlerInput<Schema>, context: ToolContext): unknown;
}

/**
 * The same object, with types: arguments are inferred from the schema.
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
/** The same for one whose function is called `handler`. */
export function defineTool<const Schema>(tool: McpToolDefinition<Schema>): McpToolDefinition<Schema>;
export function defineTool<Tool>(tool: Tool): Tool {
  return tool;
}
