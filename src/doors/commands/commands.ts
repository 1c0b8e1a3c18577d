/**
 * The commands that a gateway carries out for its operator: values in, values out. A command of the CLI sends them to the
 * gateway that runs (`/admin/commands/NAME`), or runs them in one of its own if none does.
 */
import type { Gateway } from '../../gateway/gateway.ts';
import { explainItem } from './explain.ts';
import { listItems } from './list-items.ts';
import { listMacros } from './list-macros.ts';
import { planInGateway } from './plan.ts';
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
  macros: listMacros,
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
