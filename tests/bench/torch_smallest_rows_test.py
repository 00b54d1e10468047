"""bench/torch/smallest without PyTorch: what is tried, what counts as right, and the table's text."""

import os
import sys
import tempfile
import unittest
import unittest.mock
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench" / "torch"))
from cells import Cell, Failure, Job, OutOfMemory  # noqa: E402
from device_size_case import MIB, DeviceSizeCase  # noqa: E402
from script_runs import Script, ScriptMachine  # noqa: E402
from smallest_rows import ALLOCATORS, STEP, Smallest, missed, render, take  # noqa: E402

NEEDED = {"hotpack": 60, "expandable": 64, "default": 70}


class FakeMachine:
    """The allocators need what NEEDED has; the predictions are `predicted`, in MiB."""

    def __init__(self, predicted):
        self.predicted, self.tried, self.recorded = predicted, [], []

    def run(self, job, allocator, trace=None):
        memory = int(os.environ["SIMGPU_MEMORY"])
        if trace is None:
            self.tried.append((allocator, memory // MIB))
        elif not trace.exists():  # as hotpack: an older recording stays
            trace.write_text(job.model)
        if memory < NEEDED[allocator] * MIB:
            raise OutOfMemory("full")
        return Cell({"batch": 4, "torch": "2.0"}, {})

    def compare(self, trace, peers, capacity=None, smallest=False):
        assert smallest and "hotpack" not in peers
        self.recorded.append(trace.read_text() if trace.exists() else "")
        rows = {row: {"smallest_device": self.predicted[allocator] * MIB} for allocator, row in ALLOCATORS.items()}
        return {"live_peak": 50 * MIB, "rows": rows}


class SmallestTest(DeviceSizeCase):
    def setUp(self):
        super().setUp()
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))

    def take(self, **predicted):
        self.machine = FakeMachine({**NEEDED, **predicted})
        return take(self.machine, Job("vit"), self.folder)

    def test_right(self):
        row = self.take()
        self.assertEqual(missed([row]), [])
        self.assertEqual(sorted(self.machine.tried), sorted(
            (name, size) for name, needed in NEEDED.items() for size in (needed, needed - STEP // MIB)))
        self.assertEqual(os.environ["SIMGPU_MEMORY"], str(1 << 40))
        self.assertIn("| vit | 4 | 50.0 | 60 | 64 | 70 |\n", render([row]))

    def test_the_real_one_is_found_from_any_prediction(self):
        for predicted in (*range(2, 100, 2), 1000):
            with self.subTest(predicted):
                row = self.take(default=predicted)
                self.assertEqual(row.predictions["default"].real, NEEDED["default"] * MIB)
                tried = sum(name == "default" for name, _ in self.machine.tried)
                self.assertLessEqual(tried, 2 + 2 * (abs(predicted - NEEDED["default"]) // 2).bit_length())
        self.assertIn("| vit | 4 | 50.0 | 60 | 64 | 1000 (70) |\n", render([row]))

    def test_each_prediction_is_of_the_jobs_own_recording(self):
        machine = FakeMachine(NEEDED)
        for model in ("vit", "llama"):
            take(machine, Job(model), self.folder)
        self.assertEqual(machine.recorded, ["vit", "llama"])

    def test_wrong_either_way(self):
        self.assertEqual(missed([self.take(hotpack=58)]), ["vit, hotpack: 58 (60) MiB"])
        self.assertEqual(missed([self.take(default=72)]), ["vit, PyTorch: 72 (70) MiB"])

    def test_as_json_and_back(self):
        row = self.take(expandable=62)
        self.assertEqual(Smallest.from_json(row.as_json()), row)


# Stands in for a program that uses PyTorch: what it needs depends on the allocator.
PROGRAM = """
import os, sys
if os.environ.keys() & {"PYTORCH_NO_CUDA_MEMORY_CACHING", "PYTORCH_CUDA_ALLOC_CONF"}: sys.exit("ValueError: settings")
if sys.argv[1] == "fails": sys.exit("ValueError: no data")
if sys.argv[1] == "reported" and os.environ.get("SIMGPU_CHECK") != "0" and "AS_HOTPACK" not in os.environ: sys.exit(97)
expandable = os.environ.get("PYTORCH_ALLOC_CONF") == "expandable_segments:True"
needed = 60 if "AS_HOTPACK" in os.environ else 64 if expandable else 70
if int(os.environ["SIMGPU_MEMORY"]) < needed << 20: sys.exit("torch.OutOfMemoryError: CUDA out of memory.")
"""
COMMAND = """#!/bin/sh
while [ "$1" != -- ]; do shift; done
shift
AS_HOTPACK=1 exec "$@"
"""


class ScriptTest(DeviceSizeCase):
    def setUp(self):
        super().setUp()
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        (self.folder / "bin").mkdir()
        (self.folder / "bin" / "hotpack").write_text(COMMAND)
        (self.folder / "bin" / "hotpack").chmod(0o755)
        (self.folder / "train.py").write_text(PROGRAM)

    def take(self, argument, **predicted):
        machine = ScriptMachine(FakeMachine({**NEEDED, **predicted}), sys.executable, self.folder, 60)
        return take(machine, Script.parse(f"{self.folder}/train.py {argument}"), self.folder)

    def test_tried_as_it_stands_under_each_allocator(self):
        row = self.take("'a b'")
        self.assertEqual(missed([row]), [])
        self.assertIn("| train 'a b' |  | 50.0 | 60 | 64 | 70 |\n", render([row]))
        self.assertEqual(Smallest.from_json(row.as_json()), row)
        self.assertEqual(missed([self.take("x", expandable=62)]), ["train x, expandable segments: 62 (64) MiB"])

    def test_where_it_is_and_without_the_settings_of_this_shell(self):
        before = Path.cwd()
        self.addCleanup(os.chdir, before)
        os.chdir(self.folder)
        with unittest.mock.patch.dict(os.environ, PYTORCH_NO_CUDA_MEMORY_CACHING="1", PYTORCH_CUDA_ALLOC_CONF="backend:native"):
            machine = ScriptMachine(FakeMachine(NEEDED), sys.executable, self.folder, 60)
            self.assertEqual(missed([take(machine, Script.parse("train.py x"), self.folder)]), [])

    def test_a_program_that_fails_is_not_out_of_memory(self):
        with self.assertRaisesRegex(Failure, "train fails under hotpack: exit code 1: ValueError: no data"):
            self.take("fails")

    def test_pytorchs_own_allocator_is_not_judged(self):
        self.assertEqual(missed([self.take("reported")]), [])

    def test_variables_of_the_environment(self):
        with unittest.mock.patch.dict(os.environ, JOBS=str(self.folder), SIZE="8"):
            self.assertEqual(Script.parse("$JOBS/train.py --batch $SIZE"), Script("train --batch 8", (
                f"{self.folder}/train.py", "--batch", "8")))

    def test_what_is_no_program(self):
        for command in ("", "/nowhere/train.py 1", "'train.py"):
            with self.assertRaises(Failure):
                Script.parse(command)


if __name__ == "__main__":
    unittest.main()
