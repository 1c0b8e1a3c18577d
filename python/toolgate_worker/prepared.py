"""Prepares a tool once, so that a call only checks the arguments, runs the function and renders the result.

FastMCP creates definitions, validators and results. Its server is not used, because most of the time of a call would be
spent there.
"""

from __future__ import annotations

import functools
import inspect
from typing import Any, get_type_hints

import pydantic_core
from anyio.to_thread import run_sync
from fastmcp.server.dependencies import without_injected_parameters
from fastmcp.tools import Tool
from fastmcp.utilities.async_utils import is_coroutine_function
from fastmcp.utilities.types import get_cached_typeadapter


class PreparedTool:
    kind = "tool"
    __slots__ = ("tool", "file", "name", "timeout", "definition", "injected", "threaded", "run", "_validate", "_text")

    def __init__(self, tool: Tool, file: str):
        self.tool = tool
        self.file = file
        self.name = tool.name
        self.timeout = tool.timeout
        self.definition = define(tool, file)
        function = getattr(tool, "fn", None)
        if function is None:
            raise TypeError("it was not created from a function")
        # Without the parameters that FastMCP injects: context and dependencies.
        plain = without_injected_parameters(function)
        self.injected = plain is not function
        self._validate = validator_of(plain)
        # A thread keeps running after its call was given up.
        self.threaded = runs_in_thread(plain, getattr(tool, "run_in_thread", True))
        self.run = runner_of(plain, self.threaded)
        # Most tools return a string and say so. Their results are rendered without FastMCP.
        self._text = plain_text(tool)

    def check(self, arguments: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments to call the function with. Raises pydantic's ValidationError."""
        return self._validate(arguments)

    def render(self, raw: Any) -> bytes:
        """The MCP result as JSON."""
        if self._text is not None and type(raw) is str:
            text = pydantic_core.to_json(raw)
            before, between, after = self._text
            return b"".join((before, text, between, text, after) if between else (before, text, after))
        if type(raw).__name__ == "InputRequiredResult":
            raise RuntimeError("the tool asks the client for input, which tools in a folder cannot do")
        converted = self.tool.convert_result(raw)
        result: dict[str, Any] = {"content": converted.content}
        if converted.structured_content is not None:
            result["structuredContent"] = converted.structured_content
        if converted.is_error:
            result["isError"] = True
        if converted.meta is not None:
            result["_meta"] = converted.meta
        return to_json(result)


def to_json(value: Any, fallback: Any = None) -> bytes:
    return pydantic_core.to_json(value, by_alias=True, exclude_none=True, inf_nan_mode="null", fallback=fallback)


def define(tool: Tool, file: str) -> dict[str, Any]:
    definition = tool.to_mcp_tool().model_dump(mode="json", by_alias=True, exclude_none=True)
    # Workers do not support MCP tasks.
    definition.pop("execution", None)
    definition["_meta"] = {**definition.get("_meta", {}), "toolgate/file": file}
    return definition


def validator_of(function: Any) -> Any:
    """FastMCP's validator for a function with the same signature that only returns its arguments.

    Otherwise a bad argument could be confused with a ValidationError that the tool itself raises.
    """

    def called_with(*args: Any, **kwargs: Any) -> Any:
        return args, kwargs

    signature = inspect.signature(function)
    hints = hints_of(function)
    annotations = {
        name: hints.get(name, parameter.annotation)
        for name, parameter in signature.parameters.items()
        if name in hints or parameter.annotation is not inspect.Parameter.empty
    }
    called_with.__signature__ = signature.replace(return_annotation=inspect.Signature.empty)
    called_with.__annotations__ = annotations
    called_with.__module__ = getattr(function, "__module__", None) or __name__
    called_with.__name__ = getattr(function, "__name__", "tool")
    return get_cached_typeadapter(called_with).validate_python


def hints_of(function: Any) -> dict[str, Any]:
    while isinstance(function, functools.partial):
        function = function.func
    try:
        return get_type_hints(function, include_extras=True)
    except Exception:
        return dict(getattr(function, "__annotations__", {}))


def runs_in_thread(function: Any, wanted: bool) -> bool:
    return wanted and not is_coroutine_function(function) and not inspect.isasyncgenfunction(function)


def runner_of(function: Any, threaded: bool) -> Any:
    if is_coroutine_function(function):

        async def run(args: tuple[Any, ...], kwargs: dict[str, Any], _: Any) -> Any:
            return await finished(await function(*args, **kwargs))

    elif threaded:

        def call(args: tuple[Any, ...], kwargs: dict[str, Any], owner: Any) -> Any:
            owner.runs = True
            try:
                result = function(*args, **kwargs)
                return list(result) if inspect.isgenerator(result) else result
            finally:
                owner.thread_returned()

        async def run(args: tuple[Any, ...], kwargs: dict[str, Any], owner: Any) -> Any:
            return await finished(await run_sync(call, args, kwargs, owner, abandon_on_cancel=True))

    else:

        async def run(args: tuple[Any, ...], kwargs: dict[str, Any], _: Any) -> Any:
            return await finished(function(*args, **kwargs))

    return run


async def finished(result: Any) -> Any:
    if type(result) is str:
        return result
    if inspect.isawaitable(result):
        result = await result
    if inspect.isasyncgen(result):
        return [item async for item in result]
    return list(result) if inspect.isgenerator(result) else result


def plain_text(tool: Tool) -> tuple[bytes, bytes, bytes] | None:
    """The JSON around a string result. FastMCP renders a sample string, which is then cut out."""
    if getattr(tool, "return_type", None) is not str:
        return None
    converted = tool.convert_result("\N{SNOWMAN}")
    result: dict[str, Any] = {"content": converted.content}
    if converted.structured_content is not None:
        result["structuredContent"] = converted.structured_content
    if converted.meta is not None:
        result["_meta"] = converted.meta
    parts = to_json(result).split('"\N{SNOWMAN}"'.encode())
    if len(parts) == 2:
        return parts[0], b"", parts[1]
    return (parts[0], parts[1], parts[2]) if len(parts) == 3 else None
