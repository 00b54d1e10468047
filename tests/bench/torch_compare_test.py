"""bench/torch/compare without PyTorch: which limits a row misses, the bisection, the table's text."""

import json
import os
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench" / "torch"))
import largest  # noqa: E402
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
    """Answers each cell without running anything; `fits` is the largest batch by allocator, `needs` the bytes of a batch."""

    simulate = True

    def __init__(self, static=True, fits=None, needs=None, losses=None, odd_settings=None, **more):
        self.needs = needs
        self.static, self.fits, self.more = static, fits or {}, more
        self.losses, self.odd_settings, self.runs = losses or {}, odd_settings or {}, []

    def run(self, job: Job, allocator: str) -> Cell:
        self.runs.append((job, allocator))
        taken = None
        if "--batch" in job.arguments:
            rows_a_step = int(job.arguments[job.arguments.index("--batch") + 1])
            taken = self.needs and self.needs(rows_a_step)
            if taken > int(os.environ["SIMGPU_MEMORY"]) if self.needs else rows_a_step > self.fits[allocator]:
                raise OutOfMemory("full")
        figures = {"torch_reserved_peak": 1200 * MIB if allocator == "default" else 1100 * MIB, "step_ms": 1.0}
        if taken is not None:
            figures["torch_reserved_peak"] = taken
        odd = self.odd_settings if allocator == "hotpack" else {}
        cell = Cell(settings(self.static, **odd), figures)
        if allocator == "hotpack":
            cell.hotpack, cell.reports = stats(**self.more.get("stats", {})), self.more.get("reports", 0)
            cell.hotpack["reserved_peak"] = taken or cell.hotpack["reserved_peak"]
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
    def largest(self, machine: "FakeMachine", start: int, *capacities: int) -> list[dict[str, int]]:
        return [found.rows for found in largest.largest_batch(machine, Job("vit"), start, list(capacities) or [1 << 30])]

    def test_the_search_is_exact_from_either_side(self):
        fits = {"default": 1, "expandable": 37, "hotpack": 1000}
        for start in (1, 8, 37, 5000):
            self.assertEqual(self.largest(FakeMachine(fits=fits), start), [fits])

    def test_nothing_fits(self):
        machine = FakeMachine(fits=dict.fromkeys(rows.ALLOCATORS, 0))
        self.assertEqual(set(self.largest(machine, 16)[0].values()), {0})

    def test_each_capacity_is_the_devices_while_it_is_looked_at(self):
        before = os.environ.get("SIMGPU_MEMORY")
        machine = FakeMachine(needs=lambda rows: (10 + 3 * rows) * MIB)
        self.assertEqual(self.largest(machine, 4, 100 * MIB, 310 * MIB, 12 * MIB),
                         [dict.fromkeys(rows.ALLOCATORS, most) for most in (30, 100, 0)])
        self.assertEqual(os.environ.get("SIMGPU_MEMORY"), before)
        # What a run took is made use of: halving alone would take some ten runs for 100 rows.
        self.assertLess(len(machine.runs), 3 * (7 + 7 + 5))

    def test_memory_that_does_not_grow_evenly(self):
        for needs in (lambda rows: min(90, 5 * rows) * MIB if rows < 40 else rows * rows * MIB,
                      lambda rows: 50 * MIB if rows < 300 else 2000 * MIB,
                      lambda rows: rows * rows * MIB):
            machine = FakeMachine(needs=needs)
            most = max(count for count in range(1, 500) if needs(count) <= 1600 * MIB)
            self.assertEqual(self.largest(machine, 7, 1600 * MIB), [dict.fromkeys(rows.ALLOCATORS, most)])
            self.assertLess(len(machine.runs), 3 * 2 * 18)  # twice as many as by halving alone, at most

    def test_sizes(self):
        self.assertEqual([largest.parse_size(text) for text in ("5", "2K", "16g")], [5, 2048, 16 << 30])
        for text in ("", "G", "-1G", "0", "1.5G"):
            with self.subTest(text), self.assertRaises(ValueError):
                largest.parse_size(text)

    def test_its_table(self):
        found = [("vit", [largest.Largest(16 << 30, {"default": 8, "expandable": 10, "hotpack": 11}),
                          largest.Largest(1 << 29, dict.fromkeys(rows.ALLOCATORS, 0))])]
        lines = largest.render(found).splitlines()
        self.assertEqual([part.strip() for part in lines[2].split("|")[1:-1]], ["vit", "16", "8", "10", "11", "1.100"])
        self.assertEqual([part.strip() for part in lines[3].split("|")[1:-1]], ["vit", "0.5", "0", "0", "0", "-"])
        self.assertEqual(len({len(line) for line in lines}), 1)


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
