"""Makes hotpack PyTorch's allocator as soon as a program has imported torch: the part of `hotpack run` in Python.

`hotpack run` puts this folder first in PYTHONPATH, so Python imports this module at its start (module `site`). Programs
that it starts inherit that. Nothing here imports torch, or hotpack before torch.
"""

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Sequence
from types import ModuleType

_HERE = os.path.dirname(os.path.abspath(__file__))


def _import_hidden() -> None:
    """Imports the sitecustomize that this one hides, if there is one."""
    sys.path[:] = [path for path in sys.path if os.path.abspath(path) != _HERE]
    this = sys.modules.pop("sitecustomize", None)
    try:
        importlib.import_module("sitecustomize")
    except ImportError as error:
        if error.name != "sitecustomize":
            raise
        if this is not None:
            sys.modules["sitecustomize"] = this


def _package_spec() -> "importlib.machinery.ModuleSpec | None":
    """hotpack as it came with the command."""
    folder = os.path.dirname(_HERE)
    return importlib.util.spec_from_file_location(
        "hotpack", os.path.join(folder, "__init__.py"), submodule_search_locations=[folder]
    )


def _package() -> ModuleType:
    """hotpack as it came with the command, unless the program has imported another one."""
    if "hotpack" in sys.modules:
        return sys.modules["hotpack"]
    spec = _package_spec()
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["hotpack"] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules["hotpack"]
        raise
    return module


def _record_graph() -> None:
    """What HOTPACK_GRAPH asks for."""
    if not os.environ.get("HOTPACK_GRAPH"):
        return
    try:
        _package()
        importlib.import_module("hotpack._graph").from_environment()
    except Exception as error:  # the program itself must go on
        print(f"hotpack: no graph: {error}", file=sys.stderr)


def _prepare_need(torch: ModuleType) -> None:
    """What `hotpack need` asks for. Comes last: what it registers ends the program."""
    if os.environ.get("HOTPACK_NEED_STEPS"):
        _package()
        if os.environ.get("HOTPACK_NEED_RANKS"):
            importlib.import_module("hotpack._ranks").start(torch)
        importlib.import_module("hotpack._need").start(torch)


def _enable(torch: ModuleType) -> None:
    """Where it is not possible, requests reach hotpack through the driver: the compatibility mode."""
    budget = os.environ.get("HOTPACK_BUDGET", "") not in ("", "0", "none")
    if getattr(torch.version, "cuda", None) is None and not budget:
        return
    try:
        # Iterations are the program's ranges where the user has said so.
        _package().enable(mark_steps=not os.environ.get("HOTPACK_ITERATION_RANGE"))
    except Exception as error:  # the program itself must go on
        if "no NVIDIA driver" not in str(error):
            print(f"hotpack: PyTorch's requests come through the driver: {error}", file=sys.stderr)


class _Loader(importlib.abc.Loader):
    """torch's loader, and what comes after."""

    def __init__(self, loader: importlib.abc.Loader) -> None:
        self._loader = loader

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> "ModuleType | None":
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self._loader
        assert module.__spec__ is not None
        module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        _enable(module)
        _record_graph()
        _prepare_need(module)


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(
        self, name: str, path: "Sequence[str] | None", target: "ModuleType | None" = None
    ) -> "importlib.machinery.ModuleSpec | None":
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            sys.meta_path.insert(0, self)  # the program may extend its path and try again
            return None
        spec.loader = _Loader(spec.loader)
        return spec


class _PackageFinder(importlib.abc.MetaPathFinder):
    """Finds hotpack for a program that imports it where it is not installed. Comes last: an installed one is first."""

    def find_spec(
        self, name: str, path: "Sequence[str] | None", target: "ModuleType | None" = None
    ) -> "importlib.machinery.ModuleSpec | None":
        return _package_spec() if name == "hotpack" else None


sys.meta_path.insert(0, _Finder())
sys.meta_path.append(_PackageFinder())
_import_hidden()
