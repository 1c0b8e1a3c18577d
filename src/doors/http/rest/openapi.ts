/** The tools of a view as a document in OpenAPI 3.1: one operation each, and nothing else, because whoever reads it makes a tool of every operation. */
import { createHash } from 'node:crypto';
import { VERSION } from '../../../base/version.ts';
import { type Json, settleSchema } from './schema.ts';

export interface OpenApiOptions {
  readonly title: string;
  readonly description: string;
  /** Where its paths begin. */
  readonly server: string;
  /** What stands before the name of a tool in its path. */
  readonly prefix: string;
  /** Whether calls need a bearer token. */
  readonly needsToken: boolean;
  /** What the address names, so that calls have to name it too; null for none. */
  readonly toolset: string | null;
}

export interface Tool {
  /** As it stands in the path. */
  readonly name: string;
  /** The same in every document of the gateway, and never that of another tool. */
  readonly id: string;
  readonly namespace: string;
  readonly definition: Json;
}

/** Clients make functions of them, and models take few characters in the names of these. */
const MOST_ID = 64;

export function openApi(tools: readonly Tool[], options: OpenApiOptions): Json {
  const { title, description, server, prefix, needsToken, toolset } = options;
  const schemas: Record<string, unknown> = { Error: ERROR };
  const taken = new Set<string>();
  const paths: Record<string, unknown> = {};
  for (const tool of tools) {
    const operation = operationOf(tool, taken, schemas, toolset !== null);
    paths[`${prefix}/${encodeURIComponent(tool.name)}`] = { post: operation };
  }
  return {
    openapi: '3.1.0',
    info: { title, version: VERSION, ...(description !== '' && { description }) },
    servers: [{ url: server }],
    security: needsToken ? [{ bearer: [] }] : [],
    paths,
    components: {
      schemas,
      responses: { Error: RESPONSE },
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
    code: { type: 'string', description: 'What kind of failure it is, for programs.' },
    message: { type: 'string', description: 'What happened, to what, and what to do about it.' },
  },
  required: ['success', 'result', 'code', 'message'],
};

const RESPONSE = {
  description: 'The call failed, or was refused.',
  content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
};

const FAILED = { $ref: '#/components/responses/Error' };

function toolsetParameter(name: string): Json {
  const schema = { type: 'string', enum: [name], default: name };
  return { name: 'toolset', in: 'query', required: true, description: 'The toolset that is used.', schema };
}

function operationOf(tool: Tool, taken: Set<string>, schemas: Record<string, unknown>, hasToolset: boolean): Json {
  const { definition, namespace } = tool;
  const operationId = uniqueId(tool.id, taken);
  const settle = (schema: unknown, prefix: string): unknown => {
    const { schema: settled, hoisted } = settleSchema(schema, prefix);
    for (const [name, one] of hoisted) schemas[name] = one;
    return settled;
  };
  const { title, description, inputSchema, outputSchema, annotations } = definition;
  const { required } = Object(inputSchema) as { required?: unknown };
  return {
    operationId,
    summary: summaryOf(title, annotations, tool.name),
    ...(typeof description === 'string' && description !== '' && { description }),
    ...(namespace !== '' && { tags: [namespace] }),
    ...(hasToolset && { parameters: [{ $ref: '#/components/parameters/toolset' }] }),
    requestBody: {
      required: Array.isArray(required) && required.length > 0,
      content: { 'application/json': { schema: settle(inputSchema, `${operationId}_in`) } },
    },
    responses: {
      200: {
        description: 'What the tool returns.',
        content: {
          'application/json': { schema: outputSchema === undefined ? {} : settle(outputSchema, `${operationId}_out`) },
        },
      },
      '4XX': FAILED,
      '5XX': FAILED,
    },
    ...(typeof annotations === 'object' && annotations !== null && { 'x-mcp-annotations': annotations }),
  };
}

function uniqueId(name: string, taken: Set<string>): string {
  const plain = name.replace(/[^\w-]/g, '_');
  const isFree = plain.length <= MOST_ID && !taken.has(plain);
  const hash = createHash('sha256').update(name).digest('hex').slice(0, 8);
  const id = isFree ? plain : `${plain.slice(0, MOST_ID - 9)}_${hash}`;
  taken.add(id);
  return id;
}

function summaryOf(title: unknown, annotations: unknown, name: string): string {
  const { title: hinted } = Object(annotations) as { title?: unknown };
  const own = [title, hinted].find((text) => typeof text === 'string' && text !== '');
  return (own as string | undefined) ?? titled(name);
}

/** `list_issues` is "List Issues". */
function titled(name: string): string {
  const words = name.split(/[^A-Za-z0-9]+/).filter((word) => word !== '');
  return words.map((word) => word[0]!.toUpperCase() + word.slice(1)).join(' ') || name;
}
