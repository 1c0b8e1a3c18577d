"""Finds the tools in Python files without running them, and what is wrong with them.

Usage: check_tools.py RESULT FILE … writes a list with one object for each file to RESULT, as JSON.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from typing import Any, Iterator, Union

Function = Union[ast.FunctionDef, ast.AsyncFunctionDef]
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
MOST = 50


class File:
    def __init__(self) -> None:
        self.tools: list[dict[str, Any]] = []
        self.problems: list[dict[str, Any]] = []
        # Local names of FastMCP's `tool`, of modules that have it as an attribute, and of servers with a method `tool`.
        self.marks: set[str] = set()
        self.modules: dict[str, str] = {}
        self.servers: set[str] = set()

    def refuse(self, line: int, message: str) -> None:
        if len(self.problems) < MOST:
            self.problems.append({"line": line, "message": message})


def check(path: str) -> dict[str, Any]:
    file = File()
    try:
        with open(path, "rb") as source:
            tree = ast.parse(source.read(), filename=path)
        # Some errors, such as "return" outside of a function, are found only here. Nothing is run.
        compile(tree, path, "exec", dont_inherit=True)
    except SyntaxError as error:
        file.refuse(error.lineno or 1, f"{type(error).__name__}: {error.msg}")
        return {"tools": [], "problems": file.problems, "isBroken": True}
    except (RecursionError, MemoryError):
        file.refuse(1, "The code is nested too deeply to be read.")
        return {"tools": [], "problems": file.problems, "isBroken": True}
    except ValueError as error:
        file.refuse(1, f"The file cannot be read as Python: {error}")
        return {"tools": [], "problems": file.problems, "isBroken": True}
    read_names(file, tree)
    for node in top_level(tree.body):
        if isinstance(node, FUNCTIONS):
            for decorator in node.decorator_list:
                if is_tool(file, decorator):
                    read_tool(file, node, decorator)
                    break
                if unknown_tool(file, decorator):
                    file.refuse(decorator.lineno, "@tool is not imported. Add: from fastmcp.tools import tool")
    for node in inner_functions(tree):
        if any(is_tool(file, decorator) for decorator in node.decorator_list):
            file.refuse(node.lineno, f'"{node.name}" is defined inside of another function or class. Move it to the top level of the file.')
    return {"tools": file.tools, "problems": file.problems, "isBroken": False}


def read_names(file: File, tree: ast.Module) -> None:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level == 0:
            for name in node.names:
                local = name.asname or name.name
                if node.module in ("fastmcp.tools", "fastmcp") and name.name == "tool":
                    file.marks.add(local)
                elif node.module == "fastmcp" and name.name == "tools":
                    file.modules[local] = "fastmcp.tools"
                elif name.name in ("FastMCP", "MCPServer") and node.module is not None:
                    file.modules[local] = "FastMCP"
        elif isinstance(node, ast.Import):
            for name in node.names:
                if name.name.split(".")[0] in ("fastmcp", "mcp"):
                    file.modules[name.asname or name.name.split(".")[0]] = name.name if name.asname else name.name.split(".")[0]
    for node in tree.body:
        value = getattr(node, "value", None)
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and isinstance(value, ast.Call) and is_server(file, value.func):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            file.servers.update(target.id for target in targets if isinstance(target, ast.Name))


def is_server(file: File, function: ast.expr) -> bool:
    if isinstance(function, ast.Name):
        return file.modules.get(function.id) == "FastMCP"
    return isinstance(function, ast.Attribute) and function.attr in ("FastMCP", "MCPServer")


def top_level(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements that run when the file is imported, outside of functions and classes."""
    for node in body:
        yield node
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            continue
        for field in ("body", "orelse", "finalbody"):
            yield from top_level([inner for inner in getattr(node, field, []) if isinstance(inner, ast.stmt)])
        for handler in getattr(node, "handlers", []):
            yield from top_level(handler.body)


def inner_functions(tree: ast.Module) -> Iterator[Function]:
    for owner in ast.walk(tree):
        if isinstance(owner, (*FUNCTIONS, ast.ClassDef)):
            for node in ast.walk(owner):
                if node is not owner and isinstance(node, FUNCTIONS):
                    yield node


def is_tool(file: File, decorator: ast.expr) -> bool:
    target = decorator.func if isinstance(decorator, ast.Call) else decorator
    if isinstance(target, ast.Name):
        return target.id in file.marks
    if not isinstance(target, ast.Attribute) or target.attr != "tool":
        return False
    owner = target.value
    if isinstance(owner, ast.Name):
        return owner.id in file.servers or file.modules.get(owner.id) in ("fastmcp", "fastmcp.tools")
    # fastmcp.tools.tool
    return (
        isinstance(owner, ast.Attribute)
        and owner.attr == "tools"
        and isinstance(owner.value, ast.Name)
        and file.modules.get(owner.value.id) == "fastmcp"
    )


def unknown_tool(file: File, decorator: ast.expr) -> bool:
    target = decorator.func if isinstance(decorator, ast.Call) else decorator
    return isinstance(target, ast.Name) and target.id == "tool" and not file.marks


def read_tool(file: File, node: Function, decorator: ast.expr) -> None:
    name = node.name
    description = ast.get_docstring(node)
    if isinstance(decorator, ast.Call):
        given = [argument for argument in decorator.args if isinstance(argument, ast.Constant)]
        if given and isinstance(given[0].value, str):
            name = given[0].value
        for keyword in decorator.keywords:
            if keyword.arg == "name" and isinstance(keyword.value, ast.Constant) and isinstance(keyword.value.value, str):
                name = keyword.value.value
            elif keyword.arg == "description":
                text = keyword.value.value if isinstance(keyword.value, ast.Constant) else None
                description = text if isinstance(text, str) else description or "…"
    if node.name.startswith("_"):
        file.refuse(node.lineno, f'"{node.name}" begins with "_", so it is not served. Rename it.')
    if not (description or "").strip():
        file.refuse(node.lineno, f'"{node.name}" has no docstring. Say in it what the tool does, for the model that uses it.')
    arguments = node.args
    for argument in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]:
        if argument.annotation is None:
            file.refuse(argument.lineno, f'The parameter "{argument.arg}" of "{node.name}" has no type hint. Write, for example, {argument.arg}: str')
    for star, argument in (("*", arguments.vararg), ("**", arguments.kwarg)):
        if argument is not None:
            file.refuse(argument.lineno, f'"{node.name}" has the parameter {star}{argument.arg}, which a tool cannot have. Name each parameter.')
    if any(tool["name"] == name for tool in file.tools):
        file.refuse(node.lineno, f'There are two tools called "{name}". Rename one of them.')
    # FastMCP moves what follows to the schema.
    [shown, *_] = re.split(r"\n\s*(?:Args|Arguments|Parameters|Returns|Raises|Example|Examples):\s*\n", description or "")
    file.tools.append({"name": name, "description": shown.strip(), "line": node.lineno})


if __name__ == "__main__":
    with open(sys.argv[1], "w", encoding="utf-8") as result:
        json.dump([check(path) for path in sys.argv[2:]], result)
