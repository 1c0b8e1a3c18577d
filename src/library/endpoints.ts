/** HTTP endpoints that a program serves next to MCP. Requests and responses are checked against their schemas. */
import { randomUUID } from 'node:crypto';
import { memo } from '../base/memo.ts';
import type { StandardIssue, StandardSchema } from '../tools/define-tool.ts';
import { type Check, jsonSchemaCheck } from '../tools/json-schema-check.ts';
import { isZod3, validateZod3 } from '../tools/zod3.ts';
import { wrongOptions } from './errors.ts';
import type { MaybePromise } from './types.ts';

/** The methods that an endpoint can have. */
export type HttpMethod = 'GET' | 'POST' | 'PUT' | 'DELETE' | 'PATCH';

/** The type of the values that a schema returns. */
export type SchemaOutput<Schema> = Schema extends { readonly '~standard': { readonly types?: infer Types } }
  ? NonNullable<Types> extends { readonly output: infer Output }
    ? Output
    : unknown
  : Schema extends { readonly _output: infer Output }
    ? Output
    : unknown;

/** A request whose parts were validated by the schemas of its endpoint. */
export interface CustomEndpointRequest<Body = unknown, Query = unknown, Params = unknown> {
  readonly body: Body;
  readonly query: Query;
  readonly params: Params;
  readonly headers: Record<string, string | string[] | undefined>;
  /** From `authenticate`, or from the header `mcp-client-id`. Random if there is neither. */
  readonly clientId: string;
}

/** A request with the toolsets of its client. */
export interface PermissionAwareEndpointRequest<Body = unknown, Query = unknown, Params = unknown>
  extends CustomEndpointRequest<Body, Query, Params> {
  /** The toolsets that the client has. */
  readonly allowedToolsets: string[];
  /** The toolsets that the client should have, but that could not be loaded. */
  readonly failedToolsets: string[];
}

// biome-ignore lint/suspicious/noExplicitAny: endpoints with different schemas are in one array
type Any = any;

interface Described<Body, Query, Params, Response> {
  readonly method: HttpMethod;
  /** Relative to the base path. `:name` matches one segment of the path. */
  readonly path: string;
  readonly bodySchema?: Body;
  readonly querySchema?: Query;
  readonly paramsSchema?: Params;
  /** A response that does not match is not sent. */
  readonly responseSchema?: Response;
  readonly description?: string;
  /** Whether clients that `authenticate` does not recognize may use it. */
  readonly isPublic?: boolean;
}

/**
 * Answers a validated request: with a value that is sent as JSON, or with a `Response` of its own status, such as
 * `Response.json({ error: 'No such user' }, { status: 404 })`.
 */
export type CustomEndpointHandler<Body = Any, Query = Any, Params = Any, Response = Any> = (
  request: CustomEndpointRequest<SchemaOutput<Body>, SchemaOutput<Query>, SchemaOutput<Params>>,
) => MaybePromise<SchemaOutput<Response> | globalThis.Response>;

/** Answers a validated request. The request contains the toolsets of the client. */
export type PermissionAwareEndpointHandler<Body = Any, Query = Any, Params = Any, Response = Any> = (
  request: PermissionAwareEndpointRequest<SchemaOutput<Body>, SchemaOutput<Query>, SchemaOutput<Params>>,
) => MaybePromise<SchemaOutput<Response> | globalThis.Response>;

/** An HTTP endpoint that the program serves next to MCP. */
export interface CustomEndpointDefinition<Body = Any, Query = Any, Params = Any, Response = Any>
  extends Described<Body, Query, Params, Response> {
  handler(request: Any): MaybePromise<Any>;
}

/** The body of a response to a request that failed. */
export interface EndpointErrorResponse {
  readonly error: {
    readonly code: 'VALIDATION_ERROR' | 'INTERNAL_ERROR' | 'RESPONSE_VALIDATION_ERROR';
    readonly message: string;
    readonly details?: unknown;
  };
}

/**
 * Returns the endpoint unchanged. The types of the handler's request are inferred from the schemas.
 *
 * @example
 * const users = defineEndpoint({
 *   method: 'GET',
 *   path: '/users/:id',
 *   paramsSchema: z.object({ id: z.string() }),
 *   handler: ({ params }) => ({ id: params.id }),
 * });
 */
export function defineEndpoint<Body = unknown, Query = unknown, Params = unknown, Response = unknown>(
  endpoint: Described<Body, Query, Params, Response> & {
    readonly handler: CustomEndpointHandler<Body, Query, Params, Response>;
  },
): CustomEndpointDefinition<Body, Query, Params, Response> {
  return endpoint;
}

/**
 * Like `defineEndpoint`, for `createPermissionBasedMcpServer`. The request contains the toolsets of the client.
 *
 * @example
 * const me = definePermissionAwareEndpoint({
 *   method: 'GET',
 *   path: '/me',
 *   handler: ({ clientId, allowedToolsets }) => ({ clientId, allowedToolsets }),
 * });
 */
