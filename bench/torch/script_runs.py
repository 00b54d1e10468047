"""Runs any Python program under one of the allocators of `smallest`, on the simulated device, as it stands."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass
from pathlib import Path

from cells import Cell, Failure, Job, Machine, OutOfMemory, finish, simulate_in, without_allocator


@dataclass(frozen=True)
class Script(Job):
    """`model`: what the table calls it; `arguments`: the program and its arguments."""

    @classmethod
    def parse(cls, command: str) -> Script:
        """From a shell's words, with its variables: '$JOBS/train.py'. Raises Failure if the first of them is no file."""
        try:
            words = [os.path.expandvars(word) for word in shlex.split(command)]
        except ValueError as error:
            raise Failure(f"{command}: {error}") from None
        if not words or not Path(words[0]).is_file():
            raise Failure(f"--script {command}: there is no such program")
        return cls(shlex.join([Path(words[0]).stem, *words[1:]]), tuple(words))


class ScriptMachine:
    """As Machine, for scripts. hotpack is given to them by `hotpack run`. Not thread-safe."""

    def __init__(self, machine: Machine, python: str, build: Path, timeout: float):
        self._machine, self._python, self._build, self._timeout = machine, python, build, timeout
        self.compare = machine.compare

    def run(self, job: Script, allocator: str, trace: Path | None = None) -> Cell:
        """Raises Failure, OutOfMemory. The cell has neither settings nor figures."""
        environment = without_allocator(os.environ)
        program = [self._python, *job.arguments]
        if allocator == "hotpack":
            environment["HOTPACK_HOME"] = str(self._build)
            words = ["--trace", str(trace), "--force"] if trace is not None else []
            program = [str(self._build / "bin" / "hotpack"), "run", "--simulate", *words, "--", *program]
        else:
            simulate_in(environment, self._build / "lib" / "simgpu", Path(os.devnull))
            environment["SIMGPU_CHECK"] = "0"  # what PyTorch's own allocator does is not judged here
            if allocator == "expandable":
                environment["PYTORCH_ALLOC_CONF"] = "expandable_segments:True"
        where = f"{job.name} under {allocator}"
        done = finish(program, environment, where, self._timeout)
        if done.returncode != 0:
            said = [line for line in done.stderr.splitlines() if line.strip()]
            kind = OutOfMemory if "out of memory" in done.stderr.lower() else Failure
            raise kind(f"{where}: exit code {done.returncode}: {said[-1] if said else 'nothing on stderr'}")
        return Cell({"batch": None, "torch": None}, {})
