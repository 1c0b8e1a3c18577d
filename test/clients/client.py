"""A client of the Python SDK, in either of its major versions.

Reads {"url" | "command", "transport", "mode", "steps": [[verb, ...arguments], ...]} from stdin and writes {"revision",
"answers", "heard"}: what each step gave, as it came over the wire, and what the client was asked and told meanwhile.
"""

import asyncio
import json
import sys
from contextlib import AsyncExitStack
from importlib.metadata import version

from mcp import StdioServerParameters, types
from mcp.client.sse import sse_client
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

IS_V1 = version("mcp").startswith("1.")
heard = []


def plain(value):
    return value.model_dump(mode="json", by_alias=True, exclude_none=True)


async def elicit(context, params):
    heard.append(["elicitation", params.message])
    return types.ElicitResult(action="accept", content={"username": "ada", "email": "ada@example.org"})


async def sample(context, params):
    heard.append(["sampling", plain(params)["messages"]])
    content = types.TextContent(type="text", text="a word")
    return types.CreateMessageResult(role="assistant", content=content, model="none")


async def log(params):
    heard.append(["log", params.level, params.data])


async def tell(message):
    if isinstance(message, Exception):
        heard.append(["exception", repr(message)])
    elif "ResourceUpdated" in type(getattr(message, "root", message)).__name__:
        heard.append(["updated", plain(message)["params"]["uri"]])


async def progress(done, total, message):
    heard.append(["progress", done, total])


CALLBACKS = {
    "elicitation_callback": elicit,
    "sampling_callback": sample,
    "logging_callback": log,
    "message_handler": tell,
}


async def connect(stack, job):
    parameters = job.get("command") and StdioServerParameters(**job["command"])
    open_transport = {
        "stdio": lambda: stdio_client(parameters),
        "http": lambda: streamable_http_client(job["url"]),
        "sse": lambda: sse_client(job["url"]),
    }[job["transport"]]
    if IS_V1:
        from mcp import ClientSession

        read, write, *_ = await stack.enter_async_context(open_transport())
        session = await stack.enter_async_context(ClientSession(read, write, **CALLBACKS))
        return session, (await session.initialize()).protocolVersion
    from mcp import Client

    client = Client(open_transport(), mode=job["mode"], log_level="info", **CALLBACKS)
    await stack.enter_async_context(client)
    return client, client.protocol_version


async def watch(client, revision, uri, tool, arguments):
    """Subscribes, has the resource changed, and gives the URI that it is told of."""
    if revision >= "2026":
        async with client.listen(resource_subscriptions=[uri]) as subscription:
            await client.call_tool(tool, arguments)
            return (await anext(aiter(subscription))).uri
    await client.subscribe_resource(uri)
    await client.call_tool(tool, arguments)
    updated = []
    while not updated:
        await asyncio.sleep(0.02)
        updated = [told[1] for told in heard if told[0] == "updated"]
    await client.unsubscribe_resource(uri)
    return updated[0]


async def take(client, revision, verb, arguments):
    if verb == "watch":
        return await asyncio.wait_for(watch(client, revision, *arguments), 10)
    if verb == "call_tool":
        return plain(await client.call_tool(*arguments, progress_callback=progress))
    return plain(await getattr(client, verb)(*arguments))


async def main():
    job = json.load(sys.stdin)
    answers = []
    async with AsyncExitStack() as stack:
        client, revision = await connect(stack, job)
        for verb, *arguments in job["steps"]:
            try:
                answers.append(await take(client, revision, verb, arguments))
            except Exception as error:
                details = getattr(error, "error", None)
                answers.append({"error": plain(details) if details else repr(error)})
    json.dump({"revision": revision, "answers": answers, "heard": heard}, sys.stdout)


asyncio.run(main())