export function definePermissionAwareEndpoint<Body = unknown, Query = unknown, Params = unknown, Response = unknown>(
  endpoint: Described<Body, Query, Params, Response> & {
    readonly handler: PermissionAwareEndpointHandler<Body, Query, Params, Response>;
  },
): CustomEndpointDefinition<Body, Query, Params, Response> {
  return endpoint;
}

const METHODS: readonly string[] = ['GET', 'POST', 'PUT', 'DELETE', 'PATCH'];
/** The paths of MCP, of the health check, of the status and of the configuration schema. */
export const RESERVED_PATHS = ['/mcp', '/healthz', '/tools', '/.well-known/mcp-config'] as const;

export function checkEndpoints(endpoints: readonly CustomEndpointDefinition[]): void {
  const known = new Set<string>();
  for (const { method, path, handler } of endpoints) {
    const where = `The endpoint ${method} ${path}`;
    if (!METHODS.includes(method)) throw wrongOptions(`${where}: the method must be one of ${METHODS.join(', ')}.`);
    if (typeof path !== 'string' || !path.startsWith('/'))
      throw wrongOptions(`${where}: the path must begin with "/".`);
    if (RESERVED_PATHS.some((one) => path === one || path.startsWith(`${one}/`)))
      throw wrongOptions(`${where}: the path is reserved. Choose another.`);
    if (typeof handler !== 'function') throw wrongOptions(`${where} has no handler.`);
    // Parameters of other names match the same paths.
    const served = `${method} ${path.replaceAll(/:[^/]+/g, ':')}`;
    if (known.has(served)) throw wrongOptions(`${where} exists twice: only the first would answer. Remove one.`);
    known.add(served);
  }
}

/** The parts of a request before they are validated. */
export interface EndpointInput {
  readonly body: unknown;
  readonly query: Record<string, unknown>;
  readonly params: Record<string, string>;
  readonly headers: Record<string, string | string[] | undefined>;
  readonly clientId: string;
  /** Further members of the request of a permission-aware endpoint. */
  readonly more?: object;
}

/** A value to send as JSON, or what the program answered itself. */
export type EndpointReply =
  | { readonly status: number; readonly body: unknown }
  | { readonly response: globalThis.Response };

/** Never rejects. `failed` is called with errors of the program itself. */
export async function runEndpoint(
  endpoint: CustomEndpointDefinition,
  received: EndpointInput,
  failed: (error: unknown) => void,
): Promise<EndpointReply> {
  const { headers, clientId, more } = received;
  try {
    const values: Record<string, unknown> = { body: undefined, query: {}, params: {} };
    for (const part of ['body', 'query', 'params'] as const) {
      const schema: object | undefined = endpoint[`${part}Schema`];
      if (schema === undefined) continue;
      const checked = await (await checkOf(schema))(received[part]);
      if (checked.issues !== undefined) return invalid(part, checked.issues);
      values[part] = checked.value;
    }
    const result: unknown = await endpoint.handler({ ...values, headers, clientId, ...more });
    if (isResponse(result)) return { response: result };
    if (endpoint.responseSchema === undefined) return { status: 200, body: result };
    const checked = await (await checkOf(endpoint.responseSchema))(result);
    if (checked.issues === undefined) return { status: 200, body: checked.value };
    failed(
      new TypeError(
        `The response does not match its schema: ${checked.issues.map(({ message }) => message).join('; ')}`,
      ),
    );
    return failure('RESPONSE_VALIDATION_ERROR', 'Internal server error: invalid response format');
  } catch (error) {
    failed(error);
    return failure('INTERNAL_ERROR', 'Internal server error');
  }
}

/** By its shape, because some servers have a class `Response` of their own. */
function isResponse(value: unknown): value is globalThis.Response {
  if (typeof value !== 'object' || value === null) return false;
  const { status, headers, arrayBuffer } = value as Partial<globalThis.Response>;
  return typeof status === 'number' && typeof headers?.get === 'function' && typeof arrayBuffer === 'function';
}

/** An id for a client that sends none. */
export function anonymousId(): string {
  return `anon-${randomUUID()}`;
}

export function invalid(part: string, issues: readonly StandardIssue[]): EndpointReply {
  const error = { code: 'VALIDATION_ERROR', message: `Validation failed for ${part}`, details: issues } as const;
  return { status: 400, body: { error } satisfies EndpointErrorResponse };
}

function failure(code: EndpointErrorResponse['error']['code'], message: string): EndpointReply {
  return { status: 500, body: { error: { code, message } } satisfies EndpointErrorResponse };
}

/** Each schema is compiled once. Throws if it is not an object, and rejects if it is not a valid JSON Schema. */
const checkOf = memo((schema: object): MaybePromise<Check> => {
  if (isZod3(schema)) return (value) => validateZod3(schema, value);
  if ('~standard' in schema) return (schema as StandardSchema)['~standard'].validate;
  return jsonSchemaCheck(schema as Record<string, unknown>);
});
