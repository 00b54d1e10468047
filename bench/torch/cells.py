"""Runs one cell of `compare`'s table: one model under one allocator, in its own process."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SIMULATED_MEMORY = "80G"  # of each simulated device, unless SIMGPU_MEMORY says otherwise
OUT_OF_MEMORY = 3  # train.py's exit code for it
_SIMULATED = ("libcudart.so.13", "libcublasLt.so.13", "libcublas.so.13", "libcudnn.so.9")
_WORK_LINE = re.compile(r"(\d+) kernels with known parameters, (\d+) without; (\d+) library calls told, (\d+) not")


class Failure(Exception):
    """A cell has no figures; the reason in one line."""


class OutOfMemory(Failure):
    """said: the lines of stderr."""

    def __init__(self, reason: str, said: tuple[str, ...] = ()):
        super().__init__(reason)
        self.said = said


@dataclass(frozen=True)
class Job:
    """The training job, the same for all cells of a row."""

    model: str
    arguments: tuple[str, ...] = ()
    label: str = ""  # of a variant

    @property
    def name(self) -> str:
        return f"{self.model} {self.label}".strip()


@dataclass
class Cell:
    settings: dict
    figures: dict  # train.py's
    hotpack: dict = field(default_factory=dict)  # hotpack's statistics; empty without it
    reports: int | None = None  # the checker's
    launches: tuple[int, int] | None = None  # kernels and library calls: with known ranges, without
    losses: str = ""
    said: tuple[str, ...] = ()  # lines of stderr


def find_python(build: Path = ROOT / "build") -> str:
    """Returns a Python that has PyTorch: $HOTPACK_TORCH_PYTHON, torch-venv in `build`, or python3. Raises Failure. It is
    not imported: that takes seconds."""
    has_torch = "import importlib.util, sys; sys.exit(importlib.util.find_spec('torch') is None)"
    named = os.environ.get("HOTPACK_TORCH_PYTHON")
    built = build / "torch-venv" / "bin" / "python"
    for path in [named] if named else [str(built) if built.exists() else None, sys.executable, shutil.which("python3")]:
        if path and subprocess.run([path, "-c", has_torch], capture_output=True).returncode == 0:
            return path
    raise Failure(f"{named} has no torch (HOTPACK_TORCH_PYTHON)" if named else
                  "no Python with PyTorch: set HOTPACK_TORCH_PYTHON, or make build/torch-venv")


def known_models(python: str) -> list[str]:
    listed = subprocess.run([python, str(ROOT / "bench" / "torch" / "train.py"), "list"], capture_output=True, text=True)
    if listed.returncode != 0:
        raise Failure(f"train.py list: {listed.stderr.strip()}")
    return listed.stdout.split()


def has_gpu(python: str) -> bool:
    asked = subprocess.run([python, "-c", "import sys, torch; sys.exit(not torch.cuda.is_available())"], capture_output=True)
    return asked.returncode == 0


class Machine:
    """The machine of the cells: the simulated device or a GPU, with the build. Not thread-safe."""

    def __init__(self, python: str, build: Path, simulate: bool, hotpack_by: str, timeout: float, peers: bool = False):
        """`hotpack_by`: "preload" or "enable", how the hotpack cells get their allocator. `timeout`: seconds per cell.
        `peers`: compare() will be called."""
        self.simulate, self.hotpack_by = simulate, hotpack_by
        self._python, self._build, self._timeout = python, build, timeout
        self._command = build / "bin" / "hotpack"
        self._simgpu = build / "lib" / "simgpu"
        needed = [self._command] if hotpack_by == "preload" or peers else []
        needed += [self._simgpu / "libcudart.so.13"] if simulate else []
        for path in needed:
            if not path.exists():
                raise Failure(f"{path} is not built")

    def run(self, job: Job, allocator: str, trace: Path | None = None, budget: str | None = None) -> Cell:
        """Runs a cell. `allocator`: "hotpack", or one of train.py's. `trace`: the path for hotpack's recording of the
        job's requests. `budget`: of a step, for hotpack by "preload". Raises Failure, OutOfMemory."""
        preload = allocator == "hotpack" and self.hotpack_by == "preload"
        with tempfile.TemporaryDirectory(prefix="hotpack-compare-") as scratch:
            out, stats = Path(scratch, "run.json"), Path(scratch, "stats.json")
            reports, losses = Path(scratch, "reports"), Path(scratch, "losses")
            chosen = [] if budget is not None else ["--allocator", "preload" if preload else allocator]
            program = [self._python, str(ROOT / "bench" / "torch" / "train.py"), job.model, *job.arguments,
                       *chosen, "--json", str(out), "--losses", str(losses)]
            if preload:
                flags = [*(["--compatibility"] if budget is None else []), *(["--simulate"] if self.simulate else [])]
                flags += ["--trace", str(trace)] if trace is not None else []
                flags += ["--budget", budget] if budget is not None else []
                flags += ["--iteration-range", "step"] if "--ranges" in job.arguments else []
                program = [str(self._command), "run", *flags, "--json-stats", str(stats), "--", *program]
            environment = self._environment(preload, reports)
            if budget is not None:
                del environment["PYTORCH_NO_CUDA_MEMORY_CACHING"]  # the run makes hotpack PyTorch's allocator
            if trace is not None and not preload:
                environment["HOTPACK_TRACE"] = str(trace)
            said = self._execute(program, environment, job, allocator)
            cell = Cell(losses=losses.read_text(), said=said, **_read(out))
            if preload:
                cell.hotpack = _read(stats)
                cell.reports = cell.hotpack.get("checker_reports")
                cell.launches = _launches(cell.hotpack)
            else:
                cell.hotpack = cell.figures.get("hotpack", {})
                _take_reports(reports, cell)
            return cell

    def compare(self, trace: Path, peers: tuple[str, ...], capacity: int | None = None, smallest: bool = False) -> dict:
        """Returns the output of `hotpack compare` for a recording, the rows by their names. `capacity`: bytes. `smallest`:
        with the smallest devices. Raises Failure."""
        program = [str(self._command), "compare", str(trace), "--json", "--repeat", "0", "--peers",
                   ",".join(peers)]
        program += ["--capacity", str(capacity)] if capacity is not None else []
        program += [] if smallest else ["--no-smallest"]
        done = subprocess.run(program, capture_output=True, text=True)
        if done.returncode != 0:
            raise Failure(done.stderr.strip() or f"hotpack compare: exit code {done.returncode}")
        compared = json.loads(done.stdout)
        compared["rows"] = {row["name"]: row for row in compared["rows"]}
        return compared

    def imports(self, module: str) -> bool:
        """Returns whether the runs' Python can import `module`."""
        return subprocess.run([self._python, "-c", f"import {module}"], capture_output=True).returncode == 0

    def _environment(self, preload: bool, reports: Path) -> dict[str, str]:
        environment = without_allocator(os.environ)
        environment["HOTPACK_HOME"] = str(self._build)
        if preload:
            environment["PYTORCH_NO_CUDA_MEMORY_CACHING"] = "1"
        elif self.simulate:
            simulate_in(environment, self._simgpu, reports)
        return environment

    def _execute(self, program: list[str], environment: dict[str, str], job: Job, allocator: str) -> tuple[str, ...]:
        """Returns the lines of stderr."""
        where = f"{job.name} under {allocator}"
        done = finish(program, environment, where, self._timeout, ROOT)
        said = [line for line in done.stderr.splitlines() if line.strip() and not line.startswith("hotpack: held at most")]
        if done.returncode == OUT_OF_MEMORY:
            raise OutOfMemory(f"{where}: {said[-1] if said else 'out of memory'}", tuple(said))
        if done.returncode != 0 and "simgpu: REPORT" not in done.stderr:  # those are a figure of the table
            raise Failure(f"{where}: exit code {done.returncode}: {said[-1] if said else 'nothing on stderr'}")
        return tuple(said)


