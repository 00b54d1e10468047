"""Spares tests what `import torch` costs them most: torch._dynamo, two of four seconds of each process with an optimizer.

PyTorch imports it when a function runs for the first time that torch.compile must leave alone. As long as nobody else has
imported it nothing is compiled, so such a function can run as it is. tools/test puts this file into the environment of
the tests, where a .pth file imports it. HOTPACK_TEST_WHOLE_TORCH=1 leaves PyTorch as it is.

It spares them a fifth of the import: torch._meta_registrations, which says what shapes operators of fake tensors and of the
device "meta" have. It comes when one of these is made (a tensor of "meta" within `with torch.device("meta")`), or when
something of it is asked for. And the search for the source lines of nine callers, of which nothing but their names is kept.

It also spares them the collector's passes over that import's objects, which stay: during the import a third of a second,
after it and at the end of the process half of one.
"""

import contextlib
import functools
import gc
import importlib
import importlib.abc
import importlib.machinery
import os
import sys
import types

_SHAPES = "torch._meta_registrations"
# What imports it, or has to be imported after what it imports.
_AFTER_SHAPES = ("torch._decomp", "torch._dynamo", "torch._inductor", "torch._prims", "torch._refs", "torch.utils._content_store")


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


class _Later(types.ModuleType):
    """Stands for _SHAPES."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(_know_shapes(), name)


def _know_shapes():
    """_SHAPES itself, imported at the first call."""
    if isinstance(sys.modules.get(_SHAPES), _Later):
        del sys.modules[_SHAPES]
        _Finder.left_out = None
        importlib.import_module(_SHAPES)
    return sys.modules[_SHAPES]


def _let_generators_be(torch):
    """As torch._prims.rng_prims does, which comes with _SHAPES."""
    late = getattr(torch._C, "_set_generator_metaclass", None)
    if late is not None and isinstance(sys.modules.get(_SHAPES), _Later):
        from torch._custom_class_base import CustomClassBaseMeta

        late(CustomClassBaseMeta)


def _lean_fakes(kind):
    """`kind`: torch._subclasses.fake_tensor.FakeTensorMode."""
    begin = kind.__init__

    @functools.wraps(begin)
    def lean(self, *arguments, **keywords):
        _know_shapes()
        begin(self, *arguments, **keywords)

    kind.__init__ = lean
    return kind


def _lean_device(kind):
    """`kind`: torch.utils._device.DeviceContext."""
    begin = kind.__init__

    @functools.wraps(begin)
    def lean(self, device):
        begin(self, device)
        if self.device.type == "meta":
            _know_shapes()

    kind.__init__ = lean
    return kind


def _lean_source(_):
    """In the place of torch._library.utils.get_source, which reads the lines as well."""

    def lean(stacklevel):
        caller = sys._getframe(stacklevel)
        return f"{caller.f_code.co_filename}:{caller.f_lineno}"

    return lean


_CHANGED = {
    "torch._compile": ("_disable_dynamo", _lean_disable),
    "torch.optim.optimizer": ("_use_grad_for_differentiable", _lean_use_grad),
    "torch._library.utils": ("get_source", _lean_source),
    "torch._subclasses.fake_tensor": ("FakeTensorMode", _lean_fakes),
    "torch.utils._device": ("DeviceContext", _lean_device),
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
                _let_generators_be(module)
            return
        self._loader.exec_module(module)
        name, change = _CHANGED[module.__name__]
        if hasattr(module, name):
            setattr(module, name, change(getattr(module, name)))


class _LaterLoader(importlib.abc.Loader):
    def create_module(self, spec):
        return _Later(spec.name)

    def exec_module(self, module):
        pass


class _ThereLoader(importlib.abc.Loader):
    """Of a module that was imported while it was looked for."""

    def __init__(self, loader):
        self._loader = loader

    def create_module(self, spec):
        return sys.modules[spec.name]

    def exec_module(self, module):
        module.__loader__ = module.__spec__.loader = self._loader


class _Finder(importlib.abc.MetaPathFinder):
    left_out = _SHAPES

    def find_spec(self, name, path, target=None):
        after = name in _AFTER_SHAPES and isinstance(sys.modules.get(_SHAPES), _Later)
        if name not in ("torch", self.left_out) and name not in _CHANGED and not after:
            return None
        if after:
            _know_shapes()
            if name not in sys.modules:
                return None
            spec = sys.modules[name].__spec__
            spec.loader = _ThereLoader(spec.loader)
            return spec
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is None:
            return None
        if name == self.left_out:
            spec.loader = _LaterLoader()
            return spec
        if spec.loader is not None:
            spec.loader = _Loader(spec.loader)
        return spec


if not os.environ.get("HOTPACK_TEST_WHOLE_TORCH"):
    sys.meta_path.insert(0, _Finder())
