/**
 * The tools of a view as an OpenAPI 3.1 document. It has one operation for each tool and no others, because clients
 * turn every operation into a tool.
 */
import { sha256 } from '../../../base/hash.ts';
import { type JsonObject, toObject } from '../../../base/objects.ts';
import { VERSION } from '../../../base/version.ts';
import { toOpenApiSchema } from './openapi-schema.ts';

export interface OpenApiOptions {
  readonly title: string;
  readonly description: string;
  /** Of a namespace that has them. */
  readonly version?: string;
  readonly author?: string;
  /** The address that its paths begin with. */
  readonly server: string;
  /** The path before the name of a tool. */
  readonly prefix: string;
  /** Whether calls need a bearer token. */
  readonly needsToken: boolean;
  /** The toolset that the document is for; calls must name it too. Null for none. */
  readonly toolset: string | null;
}

export interface DocumentedTool {
  /** The name in its path. */
  readonly name: string;
  /** Unique in the gateway, and the same in all of its documents. */
  readonly id: string;
  readonly namespace: string;
  readonly definition: JsonObject;
}

/** Clients turn operations into functions, and model APIs allow no longer names for functions. */
const LONGEST_ID = 64;

export function openApi(tools: readonly DocumentedTool[], options: OpenApiOptions): JsonObject {
  const { title, description, version = VERSION, author, server, prefix, needsToken, toolset } = options;
  const schemas: Record<string, unknown> = { Error: ERROR };
  const taken = new Set<string>();
  const paths: Record<string, unknown> = {};
  for (const tool of tools) {
    const operation = operationOf(tool, taken, schemas, toolset !== null);
    paths[`${prefix}/${encodeURIComponent(tool.name)}`] = { post: operation };
  }
  return {
    openapi: '3.1.0',
    info: {
      title,
      version,
      ...(description !== '' && { description }),
      ...(author !== undefined && { contact: { name: author } }),
    },
    servers: [{ url: server }],
    security: needsToken ? [{ bearer: [] }] : [],
    paths,
    components: {
      schemas,
      responses: { Error: ERROR_RESPONSE },
      ...(toolset !== null && { parameters: { toolset: toolsetParameter(toolset) } }),
      ...(needsToken && { securitySchemes: { bearer: { type: 'http', scheme: 'bearer' } } }),
    },
  };
}

const ERROR = {
  type: 'object',
  description: 'What went wrong.',
  properties: {
    success: { const: false },
    result: { type: 'null' },
    code: { type: 'string', description: 'The kind of failure, for programs.' },
    message: { type: 'string', description: 'What happened, to what, and what to do about it.' },
  },
  required: ['success', 'result', 'code', 'message'],
};

const ERROR_RESPONSE = {
  description: 'The call failed, or was refused.',
  content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
};

const ERROR_REFERENCE = { $ref: '#/components/responses/Error' };

function toolsetParameter(name: string): JsonObject {
  const schema = { type: 'string', enum: [name], default: name };
  return { name: 'toolset', in: 'query', required: true, description: 'The toolset that is used.', schema };
}

function operationOf(
  tool: DocumentedTool,
  taken: Set<string>,
  schemas: Record<string, unknown>,
  hasToolset: boolean,
): JsonObject {
  const { definition, namespace } = tool;
  const operationId = uniqueId(tool.id, taken);
  const convert = (schema: unknown, prefix: string): unknown => {
    const { schema: converted, components } = toOpenApiSchema(schema, prefix);
    for (const [name, one] of components) schemas[name] = one;
    return converted;
  };
  const { title, description, inputSchema, outputSchema, annotations } = definition;
  const { required } = toObject(inputSchema);
  return {
    operationId,
    summary: summaryOf(title, annotations, tool.name),
    ...(typeof description === 'string' && description !== '' && { description }),
    ...(namespace !== '' && { tags: [namespace] }),
    ...(hasToolset && { parameters: [{ $ref: '#/components/parameters/toolset' }] }),
    requestBody: {
      required: Array.isArray(required) && required.length > 0,
      content: { 'application/json': { schema: convert(inputSchema, `${operationId}_in`) } },
    },
    responses: {
      200: {
        description: 'What the tool returns.',
        content: {
          'application/json': { schema: outputSchema === undefined ? {} : convert(outputSchema, `${operationId}_out`) },
        },
      },
      '4XX': ERROR_REFERENCE,
      '5XX': ERROR_REFERENCE,
    },
    ...(typeof annotations === 'object' && annotations !== null && { 'x-mcp-annotations': annotations }),
  };
}

function uniqueId(name: string, taken: Set<string>): string {
  const plain = name.replace(/[^\w-]/g, '_');
  const isFree = plain.length <= LONGEST_ID && !taken.has(plain);
  const hash = sha256(name).slice(0, 8);
  const id = isFree ? plain : `${plain.slice(0, LONGEST_ID - 9)}_${hash}`;
  taken.add(id);
  return id;
}

function summaryOf(title: unknown, annotations: unknown, name: string): string {
  const given = [title, toObject(annotations).title].find((text) => typeof text === 'string' && text !== '');
  return (given as string | undefined) ?? titled(name);
}

/** Turns `list_issues` into "List Issues". */
function titled(name: string): string {
  const words = name.split(/[^A-Za-z0-9]+/).filter((word) => word !== '');
  return words.map((word) => word[0]!.toUpperCase() + word.slice(1)).join(' ') || name;
}
