/** The types for authors of prompts. Any object of the right shape is one; `definePrompt` only adds types. */
import type { HandlerInput, JsonSchema, StandardSchema, ToolContext, ToolShape } from './define-tool.ts';

/** A message of a prompt. Text stands for a block of text. */
export interface PromptMessage {
  readonly role: 'user' | 'assistant';
  readonly content: string | { readonly type: string; readonly [key: string]: unknown };
}

/** What a prompt may return: a text of the user, messages, or a complete MCP result. */
export type PromptOutput =
  | string
  | readonly (string | PromptMessage)[]
  | { readonly messages: readonly PromptMessage[]; readonly description?: string };

/** Proposes values for an argument that somebody is typing. `given` are the other arguments so far. */
export type Completer = (
  value: string,
  given: Readonly<Record<string, string>>,
) => readonly string[] | Promise<readonly string[]>;

/** A prompt. Any object of this shape is one; `definePrompt` only adds types. */
export interface PromptDefinition<Arguments = JsonSchema> {
  /** Default: the name of the export; for a default export, the name of the file. */
  readonly name?: string;
  readonly title?: string;
  readonly description: string;
  /** A schema of an object, or a schema for each argument. Clients send texts: use `z.coerce.number()` for a number. */
  readonly arguments?: Arguments;
  /** Proposals for arguments. The choices of an enumeration are proposed anyway. */
  readonly complete?: { readonly [argument: string]: Completer };
  readonly timeoutMs?: number;
  readonly _meta?: Readonly<Record<string, unknown>>;
  render(args: HandlerInput<Arguments>, context: ToolContext): PromptOutput | Promise<PromptOutput>;
}

/**
 * Returns the prompt unchanged. Its types are inferred: the arguments from their schema.
 *
 * @example
 * export const review = definePrompt({
 *   description: 'Reviews a text.',
 *   arguments: z.object({ text: z.string().describe('The text to review.') }),
 *   render: ({ text }) => `Review this text. Name three things to improve.\n\n${text}`,
 * });
 */
export function definePrompt<const Arguments extends StandardSchema | ToolShape | JsonSchema = JsonSchema>(
  prompt: PromptDefinition<Arguments>,
): PromptDefinition<Arguments> {
  return prompt;
}
