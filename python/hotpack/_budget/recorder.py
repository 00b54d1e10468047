"""The recorder of operators, recorder.cpp: compiled once for each version of PyTorch, and loaded."""

import fcntl
import hashlib
import importlib.machinery
import importlib.util
import os
import platform
import shlex
import shutil
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

from .._errors import Error

_SOURCE = Path(__file__).with_name("recorder.cpp")
_PARTS = (_SOURCE, *(_SOURCE.with_name(f"recorder_{part}.h") for part in ("time", "traits")))
_LONGEST = 300  # seconds of a compiler
_loaded: "dict[str, Any]" = {}


def load(torch: Any) -> Any:
    """The extension module. Compiles it where the cache has none, which takes some seconds. Raises Error, with the
    reason in a few words."""
    _check_key(torch)
    path = _cache() / _name(torch)
    if str(path) not in _loaded:
        if not path.exists():
            _compile(torch, path)
        loader = importlib.machinery.ExtensionFileLoader("hotpack_recorder", str(path))
        spec = importlib.util.spec_from_loader("hotpack_recorder", loader)
        assert spec is not None
        try:
            module = importlib.util.module_from_spec(spec)
            loader.exec_module(module)
        except ImportError as error:
            raise Error(f"{path} cannot be loaded: {error}") from None
        _loaded[str(path)] = module
    return _loaded[str(path)]


def _check_key(torch: Any) -> None:
    """The dispatch key that the recorder takes must be nobody's."""
    try:
        taken = torch._C._dispatch_get_registrations_for_dispatch_key("Fake")
    except (AttributeError, RuntimeError):
        raise Error(f"PyTorch {torch.__version__} has no dispatch key for it") from None
    if taken and not _loaded:
        raise Error(f"PyTorch {torch.__version__} uses the dispatch key that it needs")


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "hotpack"


def _name(torch: Any) -> str:
    """Of the file: source, versions of PyTorch and Python."""
    facts = [*(part.read_text() for part in _PARTS), torch.__version__, platform.python_version(),
             str(torch._C._GLIBCXX_USE_CXX11_ABI)]
    return f"recorder-{hashlib.sha256(repr(facts).encode()).hexdigest()[:16]}{sysconfig.get_config_var('EXT_SUFFIX')}"


def _compiler() -> "list[str]":
    chosen = os.environ.get("CXX")
    if chosen:
        return shlex.split(chosen)
    for name in ("c++", "g++", "clang++"):
        found = shutil.which(name)
        if found:
            return [found]
    raise Error("there is no C++ compiler")


def _command(torch: Any, target: Path) -> "list[str]":
    home = Path(torch.__file__).parent
    folders = [home / "include", home / "include" / "torch" / "csrc" / "api" / "include",
               sysconfig.get_paths()["include"]]
    # -DNDEBUG: as PyTorch itself is built; some of its classes have other members without.
    return [*_compiler(), "-shared", "-fPIC", "-O2", "-std=c++20", "-DNDEBUG", "-w", "-fvisibility=hidden",
            f"-D_GLIBCXX_USE_CXX11_ABI={int(torch._C._GLIBCXX_USE_CXX11_ABI)}",
            "-DTORCH_EXTENSION_NAME=hotpack_recorder", "-DTORCH_API_INCLUDE_EXTENSION_H",
            *(f"-isystem{folder}" for folder in folders), str(_SOURCE), "-o", str(target), f"-L{home / 'lib'}",
            "-ltorch", "-ltorch_cpu", "-lc10", "-ltorch_python"]


def _compile(torch: Any, path: Path) -> None:
    """Several processes may want it at once: one compiles, the others wait."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path.with_suffix(".lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if path.exists():
                return
            partial = path.with_suffix(f".partial.{os.getpid()}")
            done = subprocess.run(_command(torch, partial), capture_output=True, text=True, timeout=_LONGEST)
            if done.returncode != 0:
                raise Error(_first_error(done.stderr))
            os.replace(partial, path)
    except OSError as error:
        raise Error(f"{path.parent}: {error.strerror}") from None
    except subprocess.TimeoutExpired:
        raise Error(f"the compiler took more than {_LONGEST} seconds") from None


def _first_error(text: str) -> str:
    lines = [line for line in text.splitlines() if "error" in line.lower()] or text.splitlines()
    return "the compiler failed: " + (lines[0][:200] if lines else "without a word")


