"""Finds the tools, prompts and resources in a folder. A broken file is reported with its line and affects no other file."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
import re
import sys
import traceback
from types import ModuleType
from typing import Any, Iterator, NamedTuple, Union

from fastmcp.decorators import get_fastmcp_meta
from fastmcp.tools import Tool
from fastmcp.tools.function_tool import FunctionTool, ToolMeta

from .items import COMPONENTS, MARKS, PreparedItem, prepare_item
from .last_good import VersionLoader, importing_from, read_versions
from .prepared import PreparedTool
from .sdk import offer_sdk_modules

Failure = dict[str, Any]
Prepared = Union[PreparedTool, PreparedItem]


class Found(NamedTuple):
    tools: dict[str, PreparedTool]
    # By kind and name.
    others: dict[tuple[str, str], PreparedItem]
    failed: list[Failure]


def discover(folder: str, last_good: str | None = None) -> Found:
    """`last_good` is the folder with earlier versions of files, which take the place of files that fail."""
    # Last, so that "import docker" does not import a tool file called docker.py.
    sys.path.append(folder)
    offer_sdk_modules()
    files = tool_files(folder)
    names = {file: module_name(os.path.join(folder, file)) for file in files}
    found, failed = load_all(folder, files, names)
    broken = {failure["file"] for failure in failed}
    versions = {file: version for file, version in read_versions(last_good).items() if file in broken}
    for version in sorted(set(versions.values())):
        with importing_from(version, folder):
            files_of_version = [file for file in files if versions.get(file) == version]
            kept, problems = load_all(folder, files_of_version, names, version)
        still_broken = {problem["file"] for problem in problems}
        found.update({file: tools for file, tools in kept.items() if file not in still_broken})
        for failure in failed:
            if failure["file"] in kept and failure["file"] not in still_broken:
                failure["isKept"] = True

    items: dict[tuple[str, str], Prepared] = {}
    for file in files:
        for item in found.get(file, []):
            first = items.setdefault((item.kind, item.name), item)
            if first is not item:
                message = f'{item.kind} "{item.name}": {first.file} already has a {item.kind} of that name. Rename one of them.'
                failed.append({"file": file, "line": line_of(item.tool), "message": message})
    tools = {name: item for (kind, name), item in items.items() if kind == "tool"}
    return Found(tools, {key: item for key, item in items.items() if key[0] != "tool"}, failed)


def load_all(
    folder: str, files: list[str], names: dict[str, str], version: str | None = None
) -> tuple[dict[str, list[Prepared]], list[Failure]]:
    """The items of each file, and what is wrong."""
    failed: list[Failure] = []
    modules: dict[str, ModuleType] = {}
    for name in files:
        file = os.path.join(folder, name)
        try:
            modules[name] = load(file, names[name], version)
        except KeyboardInterrupt:
            raise
        # Includes SystemExit: a file that exits ends only its own import.
        except BaseException as error:
            traceback.print_exc()
            failed.append({"file": name, "line": line_in(file, error), "message": explain(error, file)})

    module_names = set(names.values())
    found: dict[str, list[Prepared]] = {}
    for name, module in modules.items():
        found[name] = []
        for marked in marked_in(module, module_names):
            collect(marked, name, found[name], failed)
    return found, failed


def tool_files(folder: str) -> list[str]:
    def is_tool_file(name: str) -> bool:
        if not name.endswith(".py") or name[0] in "_." or name.endswith(".test.py"):
            return False
        path = os.path.join(folder, name)
        # Links out of the folder are ignored.
        return os.path.isfile(path) and os.path.realpath(path).startswith(folder + os.sep)

    return sorted(name for name in os.listdir(folder) if is_tool_file(name))


def module_name(file: str) -> str:
    stem = os.path.basename(file)[: -len(".py")]
    # If other files can import it by its plain name, it gets that name, so that it is imported only once.
    return stem if origin_of(stem) == file else "toolgate_tools_" + re.sub(r"\W", "_", stem)


def load(file: str, name: str, version: str | None) -> ModuleType:
    if origin_of(name) == file:
        return importlib.import_module(name)
    loader = VersionLoader(name, file, os.path.join(version, os.path.basename(file))) if version else None
    spec = importlib.util.spec_from_file_location(name, file, loader=loader)
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
    """The functions with FastMCP's @tool, @prompt and @resource, and the objects that they stand for."""
    seen: set[int] = set()
    for name, value in list(vars(module).items()):
        if name.startswith("_") or id(value) in seen:
            continue
        seen.add(id(value))
        if not isinstance(value, (Tool, *COMPONENTS)) and not isinstance(meta_of(value), (ToolMeta, *MARKS)):
            continue
        # An item that is imported from another tool file belongs to that file.
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


def collect(marked: Any, file: str, items: list[Prepared], failed: list[Failure]) -> None:
    meta = None if isinstance(marked, (Tool, *COMPONENTS)) else meta_of(marked)
    if meta is not None and not meta.enabled:
        return
    if not isinstance(marked, Tool) and not isinstance(meta, ToolMeta):
        collect_other(marked, meta, file, items, failed)
        return
    line = line_of(marked)
    name = getattr(meta, "name", None) or getattr(marked, "__name__", None) or getattr(marked, "name", "?")
    try:
        tool = marked if meta is None else FunctionTool.from_function(marked, metadata=meta)
        if tool.auth:
            raise ValueError("auth= works only in a FastMCP server. Use a policy of Toolgate to decide who may use the tool.")
        items.append(PreparedTool(tool, file))
    except Exception as error:
        failed.append({"file": file, "line": line, "message": f'tool "{name}": {error}'})


def collect_other(marked: Any, meta: Any, file: str, items: list[Prepared], failed: list[Failure]) -> None:
    word = getattr(meta, "type", None) or type(marked).__name__
    name = getattr(meta, "name", None) or getattr(marked, "__name__", None) or getattr(marked, "name", "?")
    try:
        items.append(prepare_item(marked, meta, file))
    except Exception as error:
        failed.append({"file": file, "line": line_of(marked), "message": f'{word} "{name}": {error}'})


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
