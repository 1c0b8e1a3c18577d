/** Why the host is not a FastMCP server: both run the same tools with the same calls. Prints the measured figures. */
import { createInterface } from 'node:readline';
import { describe, expect, it } from 'vitest';
import { childEnv, startChild } from '../support/child.ts';
import { basePython, noPython, startHost } from '../support/python.ts';
import { tempFolder } from '../support/temp.ts';

const functions = (decorator: string) => `
@${decorator}
def in_thread(name: str) -> str:
    return f"Hello {name}"

@${decorator}
async def on_loop(name: str) -> str:
    return f"Hello {name}"
`;
const AT_ONCE = 16;

/** Calls per second, measured over this many calls. */
async function rate(calls: number, call: () => Promise<unknown>): Promise<number> {
  const started = performance.now();
  let left = calls;
  const one = async () => {
    while (left-- > 0) await call();
  };
  await Promise.all(Array.from({ length: AT_ONCE }, one));
  return (calls / (performance.now() - started)) * 1000;
}

async function startFastmcp(): Promise<(tool: string) => Promise<unknown>> {
  const program = `from fastmcp import FastMCP\nmcp = FastMCP("x")\n${functions('mcp.tool')}\nmcp.run("stdio", show_banner=False)\n`;
  const folder = tempFolder({ 'server.py': program });
  const { command } = await basePython();
  const child = startChild(command[0]!, ['-I', 'server.py'], { cwd: folder, env: childEnv(), ending: 'stdin' });
  const waiting = new Map<number, (message: unknown) => void>();
  createInterface({ input: child.process.stdout }).on('line', (line) => {
    const message = JSON.parse(line) as { id: number };
    waiting.get(message.id)?.(message);
    waiting.delete(message.id);
  });
  let id = 0;
  const send = (method: string, params: unknown) => {
    id += 1;
    const answer = new Promise((resolve) => waiting.set(id, resolve));
    child.process.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`);
    return answer;
  };
  const clientInfo = { name: 'test', version: '1' };
  await send('initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo });
  child.process.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' })}\n`);
  return (name) => send('tools/call', { name, arguments: { name: 'x' } });
}

describe.skipIf(noPython)('a call of a Python tool', () => {
  it('is at least four times as fast as with a FastMCP server', async () => {
    const host = await startHost({ 'all.py': `from fastmcp.tools import tool\n${functions('tool')}` });
    const fastmcp = await startFastmcp();
    for (const tool of ['in_thread', 'on_loop']) {
      const best = { fastmcp: 0, host: 0 };
      // Alternating, because the load on the machine varies.
      for (let round = 0; round < 4; round += 1) {
        best.fastmcp = Math.max(best.fastmcp, await rate(150, () => fastmcp(tool)));
        best.host = Math.max(best.host, await rate(1500, () => host.call(tool, { name: 'x' })));
      }
      console.log(`${tool}: ${Math.round(best.host)} calls a second, FastMCP over stdio ${Math.round(best.fastmcp)}`);
      expect(best.host).toBeGreaterThan(4 * best.fastmcp);
    }
  });
});
