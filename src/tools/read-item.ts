/** Reads anything that looks like a tool, a prompt or a resource. */
import { isPromptLike, readPrompt } from './read-prompt.ts';
import { isResourceLike, readResource } from './read-resource.ts';
import { type ItemObject, isToolLike, nameOf, type RunnableItem, readTool } from './read-tool.ts';

/** Whether the value was probably meant as an item. `readItem` says whether it is a valid one. */
export function isItemLike(value: unknown): value is ItemObject {
  return isToolLike(value) || isResourceLike(value) || isPromptLike(value);
}

/** What people call it in messages. */
export function wordFor(given: ItemObject): string {
  return isToolLike(given) ? 'tool' : isResourceLike(given) ? 'resource' : 'prompt';
}

/** Throws an error that says what is wrong with it. */
export async function readItem(given: ItemObject, exported: string, file: string): Promise<RunnableItem> {
  const name = nameOf(given, exported);
  if (isToolLike(given)) return readTool(given, name, file);
  return isResourceLike(given) ? readResource(given, name, file) : readPrompt(given, name, file);
}
