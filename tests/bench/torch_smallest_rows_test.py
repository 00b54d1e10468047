"""bench/torch/smallest without PyTorch: what is tried, what counts as right, and the table's text."""

import os
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench" / "torch"))
from cells import Cell, Job, OutOfMemory  # noqa: E402
from device_size_case import MIB, DeviceSizeCase  # noqa: E402
from smallest_rows import ALLOCATORS, STEP, Smallest, missed, render, take  # noqa: E402

NEEDED = {"hotpack": 60, "expandable": 64, "default": 70}


class FakeMachine:
    """The allocators need what NEEDED has; the predictions are `predicted`, in MiB."""

    def __init__(self, predicted):
        self.predicted, self.tried = predicted, []

    def run(self, job, allocator, trace=None):
        memory = int(os.environ["SIMGPU_MEMORY"])
        if trace is None:
            self.tried.append((allocator, memory // MIB))
        if memory < NEEDED[allocator] * MIB:
            raise OutOfMemory("full")
        return Cell({"batch": 4, "torch": "2.0"}, {})

    def compare(self, trace, peers, capacity=None, smallest=False):
        assert smallest and "hotpack" not in peers
        rows = {row: {"smallest_device": self.predicted[allocator] * MIB} for allocator, row in ALLOCATORS.items()}
        return {"live_peak": 50 * MIB, "rows": rows}


class SmallestTest(DeviceSizeCase):
    def take(self, **predicted):
        self.machine = FakeMachine({**NEEDED, **predicted})
        return take(self.machine, Job("vit"), Path("folder"))

    def test_right(self):
        row = self.take()
        self.assertEqual(missed([row]), [])
        self.assertEqual(sorted(self.machine.tried), sorted(
            (name, size) for name, needed in NEEDED.items() for size in (needed, needed - STEP // MIB)))
        self.assertEqual(os.environ["SIMGPU_MEMORY"], str(1 << 40))
        self.assertIn("| vit | 4 | 50.0 | 60 | 64 | 70 |\n", render([row]))

    def test_wrong_either_way(self):
        self.assertEqual(missed([self.take(hotpack=58)]), ["vit, hotpack: 58 (does not fit) MiB"])
        self.assertEqual(missed([self.take(default=72)]), ["vit, PyTorch: 72 (less fits) MiB"])

    def test_as_json_and_back(self):
        row = self.take(expandable=62)
        self.assertEqual(Smallest.from_json(row.as_json()), row)


if __name__ == "__main__":
    unittest.main()
