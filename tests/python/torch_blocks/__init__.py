"""Runs programs under PyTorch's own allocator on the simulated device, with its blocks told to the checker."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
LIBRARIES = ("libcudart.so.13", "libcublasLt.so.13", "libcublas.so.13", "libcudnn.so.9", "libnvidia-ml.so.1")


class Unavailable(Exception):
    """Why the recorder cannot be compiled here."""


def _cuda_headers(site: Path) -> "list[Path]":
    places = [*site.glob("nvidia/cu*/include"), *site.glob("nvidia/cuda_runtime/include")]
    places += [Path(os.environ[name], "include") for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
    places.append(Path("/usr/local/cuda/include"))
    return [place for place in places if (place / "cuda_runtime_api.h").exists()]


def build(directory: Path) -> Path:
    """Returns the compiled recorder, in `directory`. Compiles only for a new source, compiler or PyTorch. Raises
    Unavailable."""
    import torch

    compiler = shutil.which(os.environ.get("CXX", "g++"))
    if compiler is None:
        raise Unavailable("no C++ compiler")
    root = Path(torch.__file__).parent
    headers = _cuda_headers(root.parent)
    if not headers:
        raise Unavailable("no headers of the CUDA runtime")
    source = HERE / "recorder.cc"
    command = [compiler, "-std=c++20", "-O1", "-fPIC", "-shared", "-Wl,-z,defs",
               f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}", "-isystem", str(root / "include"),
               "-isystem", str(headers[0]), str(source), "-L", str(root / "lib"), f"-Wl,-rpath,{root / 'lib'}",
               "-lc10_cuda", "-lc10", "-ldl"]
    version = subprocess.run([compiler, "--version"], capture_output=True, text=True).stdout
    key = hashlib.sha256("\0".join([source.read_text(), torch.__version__, version, *command]).encode()).hexdigest()[:16]
    library = directory / f"torch_blocks_{key}.so"
    if not library.exists():
        directory.mkdir(parents=True, exist_ok=True)
        began = time.monotonic()
        with tempfile.TemporaryDirectory(dir=directory) as scratch:
            new = Path(scratch, library.name)
            done = subprocess.run([*command, "-o", str(new)], capture_output=True, text=True)
            if done.returncode != 0:
                reason = f"recorder.cc does not compile with PyTorch {torch.__version__}"
                raise RuntimeError(f"{reason}: {done.stderr[-2000:]}")
            new.rename(library)
        print(f"torch_blocks: compiled in {time.monotonic() - began:.1f} s", file=sys.stderr)
    return library


@dataclass
class Run:
    status: int
    output: str
    error: str
    reports: "list[str]"
    blocks: int  # that the checker was told of; -1: the program ended without saying so, or had no recorder

    @property
    def kinds(self) -> "set[str]":
        return {line.split()[2].rstrip(":") for line in self.reports}


def run(script: "str | Path", home: Path, recorder: "Path | None", *arguments: str, timeout: float = 300,
        **environment: str) -> Run:
    """Runs a script (a path, or its text) with this Python, PyTorch's allocator and the simulated libraries of the build
    in `home`. recorder: of build(); None: the checker sees the allocator's segments only."""
    with tempfile.TemporaryDirectory() as scratch:
        path, reports, simgpu = script, Path(scratch, "reports"), home / "lib" / "simgpu"
        if not isinstance(script, Path):
            path = Path(scratch, "script.py")
            path.write_text(script)
        recording = [str(HERE / "record.py"), str(recorder)] if recorder is not None else []
        preloaded = [str(simgpu / name) for name in LIBRARIES if (simgpu / name).exists()]
        settings = {"LD_PRELOAD": " ".join(preloaded),
                    "LD_LIBRARY_PATH": str(simgpu), "SIMGPU_REPORT_FILE": str(reports), "OMP_NUM_THREADS": "1",
                    **environment}
        done = subprocess.run([sys.executable, *recording, str(path), *arguments], env={**os.environ, **settings},
                              capture_output=True, text=True, timeout=timeout)
        lines = reports.read_text().splitlines() if reports.exists() else []
        told = re.search(r"^torch_blocks: (\d+) blocks$", done.stderr, re.MULTILINE)
        return Run(done.returncode, done.stdout, done.stderr, [line for line in lines if "simgpu: REPORT" in line],
                   int(told[1]) if told else -1)
