/** Makes a namespace of an OpenAPI document: one tool per operation, in TypeScript that people can read and edit. */
import { readFile, stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { GatewayError, messageOf } from '../../base/errors.ts';
import { isObject } from '../../base/objects.ts';
import { publicAddresses } from '../../base/private-address.ts';
import { createNamespaceOf } from '../../workers/namespace-folders.ts';
import { METADATA_FILE } from '../../workers/tool-files.ts';
import { checkTypeScript } from '../check-code.ts';
import { type ApiOperation, type ApiScheme, type OpenApiDocument, readOpenApi } from './openapi.ts';

export interface OpenApiRequest {
  /** An address, or a file if `mayReadFiles`. */
  readonly source: string;
  readonly namespace: string;
  /** Where the API is; null: where the document says. */
  readonly baseUrl: string | null;
  readonly cwd: string;
  readonly mayReadFiles: boolean;
  readonly mayReachPrivate: boolean;
  readonly signal: AbortSignal | null;
}

export interface OpenApiResult {
  readonly created: true;
  readonly namespace: string;
  readonly path: string;
  readonly tools_found: readonly string[];
  readonly base_url: string;
  /** Secrets that a person has to set before the tools work. */
  readonly secrets_needed: readonly string[];
  readonly notes: readonly string[];
}

const MAX_DOCUMENT = 10 * 1024 * 1024;
const TIMEOUT = 30_000;

export async function namespaceFromOpenApi(request: OpenApiRequest, dataDir: string): Promise<OpenApiResult> {
  const { text, base } = await readSource(request);
  const document = await readOpenApi(text, base);
  const baseUrl = request.baseUrl ?? document.baseUrl;
  if (baseUrl === null || !URL.canParse(baseUrl) || !/^https?:$/.test(new URL(baseUrl).protocol))
    throw new GatewayError(
      'usage',
      'The document names no address of the API. Give one: --url https://api.example.com',
    );
  const secrets = secretNames(document, request.namespace);
  const used = new Set(document.operations.flatMap(({ security }) => security));
  const needed = Object.entries(secrets).flatMap(([scheme, secret]) => (used.has(scheme) ? [secret] : []));
  const code = toolFile(document, request.source);
  const { problems } = await checkTypeScript('api.ts', code);
  // A defect of ours, and better found here than by a model that calls the tools.
  if (problems.length > 0)
    throw new GatewayError('internal', `The tools could not be written: ${problems[0]!.message}`);
  const { folder } = await createNamespaceOf(dataDir, request.namespace, {
    'api.ts': code,
    '_request.ts': requestFile(document.security, secrets, used),
    [METADATA_FILE]: metadata(document, baseUrl, needed),
  });
  return {
    created: true,
    namespace: request.namespace,
    path: folder,
    tools_found: document.operations.map(({ name }) => name),
    base_url: baseUrl,
    secrets_needed: needed,
    notes: document.notes,
  };
}

async function readSource({
  source,
  cwd,
  mayReadFiles,
  mayReachPrivate,
  signal,
}: OpenApiRequest): Promise<{ text: string; base: string | null }> {
  if (!/^https?:\/\//i.test(source)) {
    if (!mayReadFiles)
      throw new GatewayError(
        'usage',
        `${JSON.stringify(source.slice(0, 200))} is not an address such as "https://api.example.com/openapi.json".`,
      );
    const file = resolve(cwd, source);
    const size = await stat(file).then(
      (stats) => stats.size,
      () => null,
    );
    if (size === null) throw new GatewayError('usage', `There is no file ${file}.`);
    if (size > MAX_DOCUMENT) throw tooLarge(source);
    return { text: await readFile(file, 'utf8'), base: null };
  }
  const url = new URL(source);
  if (!mayReachPrivate) {
    if (url.protocol !== 'https:') throw new GatewayError('usage', `${url.origin} is not an https address.`);
    await publicAddresses(
      url.hostname,
      'Set repositories.from = "private" if documents of your own network may be read.',
    );
  }
  const timeout = AbortSignal.timeout(TIMEOUT);
  try {
    const all = signal === null ? timeout : AbortSignal.any([timeout, signal]);
    const response = await fetch(url, { redirect: mayReachPrivate ? 'follow' : 'error', signal: all });
    if (!response.ok) throw new GatewayError('usage', `${url.href} answered with status ${response.status}.`);
    const chunks: Uint8Array[] = [];
    let size = 0;
    for await (const chunk of response.body ?? []) {
      size += chunk.length;
      if (size > MAX_DOCUMENT) throw tooLarge(source);
      chunks.push(chunk);
    }
    return { text: Buffer.concat(chunks).toString('utf8'), base: url.href };
  } catch (error) {
    if (error instanceof GatewayError) throw error;
    throw new GatewayError('usage', `${url.href} cannot be read (${messageOf((error as Error).cause ?? error)}).`);
  }
}

function tooLarge(source: string): GatewayError {
  return new GatewayError('usage', `${source} is larger than 10 MiB.`);
}

/** One secret for each way in. */
function secretNames({ security }: OpenApiDocument, namespace: string): Record<string, string> {
  const prefix = namespace.replaceAll('-', '_').toUpperCase();
  const schemes = Object.keys(security);
  return Object.fromEntries(
    schemes.map((scheme) => {
      const own = scheme
        .replace(/([a-z])([A-Z])/g, '$1_$2')
        .replace(/[^A-Za-z0-9]+/g, '_')
        .toUpperCase();
      const name = schemes.length === 1 ? `${prefix}_TOKEN` : `${prefix}_${own}`;
      return [scheme, /^\d/.test(name) ? `API_${name}` : name];
    }),
  );
}

function metadata(
  { title, description, version }: OpenApiDocument,
  baseUrl: string,
  secrets: readonly string[],
): string {
  const lines = [
    `description: ${JSON.stringify(firstLine(description || title))}`,
    `version: ${JSON.stringify(version)}`,
  ];
  if (secrets.length > 0) lines.push('secrets:', ...secrets.map((name) => `  - ${name}`));
  return `${[...lines, 'env:', `  BASE_URL: ${JSON.stringify(baseUrl)}`].join('\n')}\n`;
}

function firstLine(text: string): string {
  return text.split('\n')[0]!.slice(0, 300);
}

function toolFile(document: OpenApiDocument, source: string): string {
  const from = `${document.title} ${document.version}`.replace(/\s+/g, ' ').trim();
  const file = source
    .split(/[/\\]/)
    .at(-1)!
    .replace(/[^\w.-]/g, '_');
  return [
    `// ${firstLine(from).replace(/[^\x20-\x7e]/g, '?')}, from ${file}. One tool for each operation; edit them as you like.`,
    "import { defineTool } from 'toolgate';",
    "import { request } from './_request.ts';",
    ...document.operations.map(toolText),
  ]
    .join('\n')
    .concat('\n');
}

function toolText(operation: ApiOperation): string {
  const { name, title, description, method, path, parameters, body, security } = operation;
  const properties = Object.fromEntries(parameters.map((one) => [one.name, one.schema]));
  const required = parameters.filter((one) => one.required).map((one) => one.name);
  const inputSchema = {
    type: 'object',
    properties: body === null ? properties : { ...properties, body: body.schema },
    ...(required.length > 0 || body?.required ? { required: [...required, ...(body?.required ? ['body'] : [])] } : {}),
    additionalProperties: false,
  };
  const places = (place: string) =>
    Object.fromEntries(
      parameters
        .filter((one) => one.place === place)
        .map((one) => [
          one.name,
          one.place === 'query' && one.form !== 'repeat' ? [one.wireName, one.form] : one.wireName,
        ]),
    );
  const wire = {
    method,
    path,
    ...Object.fromEntries(
      [
        ['params', places('path')],
        ['query', places('query')],
        ['headers', places('header')],
      ].filter(([, map]) => Object.keys(map as object).length > 0),
    ),
    ...(body === null ? {} : { body: body.type }),
    ...(security.length > 0 ? { security } : {}),
  };
  const annotations = {
    readOnlyHint: method === 'GET' || method === 'HEAD' || method === 'OPTIONS',
    ...(method === 'DELETE' ? { destructiveHint: true } : {}),
    ...(method === 'PUT' || method === 'DELETE' ? { idempotentHint: true } : {}),
    openWorldHint: true,
  };
  return `
export const ${name} = defineTool({
${title === '' ? '' : `  title: ${literal(title)},\n`}  description: ${literal(description)},
  inputSchema: ${literal(inputSchema, '  ')},
  annotations: ${literal(annotations, '  ')},
  execute: (input, context) => request(${literal(wire, '  ')}, input, context),
});`;
}

/** A value as TypeScript. Every text of the document becomes a string here, so none can become code. */
function literal(value: unknown, indent = ''): string {
  if (typeof value === 'string')
    return `'${JSON.stringify(value)
      .slice(1, -1)
      .replaceAll('\\"', '"')
      .replaceAll("'", "\\'")
      .replace(/[\u2028\u2029]/g, (one) => `\\u${one.charCodeAt(0).toString(16)}`)}'`;
  const inner = `${indent}  `;
  if (Array.isArray(value)) {
    const items = value.map((one) => literal(one, inner));
    const line = `[${items.join(', ')}]`;
    return line.length <= 80 && !line.includes('\n')
      ? line
      : `[\n${items.map((one) => `${inner}${one},`).join('\n')}\n${indent}]`;
  }
  if (!isObject(value)) return JSON.stringify(value) ?? 'null';
  const pairs = Object.entries(value)
    .filter(([key]) => key !== '__proto__')
    .map(([key, one]) => `${/^[A-Za-z_$][\w$]*$/.test(key) ? key : literal(key)}: ${literal(one, inner)}`);
  const line = pairs.length === 0 ? '{}' : `{ ${pairs.join(', ')} }`;
  return line.length <= 80 && !line.includes('\n')
    ? line
    : `{\n${pairs.map((one) => `${inner}${one},`).join('\n')}\n${indent}}`;
}

/** Sends the requests of all tools. Plain code without packages. */
function requestFile(
  schemes: Readonly<Record<string, ApiScheme>>,
  secrets: Record<string, string>,
  used: ReadonlySet<string>,
): string {
  const lines = Object.entries(schemes)
    .filter(([key]) => used.has(key))
    .map(([key, scheme]) => {
      const secret = `secret(env, ${literal(secrets[key]!)})`;
      switch (scheme.kind) {
        case 'bearer':
          return `    case ${literal(key)}:\n      headers.set('Authorization', \`Bearer \${${secret}}\`);\n      break;`;
        case 'basic':
          return `    case ${literal(key)}: // The secret is user:password.\n      headers.set('Authorization', \`Basic \${Buffer.from(${secret}).toString('base64')}\`);\n      break;`;
        case 'header':
          return `    case ${literal(key)}:\n      headers.set(${literal(scheme.name)}, ${secret});\n      break;`;
        case 'query':
          return `    case ${literal(key)}:\n      url.searchParams.set(${literal(scheme.name)}, ${secret});\n      break;`;
      }
      return scheme satisfies never;
    });
  const sign =
    lines.length === 0
      ? ''
      : `
/** Adds what the API wants to know who calls. */
function sign(scheme: string, url: URL, headers: Headers, env: Env): void {
  switch (scheme) {
${lines.join('\n')}
  }
}

function secret(env: Env, name: string): string {
  const value = env[name];
  if (!value) throw new Error(\`The secret \${name} is not set.\`);
  return value;
}
`;
  return `${REQUEST.replace('/*sign*/', lines.length === 0 ? '' : '\n  for (const scheme of operation.security ?? []) sign(scheme, url, headers, context.env);')}${sign}`;
}

const REQUEST = `// Sends the requests of the tools in api.ts.
type Env = Readonly<Record<string, string | undefined>>;

interface Operation {
  method: string;
  path: string;
  /** From names of the input to names on the wire; lists and objects in a query may have another form. */
  params?: Record<string, string>;
  query?: Record<string, string | string[]>;
  headers?: Record<string, string>;
  /** The media type of the body. */
  body?: string;
  security?: string[];
}

const MAX_TEXT = 2_000;

export async function request(
  operation: Operation,
  input: Record<string, unknown>,
  context: { env: Env; signal: AbortSignal },
): Promise<unknown> {
  const path = operation.path.replace(/\\{([^{}]+)\\}/g, (_, wire: string) => {
    const [name = wire] = Object.entries(operation.params ?? {}).find(([, other]) => other === wire) ?? [];
    return encodeURIComponent(joined(input[name]));
  });
  const url = new URL(\`\${(context.env.BASE_URL ?? '').replace(/\\/+$/, '')}\${path}\`);
  for (const [name, given] of Object.entries(operation.query ?? {})) {
    const [wire, form] = Array.isArray(given) ? given : [given];
    addQuery(url.searchParams, wire ?? name, input[name], form);
  }
  const headers = new Headers({ accept: 'application/json, text/*;q=0.9, */*;q=0.5' });
  for (const [name, wire] of Object.entries(operation.headers ?? {}))
    if (input[name] !== undefined) headers.set(wire, joined(input[name]));/*sign*/
  const hasBody = operation.body !== undefined && input.body !== undefined;
  if (hasBody) headers.set('content-type', operation.body!);
  const response = await fetch(url, {
    method: operation.method,
    headers,
    body: hasBody ? bodyOf(operation.body!, input.body) : undefined,
    signal: context.signal,
  });
  return answerOf(response);
}

async function answerOf(response: Response): Promise<unknown> {
  const type = response.headers.get('content-type') ?? '';
  if (response.ok && /^(image|audio)\\//.test(type)) {
    const data = Buffer.from(await response.arrayBuffer()).toString('base64');
    return { content: [{ type: type.startsWith('image/') ? 'image' : 'audio', data, mimeType: type.split(';')[0]! }] };
  }
  const text = await response.text();
  if (!response.ok) throw new Error(\`The API answered with \${response.status} \${response.statusText}: \${text.slice(0, MAX_TEXT)}\`);
  if (text === '') return \`Done (\${response.status}).\`;
  return /\\bjson\\b/.test(type) ? JSON.parse(text) : text;
}

function bodyOf(type: string, body: unknown): string {
  if (type === 'application/x-www-form-urlencoded') {
    const form = new URLSearchParams();
    for (const [name, value] of Object.entries(body as object)) addQuery(form, name, value);
    return form.toString();
  }
  return type.startsWith('text/') ? String(body) : JSON.stringify(body);
}

function addQuery(query: URLSearchParams, name: string, value: unknown, form?: string): void {
  if (value === undefined || value === null) return;
  if (form === 'deep' && typeof value === 'object')
    for (const [key, one] of Object.entries(value)) query.append(\`\${name}[\${key}]\`, joined(one));
  else if (Array.isArray(value) && form !== 'comma') for (const one of value) query.append(name, joined(one));
  else query.append(name, joined(value));
}

function joined(value: unknown): string {
  if (Array.isArray(value)) return value.map(joined).join(',');
  return typeof value === 'object' && value !== null ? JSON.stringify(value) : String(value ?? '');
}
`;
