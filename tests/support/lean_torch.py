"""Spares tests what `import torch` costs them most: torch._dynamo, two of four seconds of each process with an optimizer.

PyTorch imports it when a function runs for the first time that torch.compile must leave alone. As long as nobody else has
imported it nothing is compiled, so such a function can run as it is. tools/test puts this file into the environment of
the tests, where a .pth file imports it. HOTPACK_TEST_WHOLE_TORCH=1 leaves PyTorch as it is.

It also spares them the collector's passes over that import's objects, which stay: during the import a third of a second,
after it and at the end of the process half of one.
"""

import contextlib
import functools
import gc
import importlib.abc
import importlib.machinery
import os
import sys


def _compiles():
    return "torch._dynamo" in sys.modules


def _named(inner, function, maker):
    """`inner`, which stands for `function` and in stacks is the code of `maker`, PyTorch's."""
    inner.__code__ = inner.__code__.replace(co_filename=maker.__code__.co_filename)
    return functools.wraps(function)(inner)


def _lean_disable(disable):
    """`disable`: torch._compile._disable_dynamo."""

    def lean(fn=None, recursive=True):
        if fn is None:
            return functools.partial(lean, recursive=recursive)
        disabled = disable(fn, recursive)

        def inner(*arguments, **keywords):
            return (disabled if _compiles() else fn)(*arguments, **keywords)

        return _named(inner, fn, disable)

    return lean


def _lean_use_grad(use_grad):
    """`use_grad`: torch.optim.optimizer's, which sets the gradient mode of a step between two breaks of a graph."""
    import torch

    def lean(step):
        whole = use_grad(step)

        def inner(self, *arguments, **keywords):
            if _compiles():
                return whole(self, *arguments, **keywords)
            with torch.set_grad_enabled(self.defaults["differentiable"]):
                return step(self, *arguments, **keywords)

        return _named(inner, step, use_grad)

    return lean


_CHANGED = {
    "torch._compile": ("_disable_dynamo", _lean_disable),
    "torch.optim.optimizer": ("_use_grad_for_differentiable", _lean_use_grad),
}


@contextlib.contextmanager
def _uncollected():
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if collects:
            gc.enable()


class _Loader(importlib.abc.Loader):
    def __init__(self, loader):
        self._loader = loader

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        module.__loader__ = module.__spec__.loader = self._loader
        if module.__name__ == "torch":
            with _uncollected():
                self._loader.exec_module(module)
            return
        self._loader.exec_module(module)
        name, change = _CHANGED[module.__name__]
        if hasattr(module, name):
            setattr(module, name, change(getattr(module, name)))


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name != "torch" and name not in _CHANGED:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader)
        return spec


if not os.environ.get("HOTPACK_TEST_WHOLE_TORCH"):
    sys.meta_path.insert(0, _Finder())
