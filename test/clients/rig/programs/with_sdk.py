"""The Python SDK in either major version: list, activate, list again, call."""

import asyncio
from contextlib import AsyncExitStack
from importlib.metadata import version

from job import ACTIVATE, ENTITIES, args, command, report, url
from mcp import StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

told = []


async def tell(message):
    told.append(type(getattr(message, "root", message)).__name__)


async def connect(stack):
    transport = streamable_http_client(url) if url else stdio_client(StdioServerParameters(command=command, args=args))
    if version("mcp").startswith("1."):
        from mcp import ClientSession

        read, write, *_ = await stack.enter_async_context(transport)
        session = await stack.enter_async_context(ClientSession(read, write, message_handler=tell))
        return session, (await session.initialize()).instructions
    from mcp import Client

    client = await stack.enter_async_context(Client(transport, message_handler=tell))
    return client, client.instructions


async def main():
    async with AsyncExitStack() as stack:
        client, instructions = await connect(stack)
        before = (await client.list_tools()).tools
        await client.call_tool("toolman_activate", ACTIVATE)
        after = (await client.list_tools()).tools
        answer = await client.call_tool("memory_create_entities", ENTITIES)
        try:
            resources = len((await client.list_resources()).resources)
        except Exception as error:
            resources = repr(error)
        report(
            instructions=instructions,
            before={tool.name: tool.description for tool in before},
            after=[tool.name for tool in after],
            answer=answer.content[0].text,
            resources=resources,
            told=any("ToolListChanged" in name for name in told),
        )


asyncio.run(main())
