"""An agent of the OpenAI Agents SDK. It asks for the tools before every request, unless it is told to keep them."""

import asyncio

from agents import Agent, OpenAIChatCompletionsModel, Runner, set_tracing_disabled
from agents.mcp import MCPServerStdio, MCPServerStreamableHttp
from job import args, command, model_url, prompt, report, url
from openai import AsyncOpenAI

set_tracing_disabled(True)


async def main():
    server = (
        MCPServerStreamableHttp({"url": url}, client_session_timeout_seconds=60)
        if url
        else MCPServerStdio({"command": command, "args": args}, client_session_timeout_seconds=60)
    )
    model = OpenAIChatCompletionsModel(model="scripted", openai_client=AsyncOpenAI(base_url=model_url, api_key="test"))
    async with server:
        agent = Agent(name="assistant", model=model, mcp_servers=[server])
        result = await Runner.run(agent, prompt)
        report(output=result.final_output)


asyncio.run(main())
