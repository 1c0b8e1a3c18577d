/** What `toolgate macros` shows of a gateway. */
import { type Category, categoryOf } from '../../catalog/category.ts';
import type { Gateway } from '../../gateway/gateway.ts';

export interface ListedMacro {
  readonly name: string;
  readonly description: string;
  /** False if a tool that it calls is missing. */
  readonly present: boolean;
  readonly category?: Category;
  readonly steps: readonly { readonly id: string; readonly tool: string }[];
}

export function listMacros({ config, catalog }: Gateway): ListedMacro[] {
  const entries = [...catalog.entries.tool.values()].filter(({ item }) => item.uses !== undefined);
  return config.macros.map((macro) => {
    const entry = entries.find(({ item }) => item.name === macro.name);
    return {
      name: entry?.name ?? macro.name,
      description: macro.description,
      present: entry !== undefined,
      ...(entry !== undefined && { category: categoryOf(entry) }),
      steps: macro.steps.map(({ id, tool }) => ({ id, tool })),
    };
  });
}
