"""bench/torch/compare without PyTorch: which limits a row misses, the bisection, the table's text."""

import contextlib
import io
import json
import os
import sys
import tempfile
import types
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench" / "torch"))
import largest  # noqa: E402
import peers  # noqa: E402
import rows  # noqa: E402
import settings as train_settings  # noqa: E402
from cells import Cell, Failure, Job, Machine, OutOfMemory  # noqa: E402
from table import header, peers_header, render, render_peers  # noqa: E402

MIB = 1 << 20


def settings(static: bool, **more) -> dict:
    return {"static": static, "batch": 4, "optimizer": "sgd", "precision": "fp32", "simulated": True, "device": "a device",
            "device_memory": 16 << 30, "torch": "t", "cuda": "c", "cudnn": "d", "cudnn_benchmark": False,
            "cudnn_deterministic": False, "tf32": False, "cublas_workspace": "w", "cublaslt_workspace": "w", "seed": 1,
            "allocator": "default", "alloc_conf": "", **more}


def stats(**more) -> dict:
    return {"reserved_peak": 1020 * MIB, "reserved_steady": 1010 * MIB, "live_peak": 1000 * MIB, "plan_height": 700 * MIB,
            "plan_lower_bound": 690 * MIB, "planned_steady": 999, "requests_steady": 1000, **more}


class FakeMachine:
    """Answers each cell without running anything; `fits` is the largest batch by allocator, `needs` the bytes of a batch, `held` what
    an allocator or a policy holds (in one step: 7 bytes less), None: it runs out of memory."""

    def __init__(self, static=True, fits=None, needs=None, losses=None, odd_settings=None, simulate=True, rmm=False, held=None, **more):
        self.needs, self.simulate, self.rmm, self.trace = needs, simulate, rmm, None
        self.held = {**dict.fromkeys(peers.SIMULATED, 1300 * MIB), "async": 1400 * MIB, "rmm-pool": 1500 * MIB,
                     "rmm-arena": 1600 * MIB, peers.EXACT: 1000 * MIB, **(held or {})}
        self.static, self.fits, self.more = static, fits or {}, more
        self.losses, self.odd_settings, self.runs = losses or {}, odd_settings or {}, []

    def imports(self, module: str) -> bool:
        return self.rmm and module.startswith("rmm")

    def compare(self, trace: Path, asked: tuple[str, ...]) -> dict:
        assert trace == self.trace, trace
        return {"rows": {name: {"reserved_steady": self.held[name] - 7, "reserved_peak": self.held[name]} for name in asked}}

    def run(self, job: Job, allocator: str, trace: Path | None = None) -> Cell:
        self.runs.append((job, allocator))
        if trace is not None:
            assert allocator == "hotpack" and trace.parent.is_dir()
            self.trace = trace
        taken = None
        if self.held.get(allocator, 0) is None:
            raise OutOfMemory("full")
        if "--batch" in job.arguments:
            rows_a_step = int(job.arguments[job.arguments.index("--batch") + 1])
            taken = self.needs and self.needs(rows_a_step)
            if taken > int(os.environ["SIMGPU_MEMORY"]) if self.needs else rows_a_step > self.fits[allocator]:
                raise OutOfMemory("full")
        figures = {"torch_reserved_peak": 1200 * MIB if allocator == "default" else 1100 * MIB, "step_ms": 1.0}
        if taken is not None:
            figures["torch_reserved_peak"] = taken
        if allocator == "async":
            figures["torch_reserved_peak"] = self.held[allocator]
        elif allocator.startswith("rmm"):
            figures.update(torch_reserved_peak=None, rmm={"reserved_peak": self.held[allocator]})
        odd = self.odd_settings if allocator == "hotpack" else {}
        cell = Cell(settings(self.static, simulated=self.simulate, **odd), figures)
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
        for more, word in (({"stats": {"reserved_steady": beyond}}, "while served, limit"),
                           ({"stats": {"planned_steady": 989}}, "by the plan"),
                           ({"stats": {"reserved_steady": 0}}, "no steady iteration"),
                           ({"reports": 2}, "2 reports")):
            with self.subTest(word):
                faults = rows.missed(row(**more))
                self.assertEqual(len(faults), 1, faults)
                self.assertIn(word, faults[0])

    def test_as_much_as_pytorch_reserves_is_too_much(self):
        faults = rows.missed(row(stats={"reserved_peak": 1100 * MIB}))
        self.assertEqual(faults, ["resnet50: 1100.0 MiB in the whole run, PyTorch expandable 1100.0"])

    def test_of_varying_shapes_only_reports_count(self):
        self.assertEqual(rows.missed(row(static=False, stats={"planned_steady": 0, "reserved_steady": 0})), [])
        self.assertEqual(len(rows.missed(row(static=False, reports=1))), 1)

    def test_cells_with_other_settings_are_no_row(self):
        with self.assertRaisesRegex(Failure, "settings under hotpack"):
            row(odd_settings={"batch": 5})


