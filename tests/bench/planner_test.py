"""bench/planner's sections: what they name when a planner's answers are not as they must be, with programs that stand in for hotpack's."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench" / "tables"), str(ROOT / "bench" / "plans")]
import budgets  # noqa: E402
import logs  # noqa: E402
import steps  # noqa: E402
from paper_figures import number  # noqa: E402
from runs import Failure, read_sweep, seconds_of  # noqa: E402

HEAD = "algorithm,budget,part,arena,live_peak,time_ns,ratio,bound_ratio,recomputed,swapped\n"
STAND_IN = """#!/usr/bin/env python3
import json, pathlib, sys
here = pathlib.Path(__file__).parent
answers = json.loads((here / "answers.json").read_text())
arguments = sys.argv[1:]
with open(here / "calls", "a") as calls: print(*arguments, file=calls)
if arguments == ["--version"]: print("hotpack 0.0.0")
elif "--sweep" in arguments: print(answers["sweep"], end="")
else:
    algorithm = arguments[arguments.index("--algorithm") + 1]
    if answers.get(algorithm) is None:
        print("hotpack plan: x: no plan found for a budget", file=sys.stderr)
        sys.exit(2)
    print(json.dumps(answers[algorithm]))
"""


def line(algorithm: str, budget: int, time: int | None, arena: int | None = None, bound: float = 1.0) -> str:
    part = f"{algorithm},{budget},{budget / 1000:.6f},"
    return part + (",,,,,,\n" if time is None else f"{budget if arena is None else arena},1,{time},{time / 100:.6f},{bound:.6f},1,0\n")


def points(times: dict[str, list[int | None]], **more) -> list:
    """By planner its times at the budgets 500, 600, ...; the step takes 100."""
    return read_sweep(HEAD + "".join(line(name, 500 + 100 * i, time, **more) for name, each in times.items() for i, time in enumerate(each)))


class BudgetsTest(unittest.TestCase):
    def missed(self, times: dict, **more) -> str:
        return "\n".join(budgets.missed("net", points(times, **more)))

    def test_nothing_is_missed(self):
        self.assertEqual(self.missed({"search": [None, 120, 110, 100], "chen": [None, None, 110, 100], "dtr": [None, 130, 111, 100]}), "")

    def test_a_slower_search_is_named(self):
        said = self.missed({"search": [120, 110, 100], "chen": [125, 109, 100], "dtr": [121, 112, 100]})
        self.assertEqual(said, "net at 0 MB (60.0%): search 1.100000, chen 1.090000")

    def test_a_missing_plan_is_named(self):
        said = self.missed({"search": [None, 110, 100], "chen": [None, 120, 100], "dtr": [150, 112, 100]})
        self.assertEqual(said, "net at 0 MB (50.0%): search has no plan, dtr 1.5000")

    def test_a_search_that_is_not_monotone_is_named(self):
        self.assertIn("net at 0 MB (70.0%): search 1.120000, 1.100000 at 0 MB: not monotone", self.missed({"search": [120, 110, 112, 100]}))
        self.assertIn("search has no plan, 1.200000 at 0 MB: not monotone", self.missed({"search": [120, None, 100]}))
        # Against the last budget with a plan, not against the one before.
        self.assertEqual(self.missed({"search": [110, None, 115, 100]}).count("not monotone"), 2)

    def test_plans_that_cannot_be_are_named(self):
        self.assertIn("the arena of dtr is above the budget", self.missed({"search": [100], "dtr": [100]}, arena=501))
        self.assertEqual(self.missed({"search": [100]}, arena=500), "")
        self.assertIn("search 1.040000 is below the bound, 1.050000", self.missed({"search": [104]}, bound=1.05))
        self.assertEqual(self.missed({"search": [105]}, bound=1.05), "")

    def test_summary(self):
        found = budgets.summary(points({"search": [None, 121, 110, 100], "chen": [None, 110, 120, 100], "dtr": [150, None, None, 100]}, bound=1.0))
        self.assertEqual((found["anybody"], found["search"], found["fastest"]), (4, 3, 1))
        self.assertAlmostEqual(found["loss"], 0.1)
        self.assertAlmostEqual(found["largest_gap"], 0.21)
        self.assertAlmostEqual(found["mean_gap"], 0.31 / 3)

    def test_the_bound_of_a_budget_is_the_least_of_its_plans_bounds(self):
        # dtr's plan is one of a smaller budget, whose bound is higher.
        found = read_sweep(HEAD + line("search", 500, 110, bound=1.02) + line("dtr", 500, 120, bound=1.09) + line("echo", 500, None))
        self.assertEqual(found[0].bound_ratio(), 1.02)
        self.assertAlmostEqual(budgets.summary(found)["largest_gap"], 1.10 / 1.02 - 1)

    def test_half(self):
        self.assertEqual(budgets.half(points({"search": [None, 110, 100]})).budget, 600)
        self.assertEqual(budgets.half(points({"search": [None, 110, 100], "dtr": [150, None, 100]})).budget, 500)

    def test_what_is_no_sweep(self):
        for text in ("", HEAD, "a,b\n1,2\n", HEAD + "search,x,0.5,,,,,,,\n"):
            with self.subTest(text), self.assertRaises(Failure):
                read_sweep(text)


class LogsTest(unittest.TestCase):
    def test_what_is_missed(self):
        peak = {"log": "unet-6", "peak_bytes": 8_416_000_000, "published_mb": 8416}
        row = {"log": "unet-6", "budget": "8 GB", "search_ratio": 1.01, "dtr_ratio": 1.02, "listed": 1.065}
        self.assertEqual(logs.missed([peak], [row, {**row, "dtr_ratio": None}]), [])
        for peaks, rows, said in (([{**peak, "peak_bytes": 8_500_000_000}], [], "unet-6: replayed peak 8500 MB, measured 8416 MB"),
                                  ([], [{**row, "search_ratio": None}], "unet-6 at 8 GB: search has no plan"),
                                  ([], [{**row, "dtr_ratio": 1.01}], "unet-6 at 8 GB: search 1.0100, dtr 1.0100"),
                                  ([], [{**row, "listed": 1.01}], "unet-6 at 8 GB: search 1.0100, listed 1.01")):
            with self.subTest(said):
                self.assertEqual(logs.missed(peaks, rows), [said])


class StepsTest(unittest.TestCase):
    def test_what_is_missed(self):
        cell = {"ratio": 1.0404, "bound": 1.02, "arena": 500}
        none = {"ratio": None, "bound": None, "arena": None, "why": "no plan found", "impossible": False}

        def said(**changes) -> str:
            return "\n".join(steps.missed({"graph": "net", "share": 60, "budget": 500, "cells": {"25 GB/s": {**cell, **changes}}}))

        self.assertEqual(said(), "")
        self.assertEqual(said(ratio=1.0506), "net at 60 %, 25 GB/s: 1.0506, 3.00% over the bound")
        loose, tight = {"bound": 100, "fastest": 104}, {"bound": 100, "fastest": 102}
        self.assertEqual(said(ratio=1.0506, cases=[tight, loose]), "")
        self.assertEqual(said(ratio=1.0506, cases=[tight]), "net at 60 %, 25 GB/s: 1.0506, 3.00% over the bound")
        self.assertEqual(said(arena=501), "net at 60 %, 25 GB/s: the arena is above the budget")
        self.assertEqual(said(**none), "net at 60 %, 25 GB/s: no plan: no plan found")
        self.assertEqual(said(**{**none, "impossible": True}), "")


class NumbersTest(unittest.TestCase):
    def test_durations(self):
        self.assertEqual([seconds_of(text) for text in ("20s", "500ms", "2min", "1.5h")], [20, 0.5, 120, 5400])
        for text in ("", "20", "0s", "-1s", "s", "20 s", "20days"):
            with self.subTest(text), self.assertRaises(ValueError):
                seconds_of(text)

    def test_numbers(self):
        self.assertEqual([number(value) for value in (None, 0.0111449, 28.7, 15900, 0)], ["", "0.01114", "28.7", "15900", "0"])


class ProgramTest(unittest.TestCase):
    """bench/planner itself, on a build folder of stand-ins."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        for each in ("build/bin", "shared/dtr"):
            (self.root / each).mkdir(parents=True)
        self.put("hotpack", STAND_IN)
        self.plan = {"time": 104, "baseline_time": 100, "lower_bound_time": 102, "arena": 7, "live_peak": 7, "operators": 3,
                     "program_peak": 8_416_000_000}

    def put(self, name: str, text: str):
        path = self.root / "build" / "bin" / name
        path.write_text(text)
        path.chmod(0o755)

    def answers(self, **answers):
        (self.root / "build" / "bin" / "answers.json").write_text(json.dumps(answers))

    def run_it(self, *arguments: str, code: int = 0) -> subprocess.CompletedProcess:
        done = subprocess.run([sys.executable, ROOT / "bench" / "planner", *arguments, "--build", self.root / "build"], capture_output=True, text=True,
                              env={**os.environ, "HOTPACK_SHARED": str(self.root / "shared")})
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def sweep(self, *search: int | None) -> str:
        times = {"search": search, "dtr": (120, 110, 100)}
        return HEAD + "".join(line(name, 500 + 100 * i, time) for name, each in times.items() for i, time in enumerate(each))

    def test_budgets(self):
        self.answers(auto=self.plan, sweep=self.sweep(115, 109, 100))
        said = self.run_it("budgets", "--only", "inception", "--only", "vgg:16,batch=64", "--out", str(self.root / "out")).stdout
        document = json.loads((self.root / "out_budgets.json").read_text())
        self.assertEqual((self.root / "out_budgets.md").read_text(), said.removesuffix("\n"))
        self.assertEqual([(row["graph"], row["operators"], row["fastest"], row["loss"], row["copies"]) for row in document["graphs"]],
                         [("vgg:16,batch=64", 3, 2, 0.0, False), ("inception", 3, 2, 0.0, False), ("vgg:16,batch=64, copies", 3, 2, 0.0, True)])
        self.assertEqual([row["search_ratio"] for row in document["rows"]], 3 * [1.15, 1.09, 1.0])
        calls = (self.root / "build" / "bin" / "calls").read_text()
        self.assertEqual(calls.count("plan vgg:16,batch=64 --time-limit 20s --sweep --points 20\n"), 1)
        self.assertEqual(calls.count("--sweep --points 20 --swap\n"), 1)
        self.assertEqual((document["missed"], document["section"], document["schema"]), ([], "budgets", "hotpack-planner"))

    def test_a_check_that_is_missed_is_the_exit_code(self):
        self.answers(auto=self.plan, sweep=self.sweep(None, 111, 100))
        said = self.run_it("budgets", "--only", "inception", code=1).stdout
        self.assertIn("\nmissed: inception at 0 MB (50.0%): search has no plan, dtr 1.2000\n", said)
        self.assertIn("\nmissed: inception at 0 MB (60.0%): search 1.110000, dtr 1.100000\n", said)

    def test_logs(self):
        for name in ("unet-6", "mine"):
            (self.root / "shared" / "dtr" / f"{name}.log").touch()
        self.answers(auto=self.plan, search=self.plan, dtr={**self.plan, "time": 106})
        said = self.run_it("logs").stdout
        self.assertRegex(said, r"\| unet-6 +\| +3 \| +8416\.0 \| +8416 \| +\+0\.00% \|")
        self.assertRegex(said, r"\| mine +\| +3 \| +8416\.0 \| +\| +\|")
        self.assertRegex(said, r"\| unet-6 +\| +4 GB \| 1\.0400 \| +1\.0600 \| +1\.245 \| 1\.0200 \| +1\.96% \|")
        self.assertNotIn(str(self.root / "shared"), said)
        self.answers(auto={**self.plan, "program_peak": 8_000_000_000}, search={**self.plan, "time": 107})
        said = self.run_it("logs", code=1).stdout
        for part in ("missed: unet-6: replayed peak 8000 MB, measured 8416 MB", "missed: unet-6 at 8 GB: search 1.0700, listed 1.065"):
            self.assertIn(part, said)

    def record(self, **reserved: int) -> tuple[str, str]:
        """The option for a folder of recorded steps."""
        folder = self.root / "steps"
        folder.mkdir()
        (folder / "reserved.json").write_text(json.dumps(reserved))
        return "--recorded", str(folder)

    def cases(self, *times: tuple[int, int]):
        """What coarse_figures prints: of each smaller case the bound and the best of all plans."""
        found = [{"operators": 6 + i, "storages": 10 + i, "baseline": 90, "bound": bound, "fastest": fastest} for i, (bound, fastest) in enumerate(times)]
        self.put("coarse_figures", f"#!/bin/sh\necho '{json.dumps({'cases': found})}'\n")

    def test_steps(self):
        self.answers(search={**self.plan, "time": 103, "host_peak": 0, "host_slices": 0, "slices": 0})
        recorded = self.record(net=1000 << 20, other=100 << 20)
        said = self.run_it("steps", *recorded, "--only", "net", "--out", str(self.root / "out")).stdout
        cells = " +".join(4 * [r"1\.0300 \(1\.0200\) \|"])
        for share in (75, 60, 50):
            self.assertRegex(said, rf"\| net +\| +1000 \| +{share} % \| +{cells}")
        self.assertIn("\n12 of 12 plans take at most 1.02 times their bound; the farthest is 0.98% above.\n", said)
        calls = (self.root / "build" / "bin" / "calls").read_text()
        budget = f"--algorithm search --json --budget {600 << 20}"
        self.assertEqual(calls.count(f"plan net.json --time-limit 20s {budget}\n"), 1)
        for rate in (12, 25, 50):
            self.assertEqual(calls.count(f"plan net.json --time-limit 20s {budget} --swap --bandwidth {rate}\n"), 1)
        self.assertNotIn("other", calls)
        self.answers(search={**self.plan, "time": 108, "host_peak": 0, "host_slices": 3, "slices": 9})
        self.cases((200, 204))
        said = self.run_it("steps", *recorded, code=1).stdout
        self.assertIn("missed: net at 50 %, 12 GB/s: 1.0800, 5.88% over the bound\n", said)
        self.assertIn("missed: net at 50 %, recomputing: 1.0800", said)
        self.cases((200, 204), (100, 107))
        said = self.run_it("steps", *recorded, code=1).stdout
        self.assertNotIn("missed: net at 50 %, 12 GB/s", said)
        self.assertIn("missed: net at 50 %, recomputing: 1.0800", said)
        self.assertRegex(said, r"\| net +\| +50 % \| 12 GB/s \| +1\.0588 \| 7 operators, 11 storages \| +1\.0700 \| 1\.0200 to 1\.0700 \|")
        self.assertIn(" 1.0800 (1.0200)* ", said)
        self.answers()
        self.assertIn("missed: net at 50 %, recomputing: no plan: ", self.run_it("steps", *recorded, code=1).stdout)

    def test_planners_on_recorded_steps(self):
        self.answers(auto=self.plan, sweep=self.sweep(115, 109, 100))
        recorded = self.record(net=1000 << 20)
        for section, alone, copying in (("step_budgets", 2, 0), ("step_copies", 0, 2)):
            said = self.run_it(section, *recorded).stdout
            self.assertEqual((said.count("| net "), said.count("| net, copies ")), (alone, copying))

    def test_without_recorded_steps(self):
        for section in ("steps", "step_budgets", "step_copies"):
            self.assertIn(f"{section}: skipped: no recorded steps: ", self.run_it(section).stdout)
        self.assertIn("no recorded step is called x", self.run_it("steps", *self.record(net=1), "--only", "x").stdout)

    def test_papers_figures(self):
        self.assertIn("chen: skipped: no program chen_figures", self.run_it("chen").stdout)
        rows = [{"case": "a | b", "what": "memory", "ours": 5.0, "published": 4.0, "unit": "GB", "note": "why"},
                {"case": "c", "what": "time", "ours": 1234.5, "published": None, "unit": "s", "note": ""}]
        self.put("chen_figures", "#!/bin/sh\ncat <<END\n" + json.dumps({"section": "chen", "rows": rows, "orderings": [
            {"says": "one below two", "holds": True, "figures": [1, 2]}]}) + "\nEND\n")
        said = self.run_it("chen").stdout
        self.assertRegex(said, r"\| a \\\| b +\| +memory \| +5 \| +4 \| +1\.250 \| +GB \| +why \|")
        self.assertRegex(said, r"\| c +\| +time \| +1234 \| +\| +\| +s \|")
        self.assertIn("- yes: one below two (1, 2)", said)
        self.put("echo_figures", '#!/bin/sh\necho \'{"rows": [], "orderings": [{"says": "two below one", "holds": false, "figures": [1, 2]}]}\'\n')
        self.assertIn("missed: echo: not so: two below one (1, 2)", self.run_it("echo", code=1).stdout)

    def test_a_program_that_fails_is_named_and_the_others_run(self):
        self.put("chen_figures", "#!/bin/sh\necho broken >&2\nexit 1\n")
        self.put("echo_figures", "#!/bin/sh\necho '{}'\n")
        self.put("dqn_figures", "#!/bin/sh\necho '{\"rows\": [], \"orderings\": []}'\n")
        done = self.run_it("chen", "echo", "dqn", "--out", str(self.root / "out"), code=1)
        self.assertIn("bench/planner: chen: broken\n", done.stderr)
        self.assertIn("bench/planner: echo: echo_figures printed what is no table of figures", done.stderr)
        self.assertEqual(sorted(path.name for path in self.root.glob("out*")), ["out_dqn.json", "out_dqn.md"])

    def test_a_graph_that_fails_is_missed(self):
        self.answers(auto=self.plan, sweep="nothing")
        self.assertIn("missed: inception: --sweep printed", self.run_it("budgets", "--only", "inception", code=1).stdout)

    def test_wrong_use_is_one_line(self):
        for arguments, word in (([], "sections are"), (["none"], "not none"), (["logs", "--time-limit", "5"], "no duration"),
                                (["logs", "--out", "/nowhere/x"], "no such directory"), (["logs", "--build", "/nowhere"], "is not there"),
                                (["steps", "--recorded", "/nowhere"], "no reserved.json there")):
            with self.subTest(word):
                done = subprocess.run([sys.executable, ROOT / "bench" / "planner", "--build", self.root / "build", *arguments], capture_output=True, text=True)
                self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1), done.stderr)
                self.assertIn(word, done.stderr)


if __name__ == "__main__":
    unittest.main()
