/** What the manager's tools work with, and how each of them is described. */
import type * as z from 'zod';
import { GatewayError } from '../base/errors.ts';
import type { Config } from '../config/config.ts';
import type { EnvVars } from '../config/expand.ts';
import type { ToolContext, ToolDefinition } from '../tools/define-tool.ts';
import type { Core } from './core.ts';
import type { PackageOptions } from './dependencies.ts';
import type { TestOutcome, TestRun } from './run-tool.ts';

export interface ManagerContext {
  /** The configuration in force. */
  config(): Config;
  readonly env: EnvVars;
  readonly core: Core;
  /** The port that it listens on. */
  port(): number;
  readonly logLevel: string;
  /** Creates a namespace. */
  creating<T>(create: () => Promise<T>): Promise<T>;
  /** What a person has to do before servers that are added to the configuration run; null if nothing. */
  readonly trustAdvice: string | null;
  test(run: TestRun): Promise<TestOutcome>;
}

/** A tool of the manager, ready to be served. */
export interface ManagerTool {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly [member: string]: unknown;
}

interface ToolSpec<Input extends z.ZodType> {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly inputSchema: Input;
  readonly outputSchema?: z.ZodType;
  readonly annotations: ToolDefinition['annotations'];
  execute(input: z.output<Input>, context: ToolContext): unknown;
}

/** An error that the model can act on becomes a result with its code. Anything else is a fault of ours. */
export function managerTool<Input extends z.ZodType>(tool: ToolSpec<Input>): ManagerTool {
  return {
    ...tool,
    async execute(input: z.output<Input>, context: ToolContext) {
      try {
        return await tool.execute(input, context);
      } catch (error) {
        if (!(error instanceof GatewayError)) throw error;
        const { code, message } = error;
        const body = { success: false, result: null, code, message };
        return { content: [{ type: 'text', text: JSON.stringify(body) }], isError: true };
      }
    },
  };
}

/** Of tools that only read, that change something, and that remove something. */
export const READS = { readOnlyHint: true, openWorldHint: false } as const;
export const WRITES = { readOnlyHint: false, destructiveHint: false, openWorldHint: false } as const;
export const REMOVES = { readOnlyHint: false, destructiveHint: true, openWorldHint: false } as const;
/** Those that also reach registries and other servers. */
export const READS_OUTSIDE = { readOnlyHint: true, openWorldHint: true } as const;
export const INSTALLS = { readOnlyHint: false, destructiveHint: false, openWorldHint: true } as const;

/** Steps of unknown number: each message is one. */
export function reporter({ progress }: Pick<ToolContext, 'progress'>): (message: string) => void {
  let step = 0;
  return (message) => progress(++step, undefined, message);
}

export function packageOptions({ env }: ManagerContext, context: ToolContext): PackageOptions {
  return { env, signal: context.signal, progress: reporter(context) };
}
