/** Tools that a program gives as objects, made ready to be called. */

import { isObject, type JsonObject } from '../base/objects.ts';
import { textOf } from '../tools/fault.ts';
import { nameOf, type RunnableTool, readTool } from '../tools/read-tool.ts';

/** All of them, or an error that says what is wrong with which. */
export async function readTools(given: readonly unknown[]): Promise<RunnableTool[]> {
  const tools: RunnableTool[] = [];
  for (const [index, one] of given.entries()) {
    if (!isObject(one)) throw new Error(`its tool ${index + 1} is no object`);
    const name = nameOf(one, '');
    if (name === '') throw new Error(`its tool ${index + 1} has no name`);
    tools.push(await readOne(one, name));
  }
  return tools;
}

async function readOne(given: JsonObject, name: string): Promise<RunnableTool> {
  try {
    return await readTool(given, name, '');
  } catch (error) {
    throw new Error(`its tool "${name}": ${textOf(error).replace(/\.$/, '')}`);
  }
}
