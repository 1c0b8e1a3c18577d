/** The types for authors of resources. Any object of the right shape is one; `defineResource` only adds types. */
import type { Completer } from './define-prompt.ts';
import type { ToolContext } from './define-tool.ts';

/** What a resource may return: a text, bytes, a value that becomes JSON, or a complete MCP result. */
export type ResourceOutput = unknown;

interface ResourceBase {
  /** Default: the name of the export; for a default export, the name of the file. */
  readonly name?: string;
  readonly title?: string;
  readonly description?: string;
  /** Default: `text/plain` for a text, `application/octet-stream` for bytes, `application/json` for a value. */
  readonly mimeType?: string;
  readonly annotations?: Readonly<Record<string, unknown>>;
  readonly timeoutMs?: number;
  readonly _meta?: Readonly<Record<string, unknown>>;
  /** `input` has the URI, and the variables of its template. */
  read(
    input: { readonly uri: string } & Readonly<Record<string, string>>,
    context: ToolContext,
  ): ResourceOutput | Promise<ResourceOutput>;
}

/** A resource with a URI, or many with a template of URIs. Any object of this shape is one. */
export type ResourceDefinition = ResourceBase &
  (
    | { readonly uri: string }
    | {
        /** `{name}` stands for text without a slash, `{name*}` and `{+name}` for any text. */
        readonly uriTemplate: string;
        /** Proposals for variables. */
        readonly complete?: { readonly [variable: string]: Completer };
      }
  );

/**
 * Returns the resource unchanged, with types.
 *
 * @example
 * export const note = defineResource({
 *   uriTemplate: 'notes://{day}',
 *   description: 'The notes of a day.',
 *   read: ({ day }) => `Nothing was noted on ${day}.`,
 * });
 */
export function defineResource(resource: ResourceDefinition): ResourceDefinition {
  return resource;
}
