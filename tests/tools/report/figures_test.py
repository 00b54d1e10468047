#!/usr/bin/env python3
"""The figures of a report are those of `hotpack show` and `hotpack compare`: figures_test.py HOTPACK"""

import html
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

HOTPACK = sys.argv[1] if len(sys.argv) > 1 else ""
HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.join(HERE, "..", "..", "data")
TRACES = os.path.join(os.environ.get("HOTPACK_SHARED", os.path.join(HERE, "..", "..", "..", "..", "shared")), "traces")


def run(*arguments):
    return subprocess.run([HOTPACK, *arguments], check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout


def data_of(page):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL).group(1))


def cards_of(page):
    """The cards above the figures: what stands in them, and the line below, by their names."""
    found = re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd></dl><p>(.*?)</p>", page)
    return {html.unescape(name): (html.unescape(value), html.unescape(below)) for name, value, below in found}


def size_text(size):
    for unit, factor in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= factor:
            return f"{size / factor:.1f} {unit}"
    return f"{size} B"


class FiguresTest(unittest.TestCase):
    def check(self, recording, last_is_largest=True):
        page = run("report", recording, "--time-limit", "200ms")
        data = data_of(page)
        show, compare = (json.loads(run(command, recording, "--json")) for command in ("show", "compare"))
        figures, iteration = data["figures"], show.get("marked") or show.get("detected")
        if last_is_largest:  # show has the last one
            self.assertEqual(figures["period"], iteration["requests"])
            for name in ("carried_blocks", "carried_bytes", "lower_bound"):
                self.assertEqual(figures[name], iteration[name], name)
            self.assertEqual(figures["unplanned_requests"], iteration["retained_blocks"])
        self.assertEqual(figures["period"], compare["iteration"]["requests"])
        self.assertEqual(figures["lower_bound"], compare["iteration"]["plan_lower_bound"])
        self.assertEqual(figures["beside_bytes"], compare["iteration"]["not_planned"])
        self.assertEqual(figures["live_peak"], compare["live_steady"])
        self.assertEqual(data["live_steady"], compare["live_steady"])
        self.assertEqual(data["run"]["live_peak"], compare["live_peak"])
        rows = {row["name"]: row for row in compare["rows"]}
        self.assertEqual([peer["name"] for peer in data["peers"]], list(rows))
        for peer in data["peers"]:
            row = rows[peer["name"]]
            self.assertEqual((peer["steady"], peer["peak"], peer["calls"]), (row["reserved_steady"], row["reserved_peak"], row["device_calls"]), peer["name"])
            self.assertEqual(peer["smallest"], row["smallest_device"], peer["name"])
        self.assertEqual(data["held_while_served"], rows["hotpack"]["held_while_served"])
        self.check_headline(cards_of(page), rows)

    # All sides are compared by the most held in the whole run. A loss is printed like a win.
    def check_headline(self, cards, rows):
        ours = rows["hotpack"]["reserved_peak"]
        self.assertEqual(cards["hotpack held at most"], (size_text(ours), "its engine, in the whole run"))
        for name, title in (("pytorch", "PyTorch held at most"), ("pytorch-expandable", "... with expandable segments")):
            theirs = rows[name]["reserved_peak"]
            value, below = cards[title]
            self.assertEqual(value, size_text(theirs))
            if theirs == ours:
                self.assertEqual(below, "as much as hotpack")
            else:
                self.assertTrue(below.endswith(" less than hotpack" if theirs < ours else " more than hotpack"), below)
        served = rows["hotpack"]["held_while_served"]
        self.assertEqual("hotpack held while served" in cards, served is not None)

    def test_recordings_of_the_repository(self):
        for name in ("mlp-adam.trace", "lstm.csv", "cnn-carried.csv"):
            with self.subTest(name):
                self.check(os.path.join(DATA, name))

    def test_recorded_training_steps(self):
        # Repeated steps change what expandable segments hold; an iteration with requests that are not planned.
        for name in ("unet-train-b2.csv", "seq2seqvar-train-b16.csv"):
            path = os.path.join(TRACES, name)
            if not os.path.exists(path):
                self.skipTest(f"no {path}: HOTPACK_SHARED names the folder above traces/")
            with self.subTest(name):
                self.check(path, last_is_largest=not name.startswith("seq2seqvar"))

    # `run` says what its job held, `compare` and `report` what its recording holds on the same engine: the same to a chunk.
    def test_run_compare_and_report_agree(self):
        if not os.path.exists(os.path.join(os.path.dirname(HOTPACK), "..", "lib", "simgpu", "libcudart.so.13")):
            self.skipTest("the simulated device is not built")
        for name, marks in (("mlp-adam.csv", "api"), ("mlp-adam.csv", "none"), ("lstm.csv", "api"), ("cnn-carried.csv", "none")):
            with self.subTest(name, marks=marks), tempfile.TemporaryDirectory() as folder:
                trace, stats = os.path.join(folder, "job.trace"), os.path.join(folder, "stats.json")
                done = subprocess.run([HOTPACK, "run", "--simulate", "--trace", trace, "--json-stats", stats, "--", HOTPACK, "replay",
                                       os.path.join(DATA, name), "--repeat", "8", "--marks", marks], capture_output=True, text=True, check=True)
                with open(stats) as file:
                    held = json.load(file)
                self.assertGreaterEqual(held["steady_iteration"], 0)
                rows = {row["name"]: row for row in json.loads(run("compare", trace, "--json"))["rows"]}
                self.assertLessEqual(abs(rows["hotpack"]["reserved_peak"] - held["reserved_peak"]), 2 << 20)
                self.assertLessEqual(abs(rows["hotpack"]["held_while_served"] - held["reserved_steady"]), 2 << 20)
                self.check_headline(cards_of(run("report", trace)), rows)
                line = done.stderr.splitlines()[-1]
                self.assertIn(f"held at most {size_text(held['reserved_peak'])} (PyTorch would have held {size_text(rows['pytorch']['reserved_peak'])}, "
                              f"with expandable segments {size_text(rows['pytorch-expandable']['reserved_peak'])}), "
                              f"held while served {size_text(held['reserved_steady'])}, live peak {size_text(held['live_peak'])}; ", line)
                self.assertIn(f"smallest device {size_text(rows['hotpack']['smallest_device'])} (PyTorch {size_text(rows['pytorch']['smallest_device'])}, "
                              f"with expandable segments {size_text(rows['pytorch-expandable']['smallest_device'])})", line)
                self.assertNotIn("bound", line)

    # All of this job has room in one segment of PyTorch's; hotpack has a chunk for what stays and one for the plan.
    def test_where_hotpack_holds_more_the_page_says_so(self):
        lines = ["event,id,bytes", "alloc,99,4096"]
        for step in range(6):
            lines += [f"mark,{step},", *(f"alloc,{k},{4096 * (k + 1)}" for k in range(12)), *(f"free,{k}," for k in range(12))]
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "steps.csv")
            with open(path, "w") as file:
                file.write("\n".join([*lines, "mark,6,"]) + "\n")
            self.check(path)
            self.assertEqual(cards_of(run("report", path))["PyTorch held at most"], ("2.0 MiB", "50.0 % less than hotpack"))

    def test_requests_that_are_not_planned_are_beside_the_plan(self):
        lines, block = ["event,id,bytes"], 0
        for step in range(3):
            lines.append("mark,,")
            mine = []
            for k in range(40):
                lines.append(f"alloc,{block},{4096 * (k + 1 + step)}")
                mine.append(block)
                block += 1
            kept = 4 if step == 2 else 0  # asked for by the last step and never released
            lines += [f"free,{i}," for i in mine[kept:]]
        lines.append("mark,,")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "growing.csv")
            with open(path, "w") as file:
                file.write("\n".join(lines) + "\n")
            self.check(path)
            figures = data_of(run("report", path))["figures"]
            self.assertEqual(figures["unplanned_requests"], 4)
            self.assertEqual(figures["beside_bytes"], 4096 * (3 + 4 + 5 + 6))
            self.assertEqual(figures["beside_blocks"], 4)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
