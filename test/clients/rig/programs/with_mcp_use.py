"""An agent of mcp-use for Python. It makes its tools once, from tools, resources and prompts."""

import asyncio

from job import args, command, model_url, prompt, report, url
from langchain_openai import ChatOpenAI
from mcp_use import MCPAgent, MCPClient


async def main():
    way = {"url": url} if url else {"command": command, "args": args}
    client = MCPClient({"mcpServers": {"toolgate": way}})
    try:
        agent = MCPAgent(llm=ChatOpenAI(model="scripted", base_url=model_url, api_key="test"), client=client, max_steps=40)
        report(output=await agent.run(prompt))
    finally:
        await client.close_all_sessions()


asyncio.run(main())
