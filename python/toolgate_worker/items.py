"""Prompts and resources. FastMCP creates, renders and reads them; a call of one runs like that of a tool."""

from __future__ import annotations

import inspect
from typing import Any

from fastmcp.prompts import Prompt
from fastmcp.prompts.function_prompt import FunctionPrompt, PromptMeta
from fastmcp.resources import Resource, ResourceTemplate
from fastmcp.resources.function_resource import ResourceMeta
from fastmcp.server.dependencies import without_injected_parameters

from .prepared import to_json

COMPONENTS = (Prompt, Resource, ResourceTemplate)
MARKS = (PromptMeta, ResourceMeta)


class PreparedItem:
    """What all of them have in common with a prepared tool."""

    kind: str
    timeout = None
    # They are run by FastMCP, which resolves what it injects.
    injected = True

    def __init__(self, component: Any, name: str, file: str, definition: Any):
        self.tool = component
        self.name = name
        self.file = file
        self.definition = definition.model_dump(mode="json", by_alias=True, exclude_none=True)
        self.definition["_meta"] = {**self.definition.get("_meta", {}), "toolgate/file": file}

    def check(self, arguments: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return (), arguments

    def render(self, raw: Any) -> bytes:
        return to_json(raw)


class PreparedPrompt(PreparedItem):
    kind = "prompt"

    def __init__(self, prompt: Prompt, file: str):
        super().__init__(prompt, prompt.name, file, prompt.to_mcp_prompt())

    def check(self, arguments: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        missing = [one.name for one in self.tool.arguments or [] if one.required and one.name not in arguments]
        if missing:
            raise ValueError(f'The prompt "{self.name}" needs {", ".join(missing)}.')
        return (), arguments

    async def run(self, _args: Any, arguments: dict[str, Any], _call: Any) -> Any:
        return (await self.tool._render(arguments)).to_mcp_prompt_result()


class PreparedResource(PreparedItem):
    kind = "resource"

    def __init__(self, resource: Resource, file: str):
        super().__init__(resource, str(resource.uri), file, resource.to_mcp_resource())

    def matches(self, uri: str) -> dict[str, Any] | None:
        return {} if uri == self.name else None

    async def run(self, _args: Any, arguments: dict[str, Any], _call: Any) -> Any:
        return (await self.tool._read()).to_mcp_result(arguments["uri"])


class PreparedTemplate(PreparedItem):
    kind = "template"

    def __init__(self, template: ResourceTemplate, file: str):
        super().__init__(template, template.uri_template, file, template.to_mcp_template())

    def matches(self, uri: str) -> dict[str, Any] | None:
        return self.tool.matches(uri)

    async def run(self, _args: Any, arguments: dict[str, Any], _call: Any) -> Any:
        uri = arguments["uri"]
        return (await self.tool._read(uri, self.tool.matches(uri) or {})).to_mcp_result(uri)


def prepare_item(marked: Any, meta: Any, file: str) -> PreparedItem:
    component = marked if meta is None else component_of(marked, meta)
    if getattr(component, "auth", None):
        raise ValueError("auth= works only in a FastMCP server. Use a policy of Toolgate to decide who may use it.")
    if isinstance(component, Prompt):
        return PreparedPrompt(component, file)
    return PreparedResource(component, file) if isinstance(component, Resource) else PreparedTemplate(component, file)


def component_of(function: Any, meta: Any) -> Any:
    if isinstance(meta, PromptMeta):
        return FunctionPrompt.from_function(function, metadata=meta)
    details = {
        "name": meta.name,
        "title": meta.title,
        "description": meta.description,
        "icons": meta.icons,
        "mime_type": meta.mime_type,
        "tags": meta.tags,
        "annotations": meta.annotations,
        "meta": meta.meta,
        "auth": meta.auth,
    }
    if "{" in meta.uri or inspect.signature(without_injected_parameters(function)).parameters:
        return ResourceTemplate.from_function(fn=function, uri_template=meta.uri, **details)
    return Resource.from_function(fn=function, uri=meta.uri, **details)