def without_allocator(environment: Mapping[str, str]) -> dict[str, str]:
    """A copy without the variables that choose PyTorch's allocator."""
    chosen = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_NO_CUDA_MEMORY_CACHING")
    return {name: value for name, value in environment.items() if name not in chosen}


def finish(program: list[str], environment: dict[str, str], where: str, timeout: float,
           folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Runs a program to its end. `timeout`: seconds. `folder`: where it runs; None: here. Raises Failure, which begins with
    `where`, if it does not end in time."""
    try:
        return subprocess.run(program, env=environment, cwd=folder, capture_output=True, text=True, errors="replace",
                              timeout=timeout)
    except subprocess.TimeoutExpired:
        raise Failure(f"{where}: not finished after {timeout:.0f} s") from None


def simulate_in(environment: dict[str, str], simgpu: Path, reports: Path) -> None:
    """Changes an environment for a program on the simulated device without `hotpack run`. `simgpu`: its libraries."""
    libraries = [str(simgpu / name) for name in _SIMULATED if (simgpu / name).exists()]
    environment["LD_PRELOAD"] = " ".join([*libraries, environment.get("LD_PRELOAD", "")]).strip()
    environment["LD_LIBRARY_PATH"] = os.pathsep.join(
        part for part in (str(simgpu), environment.get("LD_LIBRARY_PATH", "")) if part)
    environment["SIMGPU_REPORT_FILE"] = str(reports)
    environment.setdefault("HOTPACK_WAIT_PLAN", "1")  # as hotpack run --simulate: figures that do not depend on the clock


def count_reports(path: Path) -> int:
    """Returns the number of reports of the device's checker in its file."""
    return path.read_text(errors="replace").count("simgpu: REPORT ") if path.exists() else 0


def _read(path: Path) -> dict:
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise Failure(f"{path.name}: {error}") from None


def _launches(stats: dict) -> tuple[int, int] | None:
    names = ("kernels_known", "library_calls_told", "kernels_not_known", "library_calls_not_told")
    if not all(name in stats for name in names):
        return None
    counts = [stats[name] for name in names]
    return sum(counts[:2]), sum(counts[2:])


def _take_reports(path: Path, cell: Cell) -> None:
    if not path.exists():
        return
    cell.reports = count_reports(path)
    work = _WORK_LINE.search(path.read_text(errors="replace"))
    if work:
        known, unknown, told, untold = map(int, work.groups())
        cell.launches = known + told, unknown + untold
