"""One running call, and the messages of its failures."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import time
import traceback
from typing import TYPE_CHECKING, Any

from fastmcp.exceptions import PromptError, ResourceError, ToolError
from fastmcp.server.context import set_context
from pydantic import ValidationError

from .context import WorkerContext
from .prepared import PreparedTool

if TYPE_CHECKING:
    from .wire import Connection


class Call:
    """A running call. It is answered exactly once; if it is given up, at once, even if its tool still runs."""

    __slots__ = (
        "connection", "id", "tool", "arguments", "wants_progress", "caller", "started", "timer", "limit", "task", "runs",
        "is_awaited", "questions", "left",
    )

    def __init__(
        self, connection: Connection, id: Any, tool: PreparedTool, arguments: dict[str, Any], request: dict[str, Any]
    ):
        self.connection = connection
        self.id = id
        self.tool = tool
        self.arguments = arguments
        self.wants_progress = request.get("progress") is True
        self.caller = request.get("caller") or {}
        # How many questions are open, and the seconds that were left when the first one stopped the clock.
        self.questions = 0
        self.left = 0.0
        self.started = time.perf_counter()
        # Whether a thread runs the tool, and whether the gateway wants to know when it returns.
        self.runs = False
        self.is_awaited = False
        limits = [tool.timeout] if tool.timeout else []
        asked = request.get("timeout_ms")
        if isinstance(asked, (int, float)) and asked > 0:
            limits.append(asked / 1000)
        self.limit = min(limits) if limits else None
        self.timer = connection.loop.call_later(self.limit, self.expire) if self.limit is not None else None
        self.task = connection.loop.create_task(self.work())

    async def work(self) -> None:
        tool = self.tool
        try:
            args, kwargs = tool.check(self.arguments)
        except ValidationError as error:
            self.refuse("invalid_arguments", *explain_arguments(tool, error))
            return
        except Exception as error:
            self.refuse("invalid_arguments", f"{type(error).__name__}: {error}")
            return
        try:
            worker = self.connection.worker
            context = WorkerContext(worker.server, self)
            if tool.injected:
                async with context:
                    raw = await tool.run(args, kwargs, self)
            else:
                with set_context(context):
                    raw = await tool.run(args, kwargs, self)
            self.answer(tool.render(raw))
        except KeyboardInterrupt:
            raise
        # Includes SystemExit, which would end the loop, and whatever a tool raises when it is cancelled.
        except BaseException as error:
            if self.is_open():
                self.refuse(*explain_failure(error, tool, worker.folder))

    def is_open(self) -> bool:
        return self.connection.calls.get(self.id) is self

    def end(self) -> bool:
        """Returns True the first time only."""
        if not self.is_open():
            return False
        del self.connection.calls[self.id]
        if self.timer is not None:
            self.timer.cancel()
        return True

    def answer(self, result: bytes) -> None:
        connection = self.connection
        limit = connection.worker.max_line
        if len(result) > limit:
            self.refuse("too_large", f"The result has {len(result)} bytes; {limit} are allowed. Return less, or raise limits.message.")
        elif self.end():
            connection.answer(self.id, result, (time.perf_counter() - self.started) * 1000)

    def refuse(self, code: str, message: str, details: Any = None) -> None:
        if self.end():
            self.connection.refuse(self.id, code, message, details)

    def expire(self) -> None:
        self.give_up("execution_timeout", f'The tool "{self.tool.name}" did not finish within {self.limit:g} s.')

    def give_up(self, code: str, message: str) -> None:
        # In this order, because the thread may return at any moment, and it uses the two in the opposite order.
        self.is_awaited = True
        busy = self.runs
        if self.end():
            self.connection.refuse(self.id, code, message, busy=busy)
        self.task.cancel()

    def thread_returned(self) -> None:
        if self.connection.worker.is_fork:
            os._exit(0)
        self.runs = False
        if self.is_awaited:
            self.connection.tell({"op": "free", "id": self.id})

    def abandon(self) -> None:
        self.end()
        self.task.cancel()

    async def ask(self, method: str, params: dict[str, Any]) -> Any:
        """Asks the client of the call, or the gateway. Raises if there is no answer. Works in any thread."""
        connection = self.connection
        if asyncio.get_running_loop() is connection.loop:
            return await self.ask_here(method, params)
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self.ask_here(method, params), connection.loop))

    async def ask_here(self, method: str, params: dict[str, Any]) -> Any:
        if not self.is_open():
            raise RuntimeError("The call is over.")
        # The time-out of the tool does not run meanwhile: a person may need long.
        self.questions += 1
        if self.timer is not None and self.questions == 1:
            self.timer.cancel()
            self.left = max(0.0, self.timer.when() - self.connection.loop.time())
        try:
            answer = await self.connection.ask(self.id, method, params)
        finally:
            self.questions -= 1
            if self.timer is not None and self.questions == 0 and self.is_open():
                self.timer = self.connection.loop.call_later(self.left, self.expire)
        if answer.get("ok") is True:
            return answer.get("result")
        raise ToolError(str(answer.get("error")))

    def log(self, level: str, logger: str | None, data: Any) -> None:
        if self.is_open():
            event = {"op": "log", "id": self.id, "level": level, "logger": logger or self.tool.file, "data": data}
            self.connection.tell(event)

    def progress(self, progress: float, total: float | None, message: str | None) -> None:
        if self.wants_progress and self.is_open():
            event = {"op": "progress", "id": self.id, "progress": progress, "total": total, "message": message}
            self.connection.tell({key: value for key, value in event.items() if value is not None})


def explain_arguments(tool: PreparedTool, error: ValidationError) -> tuple[str, Any]:
    # Without the input, which may be long or secret.
    errors = error.errors(include_url=False, include_context=False, include_input=False)
    problems = [f"{'.'.join(map(str, problem['loc'])) or 'arguments'}: {problem['msg']}" for problem in errors]
    more = f"; and {len(problems) - 5} more" if len(problems) > 5 else ""
    return f'The arguments do not fit "{tool.name}": {"; ".join(problems[:5])}{more}.', {"errors": errors}


def explain_failure(error: BaseException, tool: PreparedTool, folder: str) -> tuple[str, str, Any]:
    # A task group wraps even a single error.
    while len(within := getattr(error, "exceptions", ())) == 1 and isinstance(within[0], BaseException):
        error = within[0]
    # FastMCP wraps what a prompt or a resource raises.
    if isinstance(error, (PromptError, ResourceError)) and error.__cause__ is not None:
        error = error.__cause__
    kind = type(error).__name__
    message = text_of(error) or kind
    file, line = location_of(error, folder)
    details = {"type": kind, "file": file or tool.file, "line": line}
    if isinstance(error, ToolError):
        return "internal_error", message, details
    # A tool may have closed stderr.
    with contextlib.suppress(Exception):
        traceback.print_exception(type(error), error, error.__traceback__, file=sys.stderr)
    if isinstance(error, SystemExit):
        return "internal_error", f"The tool called exit({error.code}). A tool returns or raises instead.", details
    if isinstance(error, ImportError):
        return "dependency_error", message, details
    # In Python 3.10 asyncio has its own TimeoutError.
    if isinstance(error, (TimeoutError, asyncio.TimeoutError)):
        return "execution_timeout", message, details
    return "internal_error", message, details


def text_of(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:
        return ""


def location_of(error: BaseException, folder: str) -> tuple[str | None, int | None]:
    """The innermost frame in the folder: it called the library code that failed."""
    within = folder + os.sep
    for frame, line in reversed(list(traceback.walk_tb(error.__traceback__))):
        name = frame.f_code.co_filename
        if name.startswith(within):
            return name[len(within) :], line
    return None, None
