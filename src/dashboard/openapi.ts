/** The OpenAPI document of the API below `/admin/`: made from the table of endpoints and the schemas of its types. */
import type { JsonObject } from '../base/objects.ts';
import { VERSION } from '../base/version.ts';
import { API_SCHEMAS } from './api-schemas.ts';
import { ENDPOINTS, type Endpoint } from './endpoints.ts';

const ref = (name: string) => ({ $ref: `#/components/schemas/${name}` });
const json = (schema: object) => ({ 'application/json': { schema } });

/** Answers that an address has besides its own. */
const ERRORS = Object.fromEntries(
  Object.entries({
    '400': 'The request is not right.',
    '401': 'There is no session, or it is over.',
    '403': 'The sender may not do this, or another page sent it.',
    '404': 'There is no such thing.',
    '503': 'Something that is needed is not there now.',
  }).map(([status, description]) => [status, { description, content: json(ref('ApiError')) }]),
);

/** Addresses that were there before the dashboard, and that it uses too. */
const OTHERS: readonly Endpoint[] = [
  {
    method: 'get',
    path: '/approvals',
    does: 'approvals',
    summary: 'The calls that wait for a person',
    answer: 'ApprovalsReport',
  },
  {
    ...{ method: 'post', path: '/approvals/*', parts: ['id'], does: 'decide', summary: 'Approves or denies a call' },
    ...{ body: 'DecisionRequest', answer: 'DecisionReport' },
  },
];

/** Commands, by name, that the page sends. What they take is in the comments of the types. */
const COMMANDS = {
  explain: 'Why an agent may use something, or may not',
  'lock-approve': 'Approves definitions that have changed',
  'toolsets-create': 'Makes a toolset',
  'toolsets-edit': 'Changes a toolset',
  'toolsets-rename': 'Renames a toolset',
  'toolsets-delete': 'Deletes a toolset',
  'toolsets-equip': 'Equips a toolset, or none',
  'toolsets-choices': 'Every tool that a toolset can have',
};

export function adminDocument(server: string): JsonObject {
  const paths: Record<string, Record<string, unknown>> = {};
  for (const endpoint of [...(ENDPOINTS as readonly Endpoint[]), ...OTHERS]) {
    const path = `/admin${withNames(endpoint)}`;
    paths[path] = { ...paths[path], [endpoint.method]: operation(endpoint) };
  }
  for (const [name, summary] of Object.entries(COMMANDS))
    paths[`/admin/commands/${name}`] = {
      post: {
        operationId: `command_${name.replaceAll('-', '_')}`,
        summary,
        parameters: [PAGE],
        requestBody: { required: true, content: json({ type: 'object' }) },
        responses: { '200': { description: 'What came of it.', content: json({}) }, ...ERRORS },
      },
    };
  return {
    openapi: '3.1.0',
    info: {
      title: 'Toolgate: operating a gateway',
      version: VERSION,
      description:
        'What the dashboard and the commands of Toolgate use. Send the operator key, or an admin token, as the bearer token.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: server === '' ? '/' : server }],
    security: [{ bearer: [] }, { page: [] }],
    paths,
    components: {
      schemas: API_SCHEMAS,
      securitySchemes: {
        bearer: { type: 'http', scheme: 'bearer', description: 'The operator key, or an admin token.' },
        page: { type: 'apiKey', in: 'cookie', name: 'toolgate', description: 'The cookie of a page session.' },
      },
    },
  };
}

/** The header that changes need if they are made with a cookie. */
const PAGE = {
  ...{ name: 'x-toolgate-page', in: 'header', required: false, schema: { type: 'string' } },
  description: 'Needed for changes with a cookie.',
};

/** `/calls/*` becomes `/calls/{id}`. */
function withNames({ path, parts = [] }: Endpoint): string {
  let at = 0;
  return path.replace(/\*/g, () => `{${parts[at++]}}`);
}

function operation({ method, does, summary, parts = [], query = [], body, answer, isStream }: Endpoint): object {
  const text = { schema: { type: 'string' } };
  const type = isStream === true ? 'text/event-stream' : 'application/json';
  return {
    operationId: does,
    summary,
    parameters: [
      ...parts.map((name) => ({ name, in: 'path', required: true, ...text })),
      ...query.map((name) => ({ name, in: 'query', required: false, ...text })),
      ...(method === 'get' ? [] : [PAGE]),
    ],
    ...(body !== undefined && { requestBody: { required: true, content: json(ref(body)) } }),
    responses: {
      ...(answer === undefined
        ? { '204': { description: 'It is done.' } }
        : {
            '200': {
              description: summary,
              content: {
                [type]: {
                  schema:
                    isStream === true ? { type: 'string', description: `Events, by name: ${answer}` } : ref(answer),
                },
              },
            },
          }),
      ...ERRORS,
    },
  };
}
