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
  /** The agent that calls: the name that policies are written for. */
  readonly agent?: string | undefined;
  /** The id of the client. The same as `agent`. */
  readonly clientId?: string | undefined;
  /**
   * Names the session of the client, or the agent if its protocol has no sessions. It is made for tools and cannot be
   * used to join the session.
   */
  readonly sessionId?: string | undefined;
  /**
   * Asks the user of the client to fill in a form. The schema is a flat object of texts, numbers, booleans and choices.
   * Rejects if the client cannot ask its user. The time-outs of the call do not run while the user is asked.
   *
   * @example
   * const confirm = defineTool({
   *   name: 'confirm',
   *   description: 'Asks the user.',
   *   inputSchema: z.object({ question: z.string() }),
   *   async execute({ question }, { elicit }) {
   *     const asked = await elicit(question, z.object({ sure: z.boolean() }));
   *     return asked.action === 'accept' && asked.content.sure ? 'yes' : 'no';
   *   },
   * });
   */
  elicit<const Schema extends AnySchema>(message: string, schema: Schema): Promise<Elicited<ToolInput<Schema>>>;
  /** The same with the parameters of `elicitation/create`, for example to send the user to a URL. */
  elicit(params: Readonly<Record<string, unknown>> & { readonly message: string }): Promise<Elicited>;
  /**
   * Lets the model of the client write something. Rejects if the client does not allow it.
   *
   * @example
   * const summarize = defineTool({
   *   name: 'summarize',
   *   description: 'Summarizes a text.',
   *   inputSchema: z.object({ page: z.string() }),
   *   execute: async ({ page }, { sample }) => (await sample(`Summarize in one sentence: ${page}`)).text,
   * });
   */
  sample(prompt: string | SampleRequest): Promise<Sampled>;
  /** What the tools of this namespace keep for the session, or for the agent if its protocol has no sessions. */
  readonly state: ToolState;
}

/** What a user answered. */
export type Elicited<Content = Readonly<Record<string, unknown>>> =
  | { readonly action: 'accept'; readonly content: Content }
  | { readonly action: 'decline' | 'cancel' };

/** The parameters of `sampling/createMessage`. */
export interface SampleRequest {
  readonly messages: readonly { readonly role: 'user' | 'assistant'; readonly content: unknown }[];
  readonly systemPrompt?: string;
  /** Default: 512. */
  readonly maxTokens?: number;
  readonly temperature?: number;
  readonly [parameter: string]: unknown;
}

/** What a model wrote. */
export interface Sampled {
  /** The text of `content`; empty if it has none. */
  readonly text: string;
  readonly role: string;
  readonly content: unknown;
  readonly model: string;
  readonly stopReason?: string;
}

/** Values that outlive a call, as JSON. They are forgotten with the session, and when the gateway ends. */
export interface ToolState {
  get<Value = unknown>(key: string): Promise<Value | undefined>;
  set(key: string, value: unknown): Promise<void>;
  delete(key: string): Promise<void>;
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
