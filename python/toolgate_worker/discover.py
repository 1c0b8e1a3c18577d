"""Finds the tools in a folder. A broken file is reported with its line and affects no other file."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
import re
import sys
import traceback
from types import ModuleType
from typing import Any, Iterator

from fastmcp.decorators import get_fastmcp_meta
from fastmcp.tools import Tool
from fastmcp.tools.function_tool import FunctionTool, ToolMeta

from .prepared import PreparedTool

Failure = dict[str, Any]


def discover(folder: str) -> tuple[dict[str, PreparedTool], list[Failure]]:
    # Last, so that "import docker" does not import a tool file called docker.py.
    sys.path.append(folder)
    failed: list[Failure] = []
    modules: dict[str, ModuleType] = {}
    for name in tool_files(folder):
        file = os.path.join(folder, name)
        try:
            modules[name] = load(file)
        except KeyboardInterrupt:
            raise
        # Includes SystemExit: a file that exits ends only its own import.
        except BaseException as error:
            traceback.print_exc()
            failed.append({"file": name, "line": line_in(file, error), "message": explain(error, file)})

    module_names = {module.__name__ for module in modules.values()}
    tools: dict[str, PreparedTool] = {}
    for name, module in modules.items():
        for marked in marked_in(module, module_names):
            collect(marked, name, tools, failed)
    return tools, failed


def tool_files(folder: str) -> list[str]:
    def is_tool_file(name: str) -> bool:
        if not name.endswith(".py") or name[0] in "_." or name.endswith(".test.py"):
            return False
        path = os.path.join(folder, name)
        # Links out of the folder are ignored.
        return os.path.isfile(path) and os.path.realpath(path).startswith(folder + os.sep)

    return sorted(name for name in os.listdir(folder) if is_tool_file(name))


def load(file: str) -> ModuleType:
    stem = os.path.basename(file)[: -len(".py")]
    # If other files can import it by its plain name, it gets that name, so that it is imported only once.
    if origin_of(stem) == file:
        return importlib.import_module(stem)
    name = "toolgate_tools_" + re.sub(r"\W", "_", stem)
    spec = importlib.util.spec_from_file_location(name, file)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name, None)
        raise
    return module


def origin_of(stem: str) -> str | None:
    try:
        spec = importlib.util.find_spec(stem)
    except (ImportError, ValueError, AttributeError):
        return None
    return spec.origin if spec else None


def marked_in(module: ModuleType, module_names: set[str]) -> Iterator[Any]:
    """The functions with FastMCP's @tool, and the Tool objects."""
    seen: set[int] = set()
    for name, value in list(vars(module).items()):
        if name.startswith("_") or id(value) in seen:
            continue
        seen.add(id(value))
        if not isinstance(value, Tool) and not isinstance(meta_of(value), ToolMeta):
            continue
        # A tool that is imported from another tool file belongs to that file.
        owner = getattr(getattr(value, "fn", value), "__module__", None)
        if owner == module.__name__ or owner not in module_names:
            yield value


def meta_of(value: Any) -> Any:
    # A module may contain anything, even objects that have every attribute.
    if not callable(value) or inspect.isclass(value):
        return None
    try:
        return get_fastmcp_meta(value)
    except Exception:
        return None


def collect(marked: Any, file: str, tools: dict[str, PreparedTool], failed: list[Failure]) -> None:
    meta = None if isinstance(marked, Tool) else meta_of(marked)
    if meta is not None and not meta.enabled:
        return
    line = line_of(marked)
    name = getattr(meta, "name", None) or getattr(marked, "__name__", None) or getattr(marked, "name", "?")
    try:
        tool = marked if meta is None else FunctionTool.from_function(marked, metadata=meta)
        if tool.name in tools:
            first = tools[tool.name].file
            raise ValueError(f"{first} already has a tool of that name. Rename one of them.")
        if tool.auth:
            raise ValueError("auth= works only in a FastMCP server. Use a policy of Toolgate to decide who may use the tool.")
        tools[tool.name] = PreparedTool(tool, file)
    except Exception as error:
        failed.append({"file": file, "line": line, "message": f'tool "{name}": {error}'})


def line_of(marked: Any) -> int | None:
    function = inspect.unwrap(getattr(marked, "fn", marked))
    code = getattr(function, "__code__", None)
    return code.co_firstlineno if code else None


def line_in(file: str, error: BaseException) -> int | None:
    """The last line of the file that ran before the error, even if the error was raised elsewhere."""
    if isinstance(error, SyntaxError) and error.filename == file:
        return error.lineno
    lines = [line for frame, line in traceback.walk_tb(error.__traceback__) if frame.f_code.co_filename == file]
    return lines[-1] if lines else None


def explain(error: BaseException, file: str) -> str:
    if isinstance(error, SystemExit):
        return f"it calls exit({error.code}) while it is imported"
    kind = type(error).__name__
    if isinstance(error, SyntaxError):
        where = "" if error.filename in (None, file) else f" ({os.path.basename(error.filename)}, line {error.lineno})"
        return f"{kind}: {error.msg}{where}"
    text = f"{kind}: {error}" if str(error) else kind
    if isinstance(error, ModuleNotFoundError):
        return f"{text}. Add its package to requirements.txt."
    return text