def row_with_peers(**more) -> rows.Row:
    machine = FakeMachine(**more)
    return rows.take_row(machine, Job("resnet50"), peers.others(machine))


def cells_of(text: str) -> dict[str, str]:
    title, _, line = text.splitlines()
    return dict(zip((part.strip() for part in title.split("|")), (part.strip() for part in line.split("|"))))


class PeersTest(unittest.TestCase):
    def test_allocators_that_the_job_is_run_under(self):
        self.assertEqual(peers.others(FakeMachine(rmm=True)), ("async",))  # RMM cannot run on the simulated device
        self.assertEqual(peers.others(FakeMachine(simulate=False)), ("async",))
        self.assertEqual(peers.others(FakeMachine(simulate=False, rmm=True)), ("async", "rmm-pool", "rmm-arena"))

    def test_a_good_row_misses_nothing(self):
        self.assertEqual(rows.missed(row_with_peers()), [])
        self.assertEqual(rows.missed(row_with_peers(simulate=False, rmm=True)), [])

    def test_as_much_as_any_pooling_peer_is_too_much(self):
        for name in ("chainer", "async", "rmm-pool", "rmm-arena"):
            with self.subTest(name):
                (fault,) = rows.missed(row_with_peers(simulate=False, rmm=True, held={name: 1020 * MIB}))
                self.assertEqual(fault, f"resnet50: 1020.0 MiB in the whole run, {peers.TITLES[name]} 1020.0")
                self.assertEqual(rows.missed(row_with_peers(simulate=False, rmm=True, held={name: 1020 * MIB + 1})), [])

    def test_arenas_without_pages_are_ideals(self):
        for name in peers.IDEAL:
            self.assertEqual(rows.missed(row_with_peers(held={name: 1000 * MIB})), [])

    def test_one_cudamalloc_a_request_is_the_measure(self):
        least = int((1020 - 4) * MIB / 1.02)
        self.assertEqual(rows.missed(row_with_peers(held={peers.EXACT: least + 1})), [])
        (fault,) = rows.missed(row_with_peers(held={peers.EXACT: least - 1}))
        self.assertIn("limit by one cudaMalloc a request 1020.0", fault)

    def test_the_simulated_devices_own_pool_is_no_limit(self):
        self.assertEqual(rows.missed(row_with_peers(held={"async": 1 * MIB})), [])

    def test_the_whole_run_counts_and_of_varying_shapes_nothing_is_missed(self):
        row = row_with_peers(held={"chainer": 1300 * MIB})
        self.assertEqual((row.peers["chainer"], row.held, row.served), (1300 * MIB, 1020 * MIB, 1010 * MIB))
        row = row_with_peers(static=False, held={"chainer": 1 * MIB})
        self.assertEqual(rows.missed(row), [])

    def test_its_table(self):
        cells = cells_of(render_peers([row_with_peers(held={"chainer": 1310 * MIB, "best-fit": 1320 * MIB})]))
        self.assertEqual(cells, {"": "", "model": "resnet50", "hotpack": "1020.0", "one cudaMalloc a request": "1000.0",
                                 "hotpack / that": "1.0200", "PyTorch": "1200.0", "expandable": "1100.0",
                                 "paper's pool": "1310.0", "best fit": "1320.0", "first fit": "1300.0", "cudaMallocAsync": "1400.0"})

    def test_the_columns_of_a_gpu(self):
        row = row_with_peers(simulate=False, rmm=True, held={"rmm-arena": None})
        cells = cells_of(render_peers([row]))
        self.assertEqual((cells["RMM pool"], cells["RMM arena"]), ("1500.0", "out of memory"))
        self.assertEqual((cells["ms a step, RMM pool"], cells["ms a step, RMM arena"]), ("1.00", "-"))
        self.assertEqual(rows.missed(row), [])
        self.assertIn("The pool began empty", peers_header([row]))
        self.assertNotIn("NVIDIA's", peers_header([row]))

    def test_what_was_written_gives_the_same_table(self):
        for more in ({}, {"simulate": False, "rmm": True, "held": {"rmm-pool": None}}):
            first = row_with_peers(**more)
            read = rows.Row.from_json(json.loads(json.dumps(first.as_json())))
            self.assertEqual(render_peers([read]), render_peers([first]))
            self.assertEqual(rows.missed(read), rows.missed(first))

    def test_a_run_under_other_settings_is_no_row(self):
        machine = FakeMachine()
        plain = machine.run
        machine.run = lambda job, allocator, trace=None: (
            Cell(settings(True, batch=5), {"torch_reserved_peak": 1}) if allocator == "async" else plain(job, allocator, trace))
        with self.assertRaisesRegex(Failure, "settings under async"):
            rows.take_row(machine, Job("vit"), ("async",))


