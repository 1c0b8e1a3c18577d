/** The definition of a tool, for a model whose client does not show it. */
import { toObject } from '../base/objects.ts';
import { definitionOf } from '../catalog/entry.ts';
import { textResult } from '../protocol/rpc.ts';
import type { ControlContext, ControlOutcome } from './control.ts';

export function describeTool({ find, selection }: ControlContext, args: unknown): ControlOutcome {
  const entry = find(String(toObject(args).name));
  return { selection, result: textResult(definitionOf(entry, 'legacy').toString()) };
}
