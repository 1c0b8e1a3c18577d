"""An agent of LangChain with the tools of langchain-mcp-adapters, from one session that lasts as long as the agent."""

import asyncio

from job import args, command, model_url, prompt, report, url
from langchain.agents import create_agent
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_mcp_adapters.tools import load_mcp_tools
from langchain_openai import ChatOpenAI


async def main():
    way = {"transport": "http", "url": url} if url else {"transport": "stdio", "command": command, "args": args}
    client = MultiServerMCPClient({"toolgate": way})
    async with client.session("toolgate") as session:
        tools = await load_mcp_tools(session)
        agent = create_agent(ChatOpenAI(model="scripted", base_url=model_url, api_key="test"), tools)
        result = await agent.ainvoke({"messages": [("user", prompt)]})
        try:
            resources = len((await session.list_resources()).resources)
        except Exception as error:
            resources = repr(error)
        report(output=result["messages"][-1].content, resources=resources)


asyncio.run(main())
