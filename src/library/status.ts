/** The answer of `GET /tools`: all toolsets, the active ones, and their tools. */
export interface ToolsetStatus {
  readonly availableToolsets: readonly string[];
  readonly activeToolsets: readonly string[];
  readonly registeredModules: readonly string[];
  readonly totalToolsets: number;
  readonly activeCount: number;
  readonly tools: readonly string[];
  readonly toolsetToTools: Readonly<Record<string, readonly string[]>>;
}

export function toolsetStatus(
  available: readonly string[],
  active: readonly string[],
  modules: readonly string[],
  tools: ReadonlyMap<string, readonly string[]>,
): ToolsetStatus {
  return {
    availableToolsets: available,
    activeToolsets: active,
    registeredModules: modules,
    totalToolsets: available.length,
    activeCount: active.length,
    tools: [...tools.values()].flat(),
    toolsetToTools: Object.fromEntries(tools),
  };
}
