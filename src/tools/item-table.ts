/** The items that a host or a program serves: what a request asks for is found here. */
import { isObject } from '../base/objects.ts';
import { fault, type ToolFault } from './fault.ts';
import type { ItemObject, RunnableItem, RunnableKind } from './read-tool.ts';

/** A request in the form of the worker contract. */
export type ItemRequest = Readonly<Record<string, unknown>>;

/** An item with its input, ready to run. */
export interface AskedItem {
  readonly item: RunnableItem;
  readonly input: unknown;
}

/** The operations that run an item. */
export const RUNNING: ReadonlySet<unknown> = new Set(['tools.call', 'prompts.get', 'resources.read', 'complete']);
/** The most proposals that a client accepts. */
const MOST_PROPOSALS = 100;

export class ItemTable {
  readonly #byKey: ReadonlyMap<string, RunnableItem>;
  readonly #templates: readonly RunnableItem[];

  constructor(items: readonly RunnableItem[]) {
    this.#byKey = new Map(items.map((item) => [keyOf(item.kind, item.name), item]));
    this.#templates = items
      .filter(({ kind }) => kind === 'template')
      .sort((a, b) => fixedLength(b.name) - fixedLength(a.name));
  }

  get items(): readonly RunnableItem[] {
    return [...this.#byKey.values()];
  }

  /** Whether any of them proposes values for arguments. */
  get completes(): boolean {
    return this.items.some(({ complete = {} }) => Object.keys(complete).length > 0);
  }

  definitions(kind: RunnableKind): readonly ItemObject[] {
    return this.items.filter((item) => item.kind === kind).map(({ definition }) => definition);
  }

  tool(name: unknown): RunnableItem | undefined {
    return this.#byKey.get(keyOf('tool', name));
  }

  /** What a request asks for, or why it cannot be answered. */
  find(request: ItemRequest, namespace: string): AskedItem | ToolFault {
    const { op } = request;
    if (op === 'resources.read') return this.#findResource(request.uri, namespace);
    if (op === 'complete') return this.#findCompletion(request, namespace);
    const [kind, name] =
      op === 'prompts.get' ? (['prompt', request.prompt] as const) : (['tool', request.tool] as const);
    const item = this.#byKey.get(keyOf(kind, name));
    if (item === undefined) return unknown(kind, name, namespace);
    const input = request.arguments;
    if (input !== undefined && input !== null && !isObject(input))
      return fault('invalid_arguments', `The arguments of a ${kind} are a JSON object.`);
    return { item, input };
  }

  #findResource(uri: unknown, namespace: string): AskedItem | ToolFault {
    const exact = this.#byKey.get(keyOf('resource', uri));
    if (exact !== undefined) return { item: exact, input: { uri } };
    for (const item of this.#templates) {
      const variables = item.match!(String(uri));
      if (variables !== null) return { item, input: { ...variables, uri } };
    }
    return unknown('resource', uri, namespace);
  }

  #findCompletion(request: ItemRequest, namespace: string): AskedItem | ToolFault {
    const { prompt, template, argument, value, given } = request;
    const [kind, name] = prompt === undefined ? (['template', template] as const) : (['prompt', prompt] as const);
    const item = this.#byKey.get(keyOf(kind, name));
    if (item === undefined) return unknown(kind, name, namespace);
    const { complete = {} } = item;
    const completer = Object.hasOwn(complete, argument as string) ? complete[argument as string]! : () => [];
    const input = { value: String(value ?? ''), given: isObject(given) ? given : {} };
    return {
      item: {
        ...item,
        input: null,
        self: { execute: () => completer(input.value, input.given as never) },
        render: proposalsJson,
      },
      input,
    };
  }
}

function keyOf(kind: RunnableKind, name: unknown): string {
  return `${kind} ${String(name)}`;
}

function unknown(kind: RunnableKind, name: unknown, namespace: string): ToolFault {
  const code = kind === 'tool' ? 'tool_not_found' : kind === 'prompt' ? 'prompt_not_found' : 'resource_not_found';
  return fault(code, `There is no ${kind} ${JSON.stringify(name)} in "${namespace}".`);
}

function fixedLength(template: string): number {
  return template.replace(/\{[^}]*\}/g, '').length;
}

function proposalsJson(value: unknown): string {
  if (!Array.isArray(value)) throw new TypeError('A function in `complete` returns a list of texts.');
  const values = value.slice(0, MOST_PROPOSALS).map(String);
  return JSON.stringify({ completion: { values, total: value.length, hasMore: value.length > values.length } });
}
