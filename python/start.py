"""Starts the worker. A file of its own, so that nothing of ours is on the path on which tool files look for modules."""

import os
import sys

# A tool that starts processes by multiprocessing has this file imported once more in each of them.
if __name__ == "__main__":
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path.insert(0, here)
    from toolgate_worker.main import main

    sys.path.remove(here)
    main()
