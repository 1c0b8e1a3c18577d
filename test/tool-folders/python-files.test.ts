/** Which Python files are tool files, and how broken ones are reported. */
import { symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { type Host, noPython, startHost } from '../support/python.ts';
import { tempFolder } from '../support/temp.ts';
import { isWide } from '../support/wide.ts';

const one = (name: string) => `from fastmcp.tools import tool\n\n@tool\ndef ${name}() -> str:\n    return "${name}"\n`;
/** Written for the FastMCP of version 1 of the MCP SDK. */
const SDK = `from mcp.server.fastmcp import Context, FastMCP, Image
from mcp.server.fastmcp.exceptions import ToolError
from mcp.server.fastmcp.prompts.base import UserMessage

mcp = FastMCP("Demo", host="0.0.0.0", port=8000, stateless_http=True)

@mcp.tool()
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b

@mcp.tool(title="Greet", structured_output=False)
async def greet(name: str, ctx: Context) -> str:
    await ctx.info("greeting")
    if name == "":
        raise ToolError("nobody")
    return f"Hello, {name}!"

@mcp.resource("demo://readme")
def readme() -> str:
    return "read"

@mcp.prompt()
def ask(topic: str) -> list[UserMessage]:
    return [UserMessage(f"Tell me about {topic}.")]

if __name__ == "__main__":
    mcp.run()
`;
const names = (host: { ready: { tools: { name: string }[] } }) => host.ready.tools.map(({ name }) => name);

describe.skipIf(noPython)('the Python files of a folder', () => {
  it('are tool files if they define tools, except hidden and private files and those in subfolders', async () => {
    const outside = tempFolder({ 'far.py': one('far') });
    const folder = tempFolder({
      'b.py': one('in_b'),
      'a.py': one('in_a'),
      '_private.py': one('private'),
      '.hidden.py': one('hidden'),
      'some.test.py': one('tested'),
      'nothing.py': 'x = 1\n',
      'empty.py': '',
      'text.txt': one('text'),
      'old.py~': one('old'),
      '__pycache__/c.py': one('cached'),
      '.git/d.py': one('git'),
      'sub/e.py': one('sub'),
      'my-tools.py': one('dashed'),
    });
    symlinkSync(join(outside, 'far.py'), join(folder, 'far.py'));
    symlinkSync(join(folder, 'sub', 'e.py'), join(folder, 'near.py'));
    const host = await startHost(folder);
    expect(names(host)).toEqual(['in_a', 'in_b', 'dashed', 'sub']);
    expect(host.ready.failed).toEqual([]);
    expect(host.ready.tools[2]?._meta).toMatchObject({ 'toolgate/file': 'my-tools.py' });
  });

  // A gateway starts no worker for such a folder.
  if (isWide)
    it('may be missing', async () => {
      const host = await startHost({});
      expect(host.ready).toMatchObject({ tools: [], failed: [] });
      expect((await host.call('x')).error?.code).toBe('tool_not_found');
    });

  it('are reported with file and line if broken or if they repeat a name, and do not hide the others', async () => {
    const host = await startHost({
      'a_syntax.py': 'x = 1\ndef broken(:\n',
      'b_missing.py': 'import os\n\nimport a_package_that_is_not_there\n',
      'c_raises.py': 'def f():\n    raise ValueError("at import")\n\nf()\n',
      'd_exits.py': 'import sys\nsys.exit(4)\n',
      'e_sibling.py': 'import c_raises\n',
      'f_good.py': one('good'),
      'g_varargs.py': `${one('fine')}\n@tool\ndef bad(*args): pass\n`,
      'h_auth.py': 'from fastmcp.tools import tool\n@tool(auth=lambda ctx: True)\ndef guarded(): pass\n',
      'j_first.py': one('same'),
      'k_second.py': `${one('same')}\n${one('more')}`,
      'i_bytes.py': new Uint8Array([0x78, 0x20, 0x3d, 0x20, 0x22, 0xff, 0x22, 0x0a]),
    });
    expect(names(host)).toEqual(['good', 'fine', 'same', 'more']);
    expect(host.ready.tools[2]?._meta).toMatchObject({ 'toolgate/file': 'j_first.py' });
    expect(host.ready.failed).toEqual([
      { file: 'a_syntax.py', line: 2, message: expect.stringMatching(/^SyntaxError: /) },
      {
        file: 'b_missing.py',
        line: 3,
        message:
          "ModuleNotFoundError: No module named 'a_package_that_is_not_there'. Add its package to requirements.txt.",
      },
      { file: 'c_raises.py', line: 2, message: 'ValueError: at import' },
      { file: 'd_exits.py', line: 2, message: 'it calls exit(4) while it is imported' },
      { file: 'e_sibling.py', line: 1, message: 'ValueError: at import' },
      { file: 'i_bytes.py', line: expect.anything(), message: expect.stringMatching(/^SyntaxError: /) },
      { file: 'g_varargs.py', line: expect.any(Number), message: expect.stringMatching(/^tool "bad": .*\*args/) },
      {
        file: 'h_auth.py',
        line: 2,
        message:
          'tool "guarded": auth= works only in a FastMCP server. Use a policy of Toolgate to decide who may use the tool.',
      },
      {
        file: 'k_second.py',
        line: 3,
        message: 'tool "same": j_first.py already has a tool of that name. Rename one of them.',
      },
    ]);
    expect((await host.call('good')).ok).toBe(true);
  });

  describe('that import each other and modules', () => {
    let host: Host;
    beforeAll(async () => {
      host = await startHost({
        'a.py': `from z import in_z\nfrom _shared import helper, in_shared\nfrom lib.deep import deep\n${one('in_a')}\nalias = in_a\n_hidden = in_z\n`,
        'z.py': `print("z is imported")\n${one('in_z')}`,
        '_shared.py': `def helper(): return 1\n${one('in_shared')}`,
        'lib/deep.py': 'def deep(): return 2\n',
        'json.py': `import json\n${one('in_json')}\nassert json.dumps({}) == "{}"\n`,
        'wave.py': `import wave\n${one('in_wave')}\nassert wave.__file__ != __file__\n`,
        'sdk.py': SDK,
        'loop.py': `import asyncio\nasyncio.run(asyncio.sleep(0))\n${one('looped')}`,
      });
    });

    const toolsOf = (file: string) =>
      names({
        ready: {
          tools: host.ready.tools.filter(({ _meta }) => (_meta as Record<string, unknown>)['toolgate/file'] === file),
        },
      });

    it('may import each other: a tool belongs to the file that defines it', () => {
      expect(host.ready.failed).toEqual([]);
      expect(toolsOf('a.py')).toEqual(['in_shared', 'in_a']);
      expect(toolsOf('z.py')).toEqual(['in_z']);
      expect(host.child.stderr().match(/z is imported/g)).toHaveLength(1);
    });

    it('may have the same name as a module they import', () => {
      expect(toolsOf('json.py')).toEqual(['in_json']);
      expect(toolsOf('wave.py')).toEqual(['in_wave']);
    });

    it('may run their own event loop while being imported', () => {
      expect(toolsOf('loop.py')).toEqual(['looped']);
    });

    it('may use the FastMCP of version 1 of the MCP SDK, whichever version is installed', async () => {
      expect(toolsOf('sdk.py')).toEqual(['add', 'greet']);
      expect(host.ready.tools.find(({ name }) => name === 'greet')).toMatchObject({ title: 'Greet' });
      expect(JSON.stringify(await host.call('add', { a: 1, b: 2 }))).toContain('3');
      expect(JSON.stringify(await host.call('greet', { name: 'Ada' }))).toContain('Hello, Ada!');
      expect(JSON.stringify(await host.call('greet', { name: '' }))).toContain('nobody');
    });
  });
});