# In the place of a Python with PyTorch: leaves what it was called with as train.py's figures.
STAND_IN = """#!{python}
import json, os, sys
value = dict(zip(sys.argv, sys.argv[1:]))
open(value["--losses"], "w").close()
with open(value["--json"], "w") as out:
    json.dump({{"settings": {{}}, "figures": {{"arguments": sys.argv[1:], "trace": os.environ.get("HOTPACK_TRACE"), "hotpack": {{}}}}}}, out)
"""


class RecordingTest(unittest.TestCase):
    def test_enabled_hotpack_is_told_where_the_recording_goes_and_no_other_run(self):
        with tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ):
            os.environ.pop("HOTPACK_TRACE", None)
            python = Path(folder, "python")
            python.write_text(STAND_IN.format(python=sys.executable))
            python.chmod(0o755)
            machine = Machine(str(python), Path(folder), False, "enable", 60)
            self.assertEqual(machine.run(Job("vit"), "hotpack", Path("/a/job.trace")).figures["trace"], "/a/job.trace")
            plain = machine.run(Job("vit"), "async").figures
            self.assertIsNone(plain["trace"])
            self.assertIn("--allocator async", " ".join(plain["arguments"]))

    def test_playing_a_recording_needs_the_command_whatever_brings_hotpack(self):
        Machine("python", Path("/nowhere"), False, "enable", 60)
        with self.assertRaisesRegex(Failure, "bin/hotpack is not built"):
            Machine("python", Path("/nowhere"), False, "enable", 60, peers=True)


class Resource:
    """A stand-in for RMM's resources: what it was made of."""

    def __init__(self, *arguments, **options):
        self.made_of = arguments, options


