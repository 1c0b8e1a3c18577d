"""The process. Only the socket speaks for it: whatever tools and their modules print goes to standard error."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import os
import signal
import socket
import sys
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .wire import Worker

MAX_LINE = 64 * 1024 * 1024
# Beyond these, calls of tools that are not async wait for one another.
THREADS = 64
GRACE = 2.0


def main() -> None:
    options = read_options()
    hold_lifeline()
    # Also what a child process or a library in C writes.
    os.dup2(2, 1)
    listener = listen(options.socket)

    # What is imported stays: looking through it for garbage costs a tenth of the start, and time again and again later.
    gc.disable()
    # Not while a loop runs: a tool file may want one of its own while it is imported.
    from .discover import discover
    from .wire import Worker

    tools, failed = discover(options.folder)
    worker = Worker(options.namespace, options.folder, tools, failed, options.max_line)
    gc.freeze()
    gc.enable()
    asyncio.run(serve(worker, listener, options.threads))


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="toolgate_worker")
    parser.add_argument("--namespace", required=True)
    parser.add_argument("--socket", required=True)
    parser.add_argument("--folder", required=True)
    parser.add_argument("--max-line", type=int, default=MAX_LINE, help="bytes of a request, and of an answer")
    parser.add_argument("--threads", type=int, default=THREADS)
    # Others may be meant for hosts of another language.
    options, _ = parser.parse_known_args()
    options.folder = os.path.realpath(options.folder)
    # They are ours, and no tool's.
    del sys.argv[1:]
    return options


def hold_lifeline() -> None:
    """Ends with whoever holds the other end of standard input, even while a tool blocks. Tools get an empty one."""
    lifeline = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)

    def wait() -> None:
        try:
            while os.read(lifeline, 4096):
                pass
        finally:
            os._exit(0)

    threading.Thread(target=wait, name="lifeline", daemon=True).start()


def listen(path: str) -> socket.socket:
    """Before anything is imported: who connects meanwhile hears of it when it is done."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        if os.path.exists(path):
            os.unlink(path)
        listener.bind(path)
        listener.listen(8)
    except OSError as error:
        sys.exit(f"cannot listen on {path}: {error}")
    finally:
        os.umask(before)
    return listener


async def serve(worker: Worker, listener: socket.socket, threads: int) -> None:
    from anyio.to_thread import current_default_thread_limiter

    current_default_thread_limiter().total_tokens = threads
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, worker.stop)
    # At a terminal it is sent to everybody; when we end is the gateway's decision.
    loop.add_signal_handler(signal.SIGINT, lambda: None)
    path = listener.getsockname()
    place = os.stat(path).st_ino
    server = await loop.create_unix_server(worker.connect, sock=listener)
    await worker.stopped()
    # From here on it ends in the ordinary way, so that what tools have registered for the end is done; but not for long.
    end = threading.Timer(GRACE, os._exit, [0])
    end.daemon = True
    end.start()
    server.close()
    # By now another worker may listen at that place.
    with contextlib.suppress(OSError):
        if os.stat(path).st_ino == place:
            os.unlink(path)
