/** Shared helpers of the toolset tests. */
import { server } from './server.ts';

/** Three servers with a few tools each. */
export const GIT = server('basic', '--name', 'git', '--tools', 'status,commit,log');
export const DOCKER = server('basic', '--name', 'docker', '--tools', 'ps,images');
export const LINEAR = server('basic', '--name', 'linear', '--tools', 'create_issue');

export function toolsetsToml(commands: Record<string, string>, more = ''): string {
  const servers = Object.entries(commands).map(
    ([namespace, command]) => `[[servers]]\nnamespace = "${namespace}"\ncommand = ${JSON.stringify(command)}\n`,
  );
  return `controls = ["equip"]\n${more}\n${servers.join('\n')}`;
}

export const THREE = { git: GIT, docker: DOCKER, linear: LINEAR };

export const BUILT_IN = [
  'discover-all-tools',
  'build-toolset',
  'edit-toolset',
  'list-saved-toolsets',
  'equip-toolset',
  'unequip-toolset',
  'get-active-toolset',
  'delete-toolset',
  'add-tool-annotation',
];

export interface Said {
  readonly [key: string]: unknown;
}

/** A client of either SDK. */
interface CallsTools {
  callTool(params: { name: string; arguments?: Record<string, unknown> }): Promise<unknown>;
}

/** Calls a control tool. Returns its result, or throws Toolgate's own error as `code: message`. */
export async function control(client: CallsTools, name: string, args: object = {}): Promise<Said> {
  const result = (await client.callTool({ name, arguments: { ...args } })) as {
    content: { text: string }[];
    structuredContent?: Said;
    isError?: boolean;
  };
  const said = JSON.parse(result.content[0]!.text) as Said;
  if (result.isError) throw new Error(`${said.code}: ${said.message}`);
  if (JSON.stringify(result.structuredContent) !== JSON.stringify(said)) throw new Error('said two different things');
  return said;
}

export function refs(...names: string[]): { namespacedName: string }[] {
  return names.map((namespacedName) => ({ namespacedName }));
}

interface Lists {
  listTools(): Promise<{ readonly tools: readonly { readonly name: string }[] }>;
}

/** The names of the listed tools that are not control tools. */
export async function equippedNames(client: Lists): Promise<string[]> {
  const { tools } = await client.listTools();
  return tools.map(({ name }) => name).filter((name) => !BUILT_IN.includes(name));
}
