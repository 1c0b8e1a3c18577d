/** The official MCP Inspector as a client. */
import { nodeFor, type Run, runTool, wideTool } from './tools.ts';

const launcher = wideTool('@modelcontextprotocol', 'inspector', 'clients', 'launcher', 'build', 'index.js');

export interface Inspection extends Run {
  /** 0: success. 5: the server answered with an error. 6: an unportable schema (--strict). */
  readonly code: number | null;
  /** `{ result }` from stdout or `{ error }` from stderr; undefined if neither is JSON. */
  readonly json: unknown;
}

/**
 * Runs the Inspector once.
 *
 * @example await inspect([url, '--transport', 'http', '--method', 'tools/list'])
 * @example await inspect(['node', 'server.js', '--method', 'tools/call', '--tool-name', 'echo', '--tool-arg', 'message=hi'])
 */
export async function inspect(
  args: readonly string[],
  options: { cwd?: string; env?: Record<string, string>; timeout?: number } = {},
): Promise<Inspection> {
  const node = nodeFor('The inspector', '22.19');
  const run = await runTool(node, [launcher, '--cli', ...args, '--format', 'json', '-q'], options);
  return { ...run, json: parse(run.stdout) ?? parse(run.stderr) };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
