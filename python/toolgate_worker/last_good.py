"""Imports earlier versions of tool files, apart from the current ones.

A version is a copy of the Python files of the folder. Its modules keep the names and paths of the originals, so that
they find their data files. They are not in sys.modules afterwards, where the current versions are.
"""

from __future__ import annotations

import contextlib
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import sys
from types import ModuleType
from typing import Iterator


def read_versions(path: str | None) -> dict[str, str]:
    """The folders with the last good versions, by tool file."""
    if not path:
        return {}
    with open(os.path.join(path, "index.json"), encoding="utf-8") as index:
        return {file: os.path.join(path, version) for file, version in json.load(index).items()}


@contextlib.contextmanager
def importing_from(version: str, folder: str) -> Iterator[None]:
    """Imports find the files of the version in place of those of the folder."""
    finder = VersionFinder(version, folder)
    current = take_modules(folder)
    sys.path.remove(folder)
    sys.meta_path.insert(0, finder)
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        sys.path.append(folder)
        take_modules(folder)
        sys.modules.update(current)
        importlib.invalidate_caches()


def take_modules(folder: str) -> dict[str, ModuleType]:
    """Removes the modules of the folder from sys.modules, and returns them."""
    within = folder + os.sep
    taken = {name: module for name, module in list(sys.modules.items()) if is_within(module, within)}
    for name in taken:
        del sys.modules[name]
    return taken


def is_within(module: ModuleType, within: str) -> bool:
    spec = getattr(module, "__spec__", None)
    places = [getattr(spec, "origin", None), *(getattr(spec, "submodule_search_locations", None) or ())]
    return any(isinstance(place, str) and place.startswith(within) for place in places)


class VersionFinder(importlib.abc.MetaPathFinder):
    def __init__(self, version: str, folder: str):
        self.version = version
        self.folder = folder
        self.is_searching = False

    def find_spec(self, name, path=None, target=None):
        if self.is_searching:
            return None
        top = name.partition(".")[0]
        # Packages come before files of the folder, as for the current versions.
        if not is_within(sys.modules.get(top), self.folder + os.sep) and self.is_elsewhere(top):
            return None
        below = name.replace(".", os.sep)
        if os.path.isfile(os.path.join(self.version, below, "__init__.py")):
            return self.spec(name, os.path.join(below, "__init__.py"))
        if os.path.isfile(os.path.join(self.version, below + ".py")):
            return self.spec(name, below + ".py")
        if os.path.isdir(os.path.join(self.version, below)):
            package = importlib.machinery.ModuleSpec(name, None, is_package=True)
            package.submodule_search_locations = [os.path.join(self.folder, below)]
            return package
        return None

    def is_elsewhere(self, top: str) -> bool:
        self.is_searching = True
        try:
            return importlib.util.find_spec(top) is not None
        except (ImportError, ValueError):
            return False
        finally:
            self.is_searching = False

    def spec(self, name: str, below: str):
        loader = VersionLoader(name, os.path.join(self.folder, below), os.path.join(self.version, below))
        return importlib.util.spec_from_file_location(name, os.path.join(self.folder, below), loader=loader)


class VersionLoader(importlib.machinery.SourceFileLoader):
    def __init__(self, name: str, path: str, copy: str):
        super().__init__(name, path)
        self.copy = copy

    def get_code(self, fullname):
        # Not from a cache, which would be of another version.
        return self.source_to_code(self.get_data(self.path), self.path)

    def get_data(self, path):
        with open(self.copy, "rb") as source:
            return source.read()
