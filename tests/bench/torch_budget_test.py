"""bench/torch/budget and budget_simulated: wrong usage, and what they read of a run's lines. Needs no PyTorch."""

import subprocess
import sys
import unittest
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "bench" / "torch"


def load(name):
    sys.path.insert(0, str(FOLDER))
    sys.dont_write_bytecode = True
    loader = SourceFileLoader(name, str(FOLDER / name))
    module = module_from_spec(spec_from_loader(name, loader))
    sys.modules[name] = module
    loader.exec_module(module)
    return module


class TorchBudgetTest(unittest.TestCase):
    def test_wrong_usage(self):
        for words in (["budget", "--families", "none"], ["budget", "--shares", "0"], ["budget", "--steps", "4"],
                      ["budget_simulated", "--shares", "x"], ["budget_simulated", "--steps", "3"], ["budget_simulated", "--link", "0"],
                      ["budget_simulated", "--algorithms", "search,best"], ["budget", "--link", "-1"]):
            with self.subTest(words=words):
                done = subprocess.run([str(FOLDER / words[0]), *words[1:]], capture_output=True, text=True)
                self.assertEqual(done.returncode, 2)
                self.assertEqual(done.stderr.count("\n"), 1, done.stderr)

    def test_a_family_without_its_package_is_left_out(self):
        budget = load("budget")
        missing = {"timm": "timm cannot be imported: No module named 'timm'"}

        def none():
            raise budget.MissingPackage(missing["timm"])

        families = dict(budget.FAMILIES)
        budget.FAMILIES = {"timm": none, "other": lambda: {"model": None}}
        try:
            self.assertEqual(budget.names_of(["timm", "other"]), {**missing, "other": ["model"]})
        finally:
            budget.FAMILIES = families

    def test_the_floor_of_a_line(self):
        floor_of = load("budget_simulated").floor_of
        line = "hotpack: the budget of 2.0 GiB is too small: with everything moved the step takes {}1.5 GiB (1.0 GiB of weights ..."
        self.assertEqual(floor_of(("x", line.format(""))), (3 << 29, False))
        self.assertEqual(floor_of((line.format("more than "),)), (3 << 29, True))
        self.assertEqual(floor_of(("hotpack: held at most 1.5 GiB",)), (0, False))

    def test_a_run_that_fails_is_a_line_among_others(self):
        simulated = load("budget_simulated")

        class Fails:
            """Not without a budget, and not with half of what PyTorch reserves."""

            def run(self, job, allocator, budget=None):
                if allocator == "default":
                    return simulated.Cell({}, {"torch_reserved_peak": 100 << 20, "device_step_ms": None})
                if budget == str(50 << 20):
                    raise simulated.Failure("ended after 900 s")
                stats = dict.fromkeys(("plan_lower_bound", "requests_steady", "reserved_steady", "reserved_peak"), 0)
                budgets = dict.fromkeys(("moved_bytes", "recomputed_bytes", "predicted_peak", "least_time", "predicted_time",
                                         "measured_time"), 0)
                return simulated.Cell({}, {"hotpack": budgets}, stats, reports=0)

        options = simulated.parse(["--shares", "60,50,40"])
        lines = list(simulated.rows(Fails(), simulated.Job("vit", ()), options))
        self.assertEqual([good for _, good in lines], [True, False, True])
        self.assertRegex(lines[1][0], r"^vit +search +50 % FAILED: ended after 900 s$")

        class NeverRuns:
            def run(self, job, allocator, budget=None):
                raise simulated.Failure("cannot be imported")

        self.assertEqual(list(simulated.rows(NeverRuns(), simulated.Job("vit", ()), options)),
                         [("vit               FAILED without a budget: cannot be imported", False)])


if __name__ == "__main__":
    unittest.main()
