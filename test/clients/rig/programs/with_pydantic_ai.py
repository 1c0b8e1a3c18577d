"""An agent of Pydantic AI. It keeps the list of tools until it is told of a change."""

import asyncio

from fastmcp.client.transports import StdioTransport
from job import args, command, model_url, prompt, report, url
from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider


async def main():
    model = OpenAIChatModel("scripted", provider=OpenAIProvider(base_url=model_url, api_key="test"))
    toolset = MCPToolset(url or StdioTransport(command=command, args=args), include_instructions=True, init_timeout=60)
    agent = Agent(model, toolsets=[toolset])
    async with agent:
        result = await agent.run(prompt)
        try:
            resources = len(await toolset.list_resources())
        except Exception as error:
            resources = repr(error)
        report(output=result.output, resources=resources)


asyncio.run(main())
