"""FastMCP's Context in a worker. Its session is with the gateway, which passes questions on to the client of the call."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Mapping

from fastmcp import FastMCP
from fastmcp.server.context import Context

MAX_TOKENS = 512


class WorkerContext(Context):
    def __init__(self, server: FastMCP, call: Any):
        super().__init__(server)
        self._call = call

    @property
    def request_id(self) -> str:
        return str(self._call.id)

    @property
    def origin_request_id(self) -> str:
        return str(self._call.id)

    @property
    def client_id(self) -> str | None:
        """The agent that calls: the name that policies of Toolgate are written for."""
        return self._call.caller.get("agent")

    @property
    def session_id(self) -> str:
        """Names the session of the client, or its agent if its protocol has no sessions."""
        session_id = self._call.caller.get("session_id")
        if session_id is None:
            raise RuntimeError("session_id is not available: the gateway did not say who calls.")
        return session_id

    # Context.elicit() uses this.
    @property
    def session(self) -> Any:
        return WorkerSession(self._call)

    async def sample(
        self,
        messages: Any,
        *,
        system_prompt: str | None = None,
        temperature: float | None = None,
        max_tokens: int | None = None,
        model_preferences: Any = None,
        **others: Any,
    ) -> Sampled:
        """Lets the model of the client write something, as in FastMCP 3. FastMCP 4 has no such method."""
        unknown = [name for name, value in others.items() if value is not None]
        if unknown:
            raise TypeError(f"ctx.sample of a tool in a folder does not know {', '.join(unknown)}.")
        params = {
            "messages": [message_of(one) for one in (messages if isinstance(messages, (list, tuple)) else [messages])],
            "maxTokens": max_tokens or MAX_TOKENS,
            "systemPrompt": system_prompt,
            "temperature": temperature,
            "modelPreferences": preferences_of(model_preferences),
        }
        answer = await self._call.ask("sampling/createMessage", without_none(params))
        content = answer.get("content")
        blocks = content if isinstance(content, list) else [content]
        text = "".join(block.get("text", "") for block in blocks if isinstance(block, dict))
        return Sampled(text=text, result=text, model=answer.get("model"), content=content)

    async def set_state(self, key: str, value: Any, *, serializable: bool = True) -> None:
        if not serializable:
            self._request_state[key] = value
            return
        try:
            json.dumps(value)
        except (TypeError, ValueError) as error:
            raise TypeError(
                f"Value for state key {key!r} is not serializable: {error}. "
                f"set_state({key!r}, value, serializable=False) keeps it for the current call."
            ) from error
        self._request_state.pop(key, None)
        await self._call.ask("state/set", {"key": key, "value": value})

    async def get_state(self, key: str) -> Any:
        if key in self._request_state:
            return self._request_state[key]
        return (await self._call.ask("state/get", {"key": key})).get("value")

    async def delete_state(self, key: str) -> None:
        self._request_state.pop(key, None)
        await self._call.ask("state/delete", {"key": key})

    # debug(), info(), warning() and error() call this.
    async def log(
        self,
        message: str,
        level: str | None = None,
        logger_name: str | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        self._call.log(level or "info", logger_name, {"msg": message, "extra": extra})

    async def report_progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        self._call.progress(progress, total, message)


@dataclass
class Sampled:
    """What a model wrote."""

    text: str
    result: str
    model: str | None = None
    content: Any = None
    history: list[Any] = field(default_factory=list)


class WorkerSession:
    """The part of the SDK's session that asks the client."""

    def __init__(self, call: Any):
        self._call = call

    async def elicit(self, message: str, requested_schema: Any = None, **others: Any) -> Any:
        # The parameter has another name in version 1 of the SDK.
        schema = requested_schema or others.get("requestedSchema")
        answer = await self._call.ask("elicitation/create", {"message": message, "requestedSchema": schema})
        return SimpleNamespace(action=answer.get("action"), content=answer.get("content"))

    def __getattr__(self, name: str) -> Any:
        raise no_session(f"session.{name}")


def message_of(given: Any) -> Any:
    if isinstance(given, str):
        return {"role": "user", "content": {"type": "text", "text": given}}
    if hasattr(given, "model_dump"):
        return given.model_dump(mode="json", by_alias=True, exclude_none=True)
    return given


def preferences_of(given: Any) -> Any:
    if given is None:
        return None
    if hasattr(given, "model_dump"):
        return given.model_dump(mode="json", by_alias=True, exclude_none=True)
    names = given if isinstance(given, (list, tuple)) else [given]
    return {"hints": [{"name": name} for name in names]}


def without_none(params: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in params.items() if value is not None}


def no_session(what: str) -> RuntimeError:
    return RuntimeError(f"ctx.{what} works only in a FastMCP server, not in a folder of tools.")


def refuse(what: str) -> Any:
    async def refused(self: Context, *_: Any, **__: Any) -> Any:
        raise no_session(what)

    return refused


# Not every version of FastMCP has all of these.
for name in ("sample_step", "list_roots", "send_notification", "close_sse_stream", "enable_components"):
    if hasattr(Context, name):
        setattr(WorkerContext, name, refuse(name))
for name in ("disable_components", "reset_visibility", "read_resource", "get_prompt"):
    if hasattr(Context, name):
        setattr(WorkerContext, name, refuse(name))
