"""Writes the name of the running tool in front of each line that it prints, for `toolgate dev`."""

from __future__ import annotations

import re
import sys
from typing import Any

from fastmcp.server.context import _current_context

LINE = re.compile(r"^(?=[^\n])", re.MULTILINE)


def attribute_output() -> None:
    sys.stdout = Attributing(sys.stdout)
    sys.stderr = Attributing(sys.stderr)


class Attributing:
    def __init__(self, stream: Any):
        self._stream = stream
        # Whether the last text ended a line. print() writes the line and its end separately.
        self._is_fresh = True

    def write(self, text: str) -> int:
        call = getattr(_current_context.get(None), "_call", None)
        if call is None or text == "":
            return self._stream.write(text)
        marked = LINE.sub(f"{call.tool.name}: ", text)
        if not self._is_fresh:
            marked = marked.removeprefix(f"{call.tool.name}: ")
        self._is_fresh = text.endswith("\n")
        self._stream.write(marked)
        self._stream.flush()
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
