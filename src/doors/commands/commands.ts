/**
 * The commands that a gateway carries out for its operator: values in, values out. A command of the CLI sends them to the
 * gateway that runs (`/admin/commands/NAME`), or runs them in one of its own if none does.
 */
import * as z from 'zod';
import { GatewayError } from '../../base/errors.ts';
import { KINDS } from '../../catalog/item.ts';
import { choice, count, flag, strictMap, text, textList } from '../../config/fields.ts';
import { issueText, schemaIssues } from '../../config/issues.ts';
import type { Gateway } from '../../gateway/gateway.ts';
import { TOOLSET_NAME, TOOLSET_NAME_FORM } from '../../store/toolsets.ts';
import { explainItem } from './explain.ts';
import { listItems } from './list-items.ts';
import { listMacros } from './list-macros.ts';
import { approveLock, compareLock } from './lock.ts';
import { PLAN_FORMATS, planInGateway } from './plan.ts';
import { forgetExamples, MOST_SHOWN, searchExamples, searchItems } from './search.ts';
import {
  createToolset,
  deleteToolset,
  editToolset,
  equipToolset,
  importToolset,
  listToolsets,
  renameToolset,
  showToolset,
  toolChoices,
} from './toolsets.ts';

export const gatewayCommands = {
  list: listItems,
  explain: explainItem,
  plan: planInGateway,
  search: searchItems,
  'search-examples': searchExamples,
  'search-forget': forgetExamples,
  tokens: (gateway: Gateway) => gateway.tokens(),
  macros: listMacros,
  lock: compareLock,
  'lock-approve': approveLock,
  'toolsets-list': listToolsets,
  'toolsets-show': showToolset,
  'toolsets-choices': toolChoices,
  'toolsets-create': createToolset,
  'toolsets-import': importToolset,
  'toolsets-edit': editToolset,
  'toolsets-rename': renameToolset,
  'toolsets-delete': deleteToolset,
  'toolsets-equip': equipToolset,
} as const satisfies Readonly<Record<string, (gateway: Gateway, request: never) => object | Promise<object>>>;

export type GatewayCommands = typeof gatewayCommands;
export type GatewayCommand = keyof GatewayCommands;
export type CommandRequest<Name extends GatewayCommand> = GatewayCommands[Name] extends (
  gateway: Gateway,
  request: infer Request,
) => unknown
  ? unknown extends Request
    ? object
    : Request
  : never;
export type CommandAnswer<Name extends GatewayCommand> = Awaited<ReturnType<GatewayCommands[Name]>>;

export async function runInGateway<Name extends GatewayCommand>(
  gateway: Gateway,
  name: Name,
  request: CommandRequest<Name>,
): Promise<CommandAnswer<Name>> {
  const run = gatewayCommands[name] as (gateway: Gateway, request: CommandRequest<Name>) => unknown;
  return (await run(gateway, request)) as CommandAnswer<Name>;
}

const name = text();
/** It becomes the name of a file. */
const newName = text().regex(TOOLSET_NAME, { error: `is not a name of ${TOOLSET_NAME_FORM}` });
const place = choice(['project', 'user']);

/** What the request of each command looks like. Those of this program are checked by their types. */
const requests: { readonly [Name in GatewayCommand]: z.ZodType<CommandRequest<Name>> } = {
  list: strictMap({
    kinds: z.array(choice(KINDS), { error: 'expected a list' }),
    agent: text().optional(),
    tokens: flag().optional(),
  }),
  explain: strictMap({ name, agent: text() }),
  plan: strictMap({
    task: strictMap({ service: text(), type: text(), description: text(), profile: text() }),
    agent: text().optional(),
    format: choice(PLAN_FORMATS),
    search: flag().optional(),
    name: name.optional(),
  }),
  search: strictMap({
    query: text(),
    limit: count(1, MOST_SHOWN),
    server: text().optional(),
    agent: text().optional(),
    tokens: flag().optional(),
  }),
  'search-examples': strictMap({}),
  'search-forget': strictMap({}),
  tokens: strictMap({}),
  macros: strictMap({}),
  lock: strictMap({ names: textList() }),
  'lock-approve': strictMap({ names: textList(), hash: text() }),
  'toolsets-list': strictMap({ tokens: flag().optional() }),
  'toolsets-show': strictMap({ name }),
  'toolsets-choices': strictMap({ chosen: textList() }),
  'toolsets-create': strictMap({ name: newName, description: text(), tools: textList(), place }),
  'toolsets-import': strictMap({ toolset: z.unknown(), name: newName, place }),
  'toolsets-edit': strictMap({
    name,
    description: text().optional(),
    add: textList(),
    remove: textList(),
    tools: textList().optional(),
  }),
  'toolsets-rename': strictMap({ name, to: newName }),
  'toolsets-delete': strictMap({ name }),
  'toolsets-equip': strictMap({
    name: text('expected a string, or null').nullable(),
    who: z
      .union([z.literal('all'), strictMap({ agent: text() }), strictMap({ session: text() })], {
        error: 'expected "all", {"agent": …} or {"session": …}',
      })
      .optional(),
  }),
};

/** The request of a command, as another program sent it. Throws if it is not one. */
export function readRequest<Name extends GatewayCommand>(command: Name, value: unknown): CommandRequest<Name> {
  const schema = requests[command] as z.ZodType<CommandRequest<Name>>;
  const read = schema.safeParse(value);
  if (read.success) return read.data;
  const issues = schemaIssues(schema, read.error, value).slice(0, MOST_ISSUES);
  throw new GatewayError(
    'params_invalid',
    `The request of the command "${command}" is not right: ${issues.map(issueText).join(' ')}`,
  );
}

const MOST_ISSUES = 5;
