"""The worker process. It serves the gateway over a socket. Everything that tools print goes to standard error."""

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
# How many synchronous tools can run at the same time. Further calls wait.
THREADS = 64
GRACE = 2.0


def main() -> None:
    options = read_options()
    hold_lifeline()
    # At the level of file descriptors, so that output of child processes and C libraries is redirected too.
    os.dup2(2, 1)
    listener = listen(options.socket)

    # Imported modules stay forever. Collecting garbage among them takes a tenth of the start-up, and more time later.
    gc.disable()
    # Before the event loop runs, because a tool file may run its own loop while it is imported.
    from .discover import discover
    from .wire import Worker

    if os.environ.get("TOOLGATE_ATTRIBUTE") == "1":
        from .attribute import attribute_output

        attribute_output()

    found = discover(options.folder, options.last_good)
    worker = Worker(options.namespace, options.folder, found, options.max_line)
    gc.freeze()
    gc.enable()
    asyncio.run(serve(worker, listener, options.threads))


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="toolgate_worker")
    parser.add_argument("--namespace", required=True)
    parser.add_argument("--socket", required=True)
    parser.add_argument("--folder", required=True)
    parser.add_argument("--last-good", help="a folder with earlier versions of tool files")
    parser.add_argument("--max-line", type=int, default=MAX_LINE, help="the most bytes of a request, and of an answer")
    parser.add_argument("--threads", type=int, default=THREADS)
    # The gateway may pass options for hosts of other languages.
    options, _ = parser.parse_known_args()
    options.folder = os.path.realpath(options.folder)
    # Tools must not see our arguments.
    del sys.argv[1:]
    return options


def hold_lifeline() -> None:
    """Ends the process when the gateway closes our standard input, even while a tool blocks.

    Tools get an empty standard input.
    """
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
    """Listens before the tools are imported. A client that connects early waits for the ready message."""
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
    # A terminal sends SIGINT to all processes, but the gateway decides when a worker ends.
    loop.add_signal_handler(signal.SIGINT, lambda: None)
    path = listener.getsockname()
    inode = os.stat(path).st_ino
    server = await loop.create_unix_server(worker.connect, sock=listener)
    await worker.stopped()
    # Ends normally, so that exit handlers of tools run, but only for a short time.
    end = threading.Timer(GRACE, os._exit, [0])
    end.daemon = True
    end.start()
    server.close()
    # Another worker may already listen on this path.
    with contextlib.suppress(OSError):
        if os.stat(path).st_ino == inode:
            os.unlink(path)
