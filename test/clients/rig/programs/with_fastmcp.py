"""The client of FastMCP: list, activate, list again, call."""

import asyncio

from fastmcp import Client
from fastmcp.client.messages import MessageHandler
from fastmcp.client.transports import StdioTransport
from job import ACTIVATE, ENTITIES, args, command, report, url


class Told(MessageHandler):
    tools = False

    async def on_tool_list_changed(self, message):
        self.tools = True


async def main():
    told = Told()
    async with Client(url or StdioTransport(command=command, args=args), message_handler=told) as client:
        before = await client.list_tools()
        await client.call_tool("toolman_activate", ACTIVATE)
        after = await client.list_tools()
        answer = await client.call_tool("memory_create_entities", ENTITIES)
        try:
            resources = len(await client.list_resources())
        except Exception as error:
            resources = repr(error)
        report(
            instructions=client.instructions if hasattr(client, "instructions") else None,
            before={tool.name: tool.description for tool in before},
            after=[tool.name for tool in after],
            answer=answer.content[0].text,
            resources=resources,
            told=told.tools,
        )


asyncio.run(main())
