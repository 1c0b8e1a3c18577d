"""Tool files that were written for the FastMCP of version 1 of the MCP SDK, `mcp.server.fastmcp`.

FastMCP began there, and version 2 of the SDK, which FastMCP uses now, has no such module. Tool files get FastMCP's own
classes in its place, also if a folder pins version 1: tools that the SDK's class keeps to itself could not be found.
"""

from __future__ import annotations

import functools
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

NAME = "mcp.server.fastmcp"


class SdkModules:
    """Makes the modules when the first of them is imported, because most folders need none of them."""

    def find_spec(self, name: str, _path: Any = None, _target: Any = None) -> Any:
        if name != NAME and not name.startswith(NAME + "."):
            return None
        return ModuleSpec(name, self, is_package=True) if name in modules() else None

    def create_module(self, spec: Any) -> ModuleType:
        module = ModuleType(spec.name)
        vars(module).update(modules()[spec.name])
        return module

    def exec_module(self, _module: ModuleType) -> None:
        pass


def offer_sdk_modules() -> None:
    sys.meta_path.insert(0, SdkModules())


@functools.lru_cache(maxsize=None)
def modules() -> dict[str, dict[str, Any]]:
    import mcp.types
    from fastmcp import Context, FastMCP
    from fastmcp.exceptions import PromptError, ResourceError, ToolError
    from fastmcp.prompts import Message
    from fastmcp.utilities.types import Audio, Image

    class SdkServer(FastMCP):
        """Only its decorators matter. How it would serve is of no use in a folder."""

        def __init__(self, name: str | None = None, instructions: str | None = None, **_settings: Any):
            super().__init__(name, instructions)

        def tool(self, *args: Any, structured_output: bool | None = None, **options: Any) -> Any:
            if structured_output is False:
                options["output_schema"] = None
            return super().tool(*args, **options)

    class UserMessage(Message):
        def __init__(self, content: Any, **_more: Any):
            super().__init__(content, role="user")

    class AssistantMessage(Message):
        def __init__(self, content: Any, **_more: Any):
            super().__init__(content, role="assistant")

    server = {"FastMCP": SdkServer, "Context": Context}
    media = {"Image": Image, "Audio": Audio}
    messages = {"Message": Message, "UserMessage": UserMessage, "AssistantMessage": AssistantMessage}
    return {
        NAME: {**server, **media, "Icon": mcp.types.Icon},
        f"{NAME}.server": server,
        f"{NAME}.exceptions": {"ToolError": ToolError, "ResourceError": ResourceError, "PromptError": PromptError},
        f"{NAME}.prompts": messages,
        f"{NAME}.prompts.base": messages,
        f"{NAME}.utilities": {},
        f"{NAME}.utilities.types": media,
    }
