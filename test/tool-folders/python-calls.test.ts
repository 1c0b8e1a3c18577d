/** The host for Python tools, called over its socket: definitions, arguments, results and errors. */
import { beforeAll, describe, expect, it } from 'vitest';
import { waitFor } from '../support/processes.ts';
import { type Host, noPython, startHost } from '../support/python.ts';

const tools = `
import asyncio, sys, time
from dataclasses import dataclass
from typing import Annotated, Literal
import anyio
from fastmcp import Context
from fastmcp.exceptions import ToolError
from fastmcp.server.dependencies import get_context
from fastmcp.tools import ToolResult, tool
from fastmcp.utilities.types import Image
from pydantic import BaseModel, Field

@tool
def greet(name: str, times: int = 1) -> str:
    """Greets somebody.

    Args:
        name: Who is greeted.
    """
    return "Hello " * times + name

@tool("renamed")
async def other() -> int:
    return 7

class Place(BaseModel):
    x: int
    tags: list[str] = []
    note: str | None = None

@tool(
    name="move", title="Move it", description="Moves a place.", tags={"b", "a"},
    annotations={"readOnlyHint": True, "openWorldHint": False}, meta={"owner": "me"},
)
def move(place: Place, by: Annotated[int, "How far."] = 3, way: Literal["up", "down"] = "up") -> Place:
    return Place(x=place.x + by)

@tool
def loose(value: float):
    return {"value": value, "nothing": None}

@tool
def nothing() -> None:
    pass

@tool
def picture():
    return Image(data=b"\\x89PNG", format="png")

@tool
def said(fails: bool) -> ToolResult:
    return ToolResult(content="as it is", structured_content={"a": 1}, meta={"m": 2}, is_error=fails)

@tool(output_schema=None)
def text_only() -> str:
    return "just text"

@tool
def counted(n: int) -> list[int]:
    yield from range(n)

@tool
async def counted_slowly(n: int) -> list[int]:
    for i in range(n):
        await asyncio.sleep(0)
        yield i

@tool
def no_number() -> float:
    return float("nan")

@tool
def fails():
    def inner():
        raise ValueError("no luck")
    inner()

@tool
def says_so():
    raise ToolError("ask somebody else")

@tool
def leaves():
    sys.exit(3)

@tool
def lacks():
    import a_package_that_is_not_there

@tool
def checks_itself():
    Place(x="no")

@tool
async def late():
    await asyncio.wait_for(asyncio.sleep(5), 0.01)

@tool
async def in_group():
    async with anyio.create_task_group() as group:
        async def inner():
            raise KeyError("grouped")
        group.start_soon(inner)

class Mute(Exception):
    def __str__(self):
        raise ValueError("no text")

@tool
def mute():
    raise Mute()

@tool
def half():
    return "\\ud800"

@tool
def half_said():
    raise ValueError("half \\ud800")

@tool
async def tells(n: int, ctx: Context) -> str:
    for i in range(n):
        await ctx.report_progress(i + 1, n, f"step {i + 1}")
    await ctx.debug("a")
    await ctx.info("b", extra={"more": 1})
    await ctx.warning("c", logger_name="mine")
    await ctx.error("d")
    await ctx.log("e", level="notice")
    return ctx.request_id

@tool
def tells_from_thread(ctx: Context) -> str:
    anyio.from_thread.run(ctx.info, "from a thread")
    asyncio.run(ctx.report_progress(1))
    return "done"

@tool
async def finds() -> str:
    await get_context().info("found")
    return get_context().request_id

@tool
async def wants(what: str, ctx: Context) -> str:
    if what == "elicit":
        await ctx.elicit("Your name?", str)
    if what == "session":
        await ctx.session.send_ping()
    if what == "session_id":
        ctx.session_id
    if what == "state":
        await ctx.set_state("a", 1)
    if what == "unserializable":
        await ctx.set_state("a", object())
    await ctx.set_state("a", 1, serializable=False)
    return str(await ctx.get_state("a"))
`;

const lineOf = (text: string) => tools.split('\n').findIndex((line) => line.includes(text)) + 1;

