"""bench/torch/compare without PyTorch: which limits a row misses, the bisection, the table's text."""

import json
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench" / "torch"))
import rows  # noqa: E402
from cells import Cell, Failure, Job, OutOfMemory  # noqa: E402
from table import header, render  # noqa: E402

MIB = 1 << 20


def settings(static: bool, **more) -> dict:
    return {"static": static, "batch": 4, "optimizer": "sgd", "precision": "fp32", "simulated": True, "device": "a device",
            "device_memory": 16 << 30, "torch": "t", "cuda": "c", "cudnn": "d", "cudnn_benchmark": False,
            "cudnn_deterministic": False, "tf32": False, "cublas_workspace": "w", "cublaslt_workspace": "w", "seed": 1,
            "allocator": "default", "alloc_conf": "", **more}


def stats(**more) -> dict:
    return {"reserved_peak": 1100 * MIB, "reserved_steady": 1020 * MIB, "live_peak": 1000 * MIB, "plan_height": 700 * MIB,
            "plan_lower_bound": 690 * MIB, "planned_steady": 999, "requests_steady": 1000, **more}


class FakeMachine:
    """Answers each cell without running anything; `fits` is the largest batch by allocator."""

    hotpack_by = "preload"

    def __init__(self, static=True, fits=None, losses=None, odd_settings=None, **more):
        self.static, self.fits, self.more = static, fits or {}, more
        self.losses, self.odd_settings, self.runs = losses or {}, odd_settings or {}, []

    def run(self, job: Job, allocator: str) -> Cell:
        self.runs.append((job, allocator))
        if "--batch" in job.arguments:
            if int(job.arguments[job.arguments.index("--batch") + 1]) > self.fits[allocator]:
                raise OutOfMemory("full")
        figures = {"torch_reserved_peak": 1200 * MIB if allocator == "default" else 1100 * MIB, "step_ms": 1.0}
        odd = self.odd_settings if allocator == "hotpack" else {}
        cell = Cell(settings(self.static, **odd), figures)
        if allocator == "hotpack":
            cell.hotpack, cell.reports = stats(**self.more.get("stats", {})), self.more.get("reports", 0)
        else:
            cell.launches = (7, 2)
        losses = self.losses.get(allocator, "1\n")
        cell.losses = losses.pop(0) if isinstance(losses, list) else losses
        return cell


def row(**more) -> rows.Row:
    return rows.take_row(FakeMachine(**more), Job("resnet50"))


class LimitsTest(unittest.TestCase):
    def test_a_good_row_misses_nothing(self):
        self.assertEqual(rows.missed(row()), [])

    def test_each_limit_is_missed_by_itself_and_named(self):
        beyond = int(1.02 * 1000 * MIB) + 4 * MIB + 1
        for more, word in (({"stats": {"reserved_steady": beyond}}, "while serving, limit"),
                           ({"stats": {"planned_steady": 989}}, "by script"),
                           ({"stats": {"reserved_steady": 0}}, "no steady iteration"),
                           ({"reports": 2}, "2 reports")):
            with self.subTest(word):
                faults = rows.missed(row(**more))
                self.assertEqual(len(faults), 1, faults)
                self.assertIn(word, faults[0])

    def test_as_much_as_pytorch_reserves_is_too_much(self):
        faults = rows.missed(row(stats={"reserved_steady": 1100 * MIB, "live_peak": 1090 * MIB}))
        self.assertEqual(len(faults), 1)
        self.assertIn("PyTorch expandable", faults[0])

    def test_of_varying_shapes_only_reports_count(self):
        self.assertEqual(rows.missed(row(static=False, stats={"planned_steady": 0, "reserved_steady": 0})), [])
        self.assertEqual(len(rows.missed(row(static=False, reports=1))), 1)

    def test_cells_with_other_settings_are_no_row(self):
        with self.assertRaisesRegex(Failure, "settings under hotpack"):
            row(odd_settings={"batch": 5})


class LargestBatchTest(unittest.TestCase):
    def test_bisection_is_exact_from_either_side(self):
        fits = {"default": 1, "expandable": 37, "hotpack": 1000}
        machine = FakeMachine(fits=fits)
        for start in (1, 8, 37, 5000):
            self.assertEqual(rows.largest_batch(machine, Job("vit"), start), fits)

    def test_nothing_fits(self):
        machine = FakeMachine(fits=dict.fromkeys(rows.ALLOCATORS, 0))
        self.assertEqual(set(rows.largest_batch(machine, Job("vit"), 16).values()), {0})


class LossesTest(unittest.TestCase):
    def answer(self, plain: list, hotpack: str) -> str:
        return rows.same_losses(FakeMachine(losses={"default": plain, "hotpack": hotpack}), Job("vit"))

    def test_equal_differing_and_undecided(self):
        self.assertEqual(self.answer(["a", "a"], "a"), "equal")
        self.assertEqual(self.answer(["a", "a"], "b"), "differ")
        self.assertEqual(self.answer(["a", "b"], "a"), "plain runs differ")


class TableTest(unittest.TestCase):
    def test_figures_stand_in_their_columns(self):
        text = render([row()])
        title, rule, line = text.splitlines()
        cells = dict(zip((part.strip() for part in title.split("|")), (part.strip() for part in line.split("|"))))
        self.assertEqual(cells["PyTorch"], "1200.0")
        self.assertEqual(cells["expandable"], "1100.0")
        self.assertEqual(cells["hotpack, serving"], "1020.0")
        self.assertEqual(cells["serving / live"], "1.0200")
        self.assertEqual(cells["by script"], "99.90 %")
        self.assertEqual(cells["ranges known / not"], "7 / 2")
        self.assertEqual(len({len(part) for part in (title, rule, line)}), 1)

    def test_what_was_written_gives_the_same_table(self):
        first = row()
        read = rows.Row.from_json(json.loads(json.dumps(first.as_json())))
        self.assertEqual(render([read]), render([first]))
        self.assertEqual(header([read], "enable", 30), header([first], "enable", 30))

    def test_times_only_of_a_real_device(self):
        self.assertNotIn("ms a step", render([row()]))
        real = row()
        real.settings["simulated"] = False
        self.assertIn("ms a step", render([real]))

    def test_the_header_says_what_all_ran_with(self):
        text = header([row()], "preload", 30)
        for part in ("a device, 16.0 GiB", "30 steps", "resnet50 sgd fp32", "Live peak"):
            self.assertIn(part, text)


if __name__ == "__main__":
    unittest.main()
