"""A budget on the simulated device: what PyTorch reserves stays within it from the first step on, in an unmodified program, or one
line names what the step needs."""

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree
from pathlib import Path
from unittest import mock

HOTPACK = str(Path(os.environ["HOTPACK_BUILD"]) / "bin" / "hotpack")

TRAIN = """
import json, torch
layers = []
for _ in range(8):
    layers += [torch.nn.Linear(512, 512), torch.nn.GELU(), torch.nn.LayerNorm(512)]
model = torch.nn.Sequential(*layers).cuda()
optimizer = torch.optim.Adam(model.parameters())
reserved = []
for step in range(7):
    loss = model(torch.randn(4096, 512, device="cuda")).pow(2).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    reserved.append(torch.cuda.max_memory_reserved())
    torch.cuda.reset_peak_memory_stats()
import hotpack
figures = hotpack.stats()
print(json.dumps({"reserved": reserved, "devices": sorted({str(v.device) for s in optimizer.state.values() for v in s.values()}),
                  "figures": figures,
                  **{name: figures.get(name) for name in ("budget", "predicted_peak", "live_peak", "moved_bytes")}}))
import time; time.sleep(1)
"""


class BudgetDeviceTest(unittest.TestCase):
    def run_program(self, budget, script=TRAIN, flags=("--simulate", "--memory", "4G")):
        command = [HOTPACK, "run", *flags, *(["--budget", budget] if budget else []), "--", sys.executable, "-c", script]
        environment = {**os.environ, "XDG_CACHE_HOME": os.path.join(os.environ["HOTPACK_BUILD"], "cache")}  # of the recorder
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)

    def figures(self, budget, *more, script=TRAIN):
        done = self.run_program(budget, script, flags=("--simulate", "--memory", "4G", *more))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("REPORT", done.stderr)
        return json.loads(done.stdout.splitlines()[-1]), done.stderr

    def test_reserved_memory_stays_within_the_budget(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        page, stats = (os.path.join(folder.name, name) for name in ("page.html", "stats.json"))
        files = ("--force", "--report", page, "--json-stats", stats)
        plain, stderr = self.figures("0", *files)
        self.assertIsNone(plain["budget"])
        self.assertNotIn("hotpack: budget", stderr)
        self.assertNotIn("budget", json.loads(Path(stats).read_text()))
        self.assertNotIn("budget-title", Path(page).read_text())
        budget = max(plain["reserved"]) // 2
        figures, stderr = self.figures(str(budget), *files)
        self.shown(figures["figures"], stderr, json.loads(Path(stats).read_text()), Path(page).read_text())
        self.assertLessEqual(max(figures["reserved"]), budget)
        self.assertGreater(max(figures["reserved"]), budget * 3 // 4)  # what is there is used
        self.assertEqual(figures["budget"], budget)
        self.assertGreater(figures["moved_bytes"], 0)
        # What was observed with everything moved, and what is kept since, give the peak.
        self.assertLessEqual(abs(figures["live_peak"] - figures["predicted_peak"]), figures["predicted_peak"] // 50)
        self.assertRegex(stderr, "hotpack: budget .* MiB: predicted .* MiB; .* copied to the host and .* computed again in 7 steps")
        figures, _ = self.figures("60%")
        self.assertLessEqual(max(figures["reserved"]), max(plain["reserved"]) * 0.62)
        self.assertIn("cpu", figures["devices"])  # the optimizer's state

    def shown(self, figures, stderr, stats, page):
        """Line, statistics and page agree with hotpack.stats()."""
        names = ("budget", "predicted_peak", "moved_bytes", "recomputed_bytes", "saved_peak", "predicted_time", "least_time", "measured_time")
        self.assertEqual({name: stats["budget"][name] for name in names}, {name: figures[name] for name in names})
        self.assertEqual(set(stats["budget"]), {*names, "saved_plan", "iterations"})
        self.assertEqual((stats["budget"]["iterations"], figures["iterations"]), (7, stats["iterations"]))
        held, predicted = (f"{size / (1 << 20):.1f} MiB" for size in (stats["reserved_peak"], figures["predicted_peak"]))
        self.assertIn(f": predicted {predicted}, held {held}; ", stderr)
        section = re.search(r'<section aria-labelledby="budget-title">.*?</section>', page, re.DOTALL)[0]
        self.assertIn(f"; by the plan {predicted}. The whole run held at most {held}. ", section)
        self.assertRegex(section, r"(?s)<title>The load of the step: at most [\d.]+ MiB with everything kept, .*</title>.*<path")
        for row in ("* (LayerNorm)", "* (GELU)", "* (Linear)", "optimizer state", "in all"):
            self.assertIn(f'<td class="word">{row}</td>', section)
        xml.etree.ElementTree.fromstring(re.search(r"<svg.*</svg>", section, re.DOTALL)[0])
        self.assertLess(len(section), 12000)

    def test_a_saved_plan_begins_with_the_second_step(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        plan = os.path.join(folder.name, "job.%r.plan")
        with mock.patch.dict(os.environ, {"SIMGPU_TIME": "pcie=25", "RANK": "7"}):
            first, _ = self.figures("120M", "--plan", plan)
            second, stderr = self.figures("120M", "--plan", plan)
        self.assertIn(f"{folder.name}/job.7.plan.budget", map(str, Path(folder.name).iterdir()))
        self.assertEqual([each["figures"]["saved_plan"] for each in (first, second)], [0, 1])
        self.assertEqual(first["predicted_peak"], second["predicted_peak"])
        self.assertLessEqual(max(second["reserved"]), 120 << 20)
        self.assertLess(second["moved_bytes"], 0.6 * first["moved_bytes"])  # of three steps one is left
        self.assertIn("hotpack: budget 120.0 MiB by a saved plan: predicted ", stderr)

    def test_the_floor_is_named(self):
        done = self.run_program("36M")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("torch.OutOfMemoryError", done.stderr)
        floor = re.search(r"hotpack: the budget of 36\.0 MiB is too small: with everything moved the step takes more than (.*) MiB "
                          r"\((.*) MiB of weights and gradients, (.*) MiB of what an operator or the program needs at once\); --budget 1% says how much\n", done.stderr)
        self.assertIsNotNone(floor, done.stderr)
        total, weights, rest = map(float, floor.groups())
        self.assertAlmostEqual(total, weights + rest, delta=0.2)
        self.assertGreaterEqual(weights, 8)  # eight matrices of 1 MiB

    def test_the_floor_is_right(self):
        """A share is no limit, so the run goes on and the floor is known. Within 1 % more than that the program runs."""
        # Large enough that a grain of 2 MiB, and the workspace of cuBLAS, are no large part of it.
        script = TRAIN.replace("4096", "32768").replace("range(8)", "range(3)").replace("range(7)", "range(5)")
        done = self.run_program("1%", script)
        self.assertEqual(done.returncode, 0, done.stderr)
        floor = re.search(r"hotpack: the budget of .* is too small: with everything moved the step takes ([0-9.]+) MiB ", done.stderr)
        self.assertIsNotNone(floor, done.stderr)
        figures, stderr = self.figures(str(int(float(floor[1]) * 1.01 * (1 << 20))), script=script)
        self.assertNotIn("too small", stderr)
        self.assertEqual(len(figures["reserved"]), 5)

    def test_times_of_two_devices(self):
        """In virtual time, so that the figures come again. A model on two devices has no time between them."""
        script = """
import json, torch
parts = [torch.nn.Sequential(*[torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.GELU()) for _ in range(6)]).to(f"cuda:{place}")
         for place in range(2)]
optimizer = torch.optim.Adam([parameter for part in parts for parameter in part.parameters()])
for step in range(12):
    parts[1](parts[0](torch.randn(8192, 512, device="cuda:0")).to("cuda:1")).pow(2).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
import hotpack
print(json.dumps(hotpack.stats()))
import time; time.sleep(1)
"""
        with mock.patch.dict(os.environ, {"SIMGPU_TIME": "pcie=25", "SIMGPU_DEVICES": "2"}):
            figures, stderr = self.figures("60%", script=script)
        self.assertNotIn("no plan", stderr)
        self.assertIn("; time over plain ", stderr)
        self.assertGreater(figures["recomputed_bytes"], 0)
        self.assertGreater(figures["measured_time"], 0)
        self.assertTrue(1 <= figures["least_time"] <= figures["predicted_time"], figures)

    def test_state_moves_beside_the_pass(self):
        """In virtual time. Some of the state is on the device when a step has ended, and none in an evaluation."""
        script = """
import json, torch
model = torch.nn.Sequential(*[torch.nn.Sequential(torch.nn.Linear(2048, 2048), torch.nn.GELU()) for _ in range(8)]).cuda()
optimizer = torch.optim.Adam(model.parameters())
def there():
    return sum(value.numel() * 4 for state in optimizer.state.values() for value in state.values() if value.is_cuda)
after, moments = [], [torch.cuda.Event(enable_timing=True) for _ in range(2)]
for step in range(32):
    if step == 26:  # a script serves again
        moments[0].record()
    model(torch.randn(8192, 2048, device="cuda")).pow(2).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
    after.append(there())
    assert all(state["step"].item() == step + 1 for state in optimizer.state.values())
moments[1].record()
torch.cuda.synchronize()
model.eval()
import hotpack
print(json.dumps({**hotpack.stats(), "taken": moments[0].elapsed_time(moments[1]), "after": after, "evaluation": there()}))
import time; time.sleep(1)
"""
        with mock.patch.dict(os.environ, {"SIMGPU_TIME": "pcie=25"}):
            ahead, _ = self.figures("900M", script=script)
            with mock.patch.dict(os.environ, {"HOTPACK_STATE_AHEAD": "0"}):
                off, _ = self.figures("900M", script=script)
        for figures in (ahead, off):
            self.assertLessEqual(figures["reserved_peak"], 900 << 20)
        self.assertEqual(ahead["evaluation"], off["evaluation"])  # what always stays
        self.assertEqual(set(off["after"][3:]), {off["evaluation"]})
        self.assertGreater(min(ahead["after"][3:]), ahead["evaluation"])
        self.assertLess(ahead["taken"], 0.97 * off["taken"])

    def test_a_moved_storage_goes_when_two_more_are_saved(self):
        """Moved or not: else the last ones that are moved would stay on the device until backward."""
        script = """
import torch
from hotpack._budget.host import PinnedHost
from torch.multiprocessing.reductions import StorageWeakRef
host = PinnedHost(torch)
for later in ("passed", "passed"), ("passed", "moved"), ("moved", "moved"):
    tensor = torch.ones(1 << 20, device="cuda")
    weak = StorageWeakRef(tensor.untyped_storage())
    host.out(tensor.untyped_storage())
    del tensor
    for each in later:
        assert not weak.expired()
        host.passed() if each == "passed" else host.out(torch.ones(1 << 20, device="cuda").untyped_storage())
    assert weak.expired()
    host.flush()
"""
        done = self.run_program("1G", script)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_bad_values(self):
        done = self.run_program("much")
        self.assertEqual(done.returncode, 2)
        self.assertEqual(done.stderr, "hotpack run: --budget much: not a size such as 7.5GiB, a share such as 60%, "
                                      "activations:50%, 0 or none\n")


if __name__ == "__main__":
    unittest.main()