describe.skipIf(noPython)('a tool in a Python file', () => {
  let host: Host;
  beforeAll(async () => {
    host = await startHost({ 'all.py': tools });
  }, 180_000);

  const definition = (name: string) => host.ready.tools.find((tool) => tool.name === name);

  it('has the definition that FastMCP would give it', async () => {
    expect(host.ready).toMatchObject({ op: 'ready', namespace: 'tests', failed: [] });
    expect(definition('greet')).toEqual({
      name: 'greet',
      title: expect.any(String),
      description: 'Greets somebody.',
      inputSchema: {
        type: 'object',
        additionalProperties: false,
        required: ['name'],
        properties: {
          name: { type: 'string', description: 'Who is greeted.' },
          times: { type: 'integer', default: 1 },
        },
      },
      outputSchema: {
        type: 'object',
        properties: { result: { type: 'string' } },
        required: ['result'],
        'x-fastmcp-wrap-result': true,
      },
      _meta: { fastmcp: { tags: [] }, 'toolgate/file': 'all.py' },
    });
    expect(definition('move')).toMatchObject({
      title: 'Move it',
      description: 'Moves a place.',
      annotations: { readOnlyHint: true, openWorldHint: false },
      inputSchema: { properties: { by: { description: 'How far.', default: 3 }, way: { enum: ['up', 'down'] } } },
      outputSchema: { type: 'object', properties: { x: { type: 'integer' } } },
      _meta: { owner: 'me', fastmcp: { tags: ['a', 'b'] }, 'toolgate/file': 'all.py' },
    });
    expect(definition('renamed')).toBeDefined();
    expect(definition('loose')).not.toHaveProperty('outputSchema');
    // A parameter that FastMCP injects is not an argument.
    expect(definition('tells')?.inputSchema).toMatchObject({ required: ['n'], properties: { n: { type: 'integer' } } });
    expect(JSON.stringify(definition('tells'))).not.toContain('ctx');
  });

  it('is listed and described on request', async () => {
    expect(await host.ask({ op: 'tools.list' })).toMatchObject({ ok: true, result: { tools: host.ready.tools } });
    const schema = await host.ask({ op: 'tools.get_schema', tool: 'greet' });
    expect(schema.result).toEqual(definition('greet'));
    expect((await host.ask({ op: 'tools.get_schema', tool: 'gone' })).error?.code).toBe('tool_not_found');
    expect(await host.ask({ op: 'ping' })).toMatchObject({ ok: true, result: {} });
  });

  it('returns its result in MCP form, with id, ok and result first in the line', async () => {
    const greeted = await host.call('greet', { name: 'Ann "x"\n', times: 2 });
    expect(greeted.result).toEqual({
      content: [{ type: 'text', text: 'Hello Hello Ann "x"\n' }],
      structuredContent: { result: 'Hello Hello Ann "x"\n' },
      _meta: { fastmcp: { wrap_result: true } },
    });
    expect(greeted.latency_ms).toBeGreaterThan(0);
    expect(host.lines.at(-1)).toMatch(/^\{"id":"\d+","ok":true,"result":\{.*\},"latency_ms":[\d.]+\}$/);

    expect((await host.call('move', { place: { x: 1 } })).result).toEqual({
      content: [{ type: 'text', text: '{"x":4,"tags":[],"note":null}' }],
      structuredContent: { x: 4, tags: [], note: null },
    });
    expect((await host.call('loose', { value: 1.5 })).result).toEqual({
      content: [{ type: 'text', text: '{"value":1.5,"nothing":null}' }],
      structuredContent: { value: 1.5, nothing: null },
    });
    expect((await host.call('nothing')).result).toMatchObject({ content: [] });
    expect((await host.call('text_only')).result).toEqual({ content: [{ type: 'text', text: 'just text' }] });
    expect((await host.call('picture')).result).toEqual({
      content: [{ type: 'image', data: 'iVBORw==', mimeType: 'image/png' }],
    });
    const counted = { content: [{ text: '[0,1,2]' }], structuredContent: { result: [0, 1, 2] } };
    expect((await host.call('counted', { n: 3 })).result).toMatchObject(counted);
    expect((await host.call('counted_slowly', { n: 3 })).result).toMatchObject(counted);
    expect((await host.call('no_number')).result).toMatchObject({ structuredContent: { result: null } });
  });

  it('may return a result object of its own, including one with isError', async () => {
    const own = { content: [{ type: 'text', text: 'as it is' }], structuredContent: { a: 1 }, _meta: { m: 2 } };
    expect((await host.call('said', { fails: false })).result).toEqual(own);
    expect(await host.call('said', { fails: true })).toMatchObject({ ok: true, result: { ...own, isError: true } });
  });

  it('accepts arguments as leniently as FastMCP, and reports invalid ones', async () => {
    expect((await host.call('greet', { name: 'x', times: '2' })).result).toMatchObject({
      structuredContent: { result: 'Hello Hello x' },
    });
    expect((await host.call('loose', { value: '1.5' })).result).toMatchObject({ structuredContent: { value: 1.5 } });
    expect((await host.call('greet', { times: 'many', extra: 'a-secret' })).error).toEqual({
      code: 'invalid_arguments',
      message:
        'The arguments do not fit "greet": name: Missing required argument; times: Input should be a valid integer, unable to parse string as an integer; extra: Unexpected keyword argument.',
      details: {
        errors: [
          { type: 'missing_argument', loc: ['name'], msg: 'Missing required argument' },
          { type: 'int_parsing', loc: ['times'], msg: expect.any(String) },
          { type: 'unexpected_keyword_argument', loc: ['extra'], msg: 'Unexpected keyword argument' },
        ],
      },
    });
    const deep = await host.call('move', { place: { x: 1, tags: ['a', 7] } });
    expect(deep.error?.message).toContain('place.tags.1: Input should be a valid string');
    // A caller cannot pass a parameter that FastMCP injects.
    expect((await host.call('tells', { n: 1, ctx: {} })).error?.code).toBe('invalid_arguments');
    expect((await host.call('greet', ['x'])).error?.code).toBe('invalid_arguments');
    expect((await host.ask({ op: 'tools.call', tool: 'renamed' })).ok).toBe(true);
  });

  it.each([
    ['gone', { code: 'tool_not_found', message: 'There is no tool "gone" in "tests".' }],
    [
      'fails',
      {
        code: 'internal_error',
        message: 'no luck',
        details: { type: 'ValueError', file: 'all.py', line: lineOf('no luck') },
      },
    ],
    ['says_so', { code: 'internal_error', message: 'ask somebody else' }],
    [
      'leaves',
      {
        code: 'internal_error',
        message: 'The tool called exit(3). A tool returns or raises instead.',
      },
    ],
    ['lacks', { code: 'dependency_error', message: expect.stringContaining('a_package_that_is_not_there') }],
    ['checks_itself', { code: 'internal_error', details: { type: 'ValidationError', file: 'all.py' } }],
    ['late', { code: 'execution_timeout' }],
    ['in_group', { code: 'internal_error', message: "'grouped'", details: { type: 'KeyError', file: 'all.py' } }],
    ['mute', { code: 'internal_error', message: 'Mute' }],
    ['half', { code: 'internal_error' }],
    ['half_said', { code: 'internal_error', message: 'half \ud800' }],
  ])('that fails is answered with an error code: %s', async (name, error) => {
    expect((await host.call(name)).error).toMatchObject(error);
    expect((await host.call('greet', { name: 'x' })).ok).toBe(true);
  });

  it('logs and reports progress through its context if the caller asks for it', async () => {
    host.events.length = 0;
    const answer = await host.call('tells', { n: 2 }, { id: 'told', progress: true });
    expect(answer.result).toMatchObject({ structuredContent: { result: 'told' } });
    const log = (level: string, msg: string, extra: unknown = null, logger = 'all.py') => {
      return { op: 'log', id: 'told', level, logger, data: { msg, extra } };
    };
    expect(host.events).toEqual([
      { op: 'progress', id: 'told', progress: 1, total: 2, message: 'step 1' },
      { op: 'progress', id: 'told', progress: 2, total: 2, message: 'step 2' },
      log('debug', 'a'),
      log('info', 'b', { more: 1 }),
      log('warning', 'c', null, 'mine'),
      log('error', 'd'),
      log('notice', 'e'),
    ]);
    host.events.length = 0;
    await host.call('tells', { n: 2 });
    expect(host.events.filter(({ op }) => op === 'progress')).toEqual([]);
    expect((await host.call('finds', {}, { id: 'f' })).result).toMatchObject({ structuredContent: { result: 'f' } });
  });

  it('reports progress from a thread too', async () => {
    host.events.length = 0;
    expect((await host.call('tells_from_thread', {}, { progress: true })).ok).toBe(true);
    expect(host.events).toMatchObject([
      { op: 'log', data: { msg: 'from a thread' } },
      { op: 'progress', progress: 1 },
    ]);
  });

  it('asks over the socket, and goes on with the answer', async () => {
    host.events.length = 0;
    const asking = host.call('wants', { what: 'elicit' }, { id: 'asks', caller: { agent: 'ann', session_id: 's' } });
    const [event] = await waitFor(() => host.events.length > 0 && host.events);
    expect(event).toMatchObject({
      op: 'ask',
      id: 'asks',
      method: 'elicitation/create',
      params: { message: 'Your name?' },
    });
    host.connection.write(`{"op":"answer","id":"asks","ask":${event!.ask},"ok":false,"error":"nobody is there"}\n`);
    expect((await asking).error?.message).toBe('nobody is there');
  });

  it('gets a clear error for context features that only a FastMCP server has', async () => {
    const { error } = await host.call('wants', { what: 'session' });
    expect(error?.message).toBe('ctx.session.send_ping works only in a FastMCP server, not in a folder of tools.');
    expect((await host.call('wants', { what: 'session_id' })).error?.message).toContain('did not say who calls');
    expect((await host.call('wants', { what: 'unserializable' })).error?.message).toContain('is not serializable');
    expect((await host.call('wants', { what: 'nothing' })).result).toMatchObject({
      structuredContent: { result: '1' },
    });
  });
});
