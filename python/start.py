"""Starts the worker. Outside of the package, so that tool files do not find our modules on their import path."""

import os
import sys

# Processes that a tool starts with multiprocessing import this file, too.
if __name__ == "__main__":
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path.insert(0, here)
    from toolgate_worker.main import main

    sys.path.remove(here)
    main()