class RmmTest(unittest.TestCase):
    """With a stand-in for the module, whose names are RMM 26.10's."""

    def stand_in(self, allocator: object = "the allocator") -> dict[str, types.ModuleType]:
        modules = {name: types.ModuleType(name) for name in ("rmm", "rmm.mr", "rmm.allocators", "rmm.allocators.torch")}
        self.mr = modules["rmm"].mr = modules["rmm.mr"]
        for name in ("CudaMemoryResource", "StatisticsResourceAdaptor", "PoolMemoryResource", "ArenaMemoryResource"):
            setattr(self.mr, name, type(name, (Resource,), {}))
        self.mr.set_current_device_resource = mock.Mock()
        modules["rmm.allocators.torch"].rmm_torch_allocator = allocator
        return modules

    def enable(self, name: str, modules: dict) -> object:
        self.torch = mock.Mock(__version__="2.0")
        with mock.patch.dict(sys.modules, modules):
            return train_settings.enable_rmm(name, self.torch)

    def test_pool_and_arena_lie_over_counted_cudamalloc(self):
        for name, kind, options in (("rmm-pool", "PoolMemoryResource", {"initial_pool_size": 0}),
                                    ("rmm-arena", "ArenaMemoryResource", {})):
            with self.subTest(name):
                upstream = self.enable(name, self.stand_in())
                self.assertIs(type(upstream), self.mr.StatisticsResourceAdaptor)
                self.assertIs(type(upstream.made_of[0][0]), self.mr.CudaMemoryResource)
                (used,) = self.mr.set_current_device_resource.call_args.args
                self.assertIs(type(used), getattr(self.mr, kind))
                self.assertEqual(used.made_of, ((upstream,), options))
                self.torch.cuda.memory.change_current_allocator.assert_called_once_with("the allocator")

    def refused(self, function, *arguments) -> str:
        said = io.StringIO()
        with contextlib.redirect_stderr(said), self.assertRaises(SystemExit) as ended:
            function(*arguments)
        self.assertEqual((ended.exception.code, said.getvalue().count("\n")), (2, 1))
        return said.getvalue()

    def test_refusals_are_one_line(self):
        missing = dict.fromkeys(("rmm", "rmm.mr", "rmm.allocators", "rmm.allocators.torch"))
        self.assertIn("rmm cannot be imported", self.refused(self.enable, "rmm-pool", missing))
        self.assertIn("no allocator for PyTorch 2.0", self.refused(self.enable, "rmm-arena", self.stand_in(None)))
        with mock.patch.object(train_settings, "_driver_is_simulated", lambda: True):
            for name in train_settings.RMM:
                self.assertIn("the simulated device", self.refused(train_settings.choose_allocator, name, "cuda"))

    def test_an_older_pytorch_that_does_not_take_the_backend_up(self):
        torch = mock.Mock(__version__="2.0")
        torch.cuda.get_allocator_backend.return_value = "native"
        self.assertIn("has not taken up", self.refused(train_settings.check_allocator, "async", torch))
        train_settings.check_allocator("default", torch)


class LargestBatchTest(unittest.TestCase):
    def largest(self, machine: "FakeMachine", start: int, *capacities: int) -> list[dict[str, int]]:
        cells = {name: Cell(settings(True, batch=start), {}) for name in rows.ALLOCATORS}
        return [found.rows for found in largest.largest_batch(machine, Job("vit"), cells, list(capacities) or [1 << 30])]

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

    def test_a_run_on_such_a_device_is_not_made_again(self):
        machine = FakeMachine(fits=dict.fromkeys(rows.ALLOCATORS, 4))
        cells = {name: machine.run(Job("vit"), name) for name in rows.ALLOCATORS}  # of 4 rows, with 16 GiB
        machine.runs.clear()
        (found,) = largest.largest_batch(machine, Job("vit"), cells, [16 << 30])
        self.assertEqual(found.rows, dict.fromkeys(rows.ALLOCATORS, 4))
        self.assertTrue(machine.runs and all(job.arguments != ("--batch", "4") for job, _ in machine.runs))
        largest.largest_batch(machine, Job("vit"), cells, [17 << 30])
        self.assertIn((Job("vit", ("--batch", "4")), "default"), machine.runs)

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
        cells = cells_of(text)
        self.assertEqual(cells["PyTorch"], "1200.0")
        self.assertEqual(cells["expandable"], "1100.0")
        self.assertEqual((cells["hotpack"], cells["hotpack, held while served"]), ("1020.0", "1010.0"))
        self.assertEqual(cells["hotpack / live"], "1.0200")
        self.assertEqual(cells["by the plan"], "99.90 %")
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
