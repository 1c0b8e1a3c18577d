"""FastMCP's Context in a worker: it logs and reports progress. It has no session, so it cannot ask the client."""

from __future__ import annotations

from typing import Any, Mapping

from fastmcp import FastMCP
from fastmcp.server.context import Context


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
    def client_id(self) -> None:
        return None

    @property
    def session(self) -> Any:
        raise no_session("session")

    @property
    def session_id(self) -> str:
        raise no_session("session_id")

    def _make_state_key(self, key: str) -> str:
        return key

    async def set_state(self, key: str, value: Any, *, serializable: bool = True) -> None:
        if serializable:
            raise no_session("set_state", "set_state(…, serializable=False) keeps a value for the current call")
        self._request_state[key] = value

    async def get_state(self, key: str) -> Any:
        return self._request_state.get(key)

    async def delete_state(self, key: str) -> None:
        self._request_state.pop(key, None)

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


def no_session(what: str, instead: str | None = None) -> RuntimeError:
    hint = f" {instead[0].upper()}{instead[1:]}." if instead else ""
    return RuntimeError(f"ctx.{what} needs a session with the client, which tools in a folder do not have.{hint}")


def refuse(what: str) -> Any:
    async def refused(self: Context, *_: Any, **__: Any) -> Any:
        raise no_session(what)

    return refused


# Not every version of FastMCP has all of these.
for name in ("elicit", "sample", "sample_step", "list_roots", "send_notification", "close_sse_stream"):
    if hasattr(Context, name):
        setattr(WorkerContext, name, refuse(name))
for name in ("enable_components", "disable_components", "reset_visibility", "read_resource", "get_prompt"):
    if hasattr(Context, name):
        setattr(WorkerContext, name, refuse(name))
