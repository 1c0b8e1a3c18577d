"""The connection with the gateway: one JSON object per line, requests in, answers and events out.

The worker accepts one connection at a time.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import threading
from typing import Any

from fastmcp import FastMCP

from .call import Call
from .discover import Found
from .items import PreparedItem
from .prepared import PreparedTool, to_json

# Finds the id in a line that is too long to parse: the id comes first.
ID = re.compile(rb'\s*\{\s*"id"\s*:\s*("(?:[^"\\]|\\.){0,200}"|-?\d{1,20})')
HEAD = 256
LOOKS_FOR_CONTEXT = b"get_context"
# Lines are written together, up to about this many bytes.
BATCH = 64 * 1024


class Worker:
    """What stays when a connection ends: the tools, and whether to stop."""

    def __init__(self, namespace: str, folder: str, found: Found, max_line: int):
        self.namespace = namespace
        self.folder = folder
        self.tools = tools = found.tools
        self.others = found.others
        self.failed = found.failed
        self.max_line = max_line
        self.server = FastMCP(namespace)
        self.definitions = [tool.definition for tool in tools.values()]
        self.contextual = contextual_tools(tools, folder)
        self.connection: Connection | None = None
        self._end: asyncio.Event | None = None
        self._stopping = False
        self.is_fork = False
        os.register_at_fork(after_in_child=self.detach)

    def listed(self, kind: str) -> list[dict[str, Any]]:
        return [item.definition for item in self.others.values() if item.kind == kind]

    def resource(self, uri: str) -> PreparedItem | None:
        exact = self.others.get(("resource", uri))
        if exact is not None:
            return exact
        templates = [item for item in self.others.values() if item.kind == "template" and item.matches(uri) is not None]
        # The template with the most fixed text is the most particular one.
        return max(templates, key=lambda item: len(re.sub(r"\{[^}]*\}", "", item.name)), default=None)

    def connect(self) -> asyncio.Protocol:
        return Connection(self)

    async def stopped(self) -> None:
        self._end = asyncio.Event()
        if self._stopping:
            self._end.set()
        await self._end.wait()

    def detach(self) -> None:
        """Runs in a forked child. It has inherited our socket, and must neither read our requests nor answer them.

        The child exits when a tool returns in it.
        """
        self.is_fork = True
        transport = self.connection and self.connection.transport
        if transport:
            nothing = os.open(os.devnull, os.O_RDWR)
            os.dup2(nothing, transport.get_extra_info("socket").fileno())
            os.close(nothing)

    def stop(self) -> None:
        self._stopping = True
        if self.connection is not None:
            self.connection.close()
        if self._end is not None:
            self._end.set()


class Connection(asyncio.Protocol):
    def __init__(self, worker: Worker):
        self.worker = worker
        self.loop = asyncio.get_running_loop()
        self.thread = threading.get_ident()
        self.transport: asyncio.Transport | None = None
        self.calls: dict[Any, Call] = {}
        self.parts: list[bytes] = []
        self.size = 0
        self.out: list[bytes] = []
        self.out_size = 0
        # Open questions of tools.
        self.asked: dict[Any, asyncio.Future[dict[str, Any]]] = {}
        self.last_ask = 0
        self.ops = {
            "tools.call": self.call,
            "prompts.get": self.get_prompt,
            "resources.read": self.read_resource,
            "tools.list": self.list_tools,
            "tools.get_schema": self.get_schema,
            "cancel": self.cancel,
            "answer": self.answered,
            "ping": lambda request: self.answer(request.get("id"), b"{}"),
            "shutdown": self.shutdown,
        }

    # Callbacks of the transport.

    def connection_made(self, transport: Any) -> None:
        if self.worker.connection is not None:
            transport.abort()
            return
        self.worker.connection = self
        self.transport = transport
        worker = self.worker
        ready = {
            "namespace": worker.namespace,
            "tools": worker.definitions,
            "failed": worker.failed,
            "contextual": worker.contextual,
            # The gateway has to know them: a tool that blocks the event loop also blocks our timers.
            "timeouts": {name: tool.timeout * 1000 for name, tool in worker.tools.items() if tool.timeout},
            "prompts": worker.listed("prompt"),
            "resources": worker.listed("resource"),
            "templates": worker.listed("template"),
        }
        self.send(to_json({"op": "ready", **ready}) + b"\n")

    def connection_lost(self, _: Any) -> None:
        if self.worker.connection is not self:
            return
        self.worker.connection = None
        self.transport = None
        for call in list(self.calls.values()):
            call.abandon()

    def pause_writing(self) -> None:
        # Backpressure: as long as the gateway does not read answers, no further calls are read.
        if self.transport is not None:
            self.transport.pause_reading()

    def resume_writing(self) -> None:
        if self.transport is not None:
            self.transport.resume_reading()

    def data_received(self, data: bytes) -> None:
        start = 0
        while (end := data.find(b"\n", start)) >= 0:
            self.keep(data[start:end])
            line = self.parts[0] if len(self.parts) == 1 else b"".join(self.parts)
            size = self.size
            self.parts = []
            self.size = 0
            self.receive(line, size)
            start = end + 1
        if start < len(data):
            self.keep(data[start:] if start else data)

    def keep(self, part: bytes) -> None:
        self.size += len(part)
        if self.size <= self.worker.max_line:
            self.parts.append(part)
        elif len(self.parts) != 1 or len(self.parts[0]) > HEAD:
            # Too long: only the beginning is kept, for the id.
            self.parts = [b"".join([*self.parts, part])[:HEAD]]

    def send(self, line: bytes) -> None:
        if self.worker.is_fork:
            os._exit(0)
        if self.transport is None:
            return
        if not self.out:
            self.loop.call_soon(self.flush)
        self.out.append(line)
        self.out_size += len(line)
        if self.out_size > BATCH:
            self.flush()

    def flush(self) -> None:
        if self.transport is not None and self.out:
            self.transport.write(self.out[0] if len(self.out) == 1 else b"".join(self.out))
        self.out = []
        self.out_size = 0

    def close(self) -> None:
        for call in list(self.calls.values()):
            call.abandon()
        self.flush()
        if self.transport is not None:
            self.transport.close()

    # Requests.

    def receive(self, line: bytes, size: int) -> None:
        if size > self.worker.max_line:
            limit = self.worker.max_line
            self.refuse(id_of(line), "too_large", f"The request has {size} bytes; {limit} are allowed.")
            return
        if not line.strip():
            return
        try:
            request = json.loads(line)
            op = request.get("op")
            handler = self.ops[op]
        except (ValueError, RecursionError) as error:
            self.refuse(id_of(line), "invalid_arguments", f"The request cannot be read: {error}.")
        except AttributeError:
            self.refuse(None, "invalid_arguments", "A request is a JSON object.")
        except (KeyError, TypeError):
            self.refuse(request.get("id"), "internal_error", f"There is no op {json.dumps(op)}.")
        else:
            handler(request)

    def get_prompt(self, request: dict[str, Any]) -> None:
        name = request.get("prompt")
        prompt = self.worker.others.get(("prompt", str(name)))
        if prompt is None:
            message = f'There is no prompt {json.dumps(name)} in "{self.worker.namespace}".'
            self.refuse(request.get("id"), "prompt_not_found", message)
        else:
            self.start(prompt, request, request.get("arguments"))

    def read_resource(self, request: dict[str, Any]) -> None:
        uri = str(request.get("uri"))
        resource = self.worker.resource(uri)
        if resource is None:
            message = f'There is no resource {json.dumps(uri)} in "{self.worker.namespace}".'
            self.refuse(request.get("id"), "resource_not_found", message)
        else:
            self.start(resource, request, {"uri": uri})

    def call(self, request: dict[str, Any]) -> None:
        tool = self.find(request)
        if tool is not None:
            self.start(tool, request, request.get("arguments"))

    def start(self, tool: PreparedTool | PreparedItem, request: dict[str, Any], arguments: Any) -> None:
        id = request.get("id")
        if arguments is None:
            arguments = {}
        if not isinstance(arguments, dict):
            self.refuse(id, "invalid_arguments", "The arguments of a tool are a JSON object.")
        elif not isinstance(id, (str, int)) or id in self.calls:
            self.refuse(id, "invalid_arguments", "A call needs an id that no other running call has.")
        else:
            self.calls[id] = Call(self, id, tool, arguments, request)

    def find(self, request: dict[str, Any]) -> PreparedTool | None:
        name = request.get("tool")
        tool = self.worker.tools.get(name) if isinstance(name, str) else None
        if tool is None:
            message = f'There is no tool {json.dumps(name)} in "{self.worker.namespace}".'
            self.refuse(request.get("id"), "tool_not_found", message)
        return tool

    def list_tools(self, request: dict[str, Any]) -> None:
        self.answer(request.get("id"), to_json({"tools": self.worker.definitions}))

    def get_schema(self, request: dict[str, Any]) -> None:
        tool = self.find(request)
        if tool is not None:
            self.answer(request.get("id"), to_json(tool.definition))

    def cancel(self, request: dict[str, Any]) -> None:
        id = request.get("id")
        call = self.calls.get(id) if isinstance(id, (str, int)) else None
        if call is not None:
            call.give_up("cancelled", "The call was cancelled.")

    async def ask(self, id: Any, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self.last_ask += 1
        ask = self.last_ask
        answer = self.asked[ask] = self.loop.create_future()
        self.tell({"op": "ask", "id": id, "ask": ask, "method": method, "params": params})
        try:
            return await answer
        except asyncio.CancelledError:
            self.tell({"op": "withdraw", "id": id, "ask": ask})
            raise
        finally:
            del self.asked[ask]

    def answered(self, request: dict[str, Any]) -> None:
        answer = self.asked.get(request.get("ask"))
        if answer is not None and not answer.done():
            answer.set_result(request)

    def shutdown(self, request: dict[str, Any]) -> None:
        self.answer(request.get("id"), b"{}")
        self.worker.stop()

    # Answers.

    def answer(self, id: Any, result: bytes, ms: float = 0.0) -> None:
        self.send(b'{"id":%b,"ok":true,"result":%b,"latency_ms":%.2f}\n' % (to_json(id), result, ms))

    def refuse(self, id: Any, code: str, message: str, details: Any = None, busy: bool = False) -> None:
        """`busy`: a thread still runs the tool. When it returns, the event `free` is sent."""
        error = {"code": code, "message": message}
        if details is not None:
            error["details"] = details
        answer = {"id": id, "ok": False, "error": error}
        self.send(to_line({**answer, "busy": True} if busy else answer))

    def tell(self, event: dict[str, Any]) -> None:
        """Sends an event. Safe in any thread, because tools may have threads of their own."""
        line = to_line(event)
        if threading.get_ident() == self.thread:
            self.send(line)
        else:
            self.loop.call_soon_threadsafe(self.send, line)


def contextual_tools(tools: dict[str, PreparedTool], folder: str) -> list[str]:
    """The tools that may want to know who calls: those that take a context, or all if a file may look for one."""
    files = [os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(".py")]
    if any(LOOKS_FOR_CONTEXT in read(file) for file in files):
        return list(tools)
    return [tool.name for tool in tools.values() if tool.injected]


def read(file: str) -> bytes:
    try:
        with open(file, "rb") as opened:
            return opened.read()
    except OSError:
        return b""


def to_line(value: dict[str, Any]) -> bytes:
    """Never fails, whatever value a message or log entry contains."""
    try:
        return to_json(value, fallback=str) + b"\n"
    except Exception:
        # For example a lone surrogate, which has no UTF-8 but can be escaped.
        return json.dumps(value, default=str, separators=(",", ":")).encode() + b"\n"


def id_of(line: bytes) -> Any:
    found = ID.match(line)
    try:
        return json.loads(found[1]) if found else None
    except ValueError:
        return None
