"""Where in the program an operator was called: module path, source line, autograd node."""

import os
import sys
import sysconfig
import threading
from types import CodeType, FrameType
from typing import Any, Optional

_USER, _LIBRARY, _SKIP = range(3)


class Place:
    """module: the innermost torch.nn.Module whose forward ran, or None. line, library_line: (file, number)."""

    __slots__ = ("library_line", "line", "module")

    def __init__(self, module: Any, line: "Optional[tuple[str, int]]",
                 library_line: "Optional[tuple[str, int]]") -> None:
        self.module = module
        self.line = line
        self.library_line = library_line


NOWHERE = Place(None, None, None)


class Lines:
    """The innermost frame of the user's program, and of a library that is neither torch nor hotpack."""

    def __init__(self, torch: Any) -> None:
        self._kinds: dict[CodeType, int] = {}
        ours = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        self._skipped = (ours + os.sep, os.path.dirname(os.path.abspath(torch.__file__)) + os.sep)
        paths = sysconfig.get_paths()
        self._standard = tuple(os.path.join(paths[key], "") for key in ("stdlib", "platstdlib"))

    def _kind(self, code: CodeType) -> int:
        name = os.path.abspath(code.co_filename) if not code.co_filename.startswith("<") else ""
        if not name or name.startswith(self._skipped):
            return _SKIP
        if _library_path(name) is not None:
            return _LIBRARY
        return _SKIP if name.startswith(self._standard) else _USER

    def here(self) -> "tuple[Optional[tuple[str, int]], Optional[tuple[str, int]]]":
        """(the user's line, the library's line). O(depth of the stack)."""
        library = None
        frame: Optional[FrameType] = sys._getframe(1)
        while frame is not None:
            code = frame.f_code
            kind = self._kinds.get(code)
            if kind is None:
                kind = self._kinds[code] = self._kind(code)
            if kind == _USER:
                return (code.co_filename, frame.f_lineno), library
            if kind == _LIBRARY and library is None:
                library = (code.co_filename, frame.f_lineno)
            frame = frame.f_back
        return None, library


def _library_path(name: str) -> "Optional[str]":
    for folder in ("site-packages", "dist-packages"):
        _, found, rest = name.rpartition(os.sep + folder + os.sep)
        if found:
            return rest
    return None


def text(line: "Optional[tuple[str, int]]") -> "Optional[str]":
    """train.py:20: as seen from the working directory, or from the program's folder, else the name alone."""
    if line is None:
        return None
    name = os.path.abspath(line[0])
    shown = _library_path(name)
    if shown is None:
        main = getattr(sys.modules.get("__main__"), "__file__", None)
        folders = [os.getcwd()] + ([os.path.dirname(os.path.abspath(main))] if main else [])
        for folder in folders:
            if name.startswith(os.path.join(folder, "")):
                shown = os.path.relpath(name, folder)
                break
    return f"{shown or os.path.basename(name)}:{line[1]}"


class Modules:
    """Which module's forward runs, by global module hooks; and the modules' names."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._running = threading.local()
        self._roots: list[Any] = []  # in the order of their first call
        self._names: dict[int, tuple[str, Any]] = {}
        self._hooks: list[Any] = []
        self.tops: list[Any] = []  # roots that no other root contains

    def start(self) -> None:
        module = self._torch.nn.modules.module
        self._hooks = [
            module.register_module_forward_pre_hook(self._enter),
            module.register_module_forward_hook(self._leave, always_call=True),
        ]

    def stop(self) -> None:
        for hook in self._hooks:
            hook.remove()
        self._hooks = []

    def _stack(self) -> "list[Any]":
        if not hasattr(self._running, "stack"):
            self._running.stack = []
        stack: list[Any] = self._running.stack
        return stack

    def _enter(self, module: Any, _arguments: object) -> None:
        stack = self._stack()
        if not stack and not any(module is root for root in self._roots):
            self._roots.append(module)
        stack.append(module)

    def _leave(self, module: Any, _arguments: object, _result: object) -> None:
        stack = self._stack()
        while stack and stack.pop() is not module:  # an exception skipped the others
            pass

    def current(self) -> Any:
        stack = self._stack()
        return stack[-1] if stack else None

    def name_all(self) -> None:
        """Modules are named within the largest root that has them. With several roots the root's class comes first."""
        largest = sorted(self._roots, key=lambda root: -sum(1 for _ in root.modules()))
        self._names = {}
        self.tops = []
        for root in largest:
            if id(root) in self._names:
                continue
            self.tops.append(root)
            for name, module in root.named_modules():
                self._names.setdefault(id(module), (name, root))

    def name(self, module: Any) -> "Optional[str]":
        """layers.0.fc; of a root its class. None: no module."""
        if module is None or id(module) not in self._names:
            return None
        name, root = self._names[id(module)]
        kind = type(root).__name__
        if not name:
            return kind
        return f"{kind}.{name}" if len(self.tops) > 1 else name

    def tensors(self) -> "list[tuple[str, str, Any, Any]]":
        """(kind, name, module, tensor) of all parameters and buffers of the modules that ran. After name_all()."""
        found = []
        for root in self.tops:
            prefix = type(root).__name__ + "." if len(self.tops) > 1 else ""
            for path, module in root.named_modules():
                for kind, table in (("parameter", module._parameters), ("buffer", module._buffers)):
                    for name, tensor in table.items():
                        if tensor is not None:
                            found.append((kind, prefix + (f"{path}.{name}" if path else name), module, tensor))
        return found
