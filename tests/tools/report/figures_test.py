#!/usr/bin/env python3
"""The figures of a report are those of `hotpack show` and `hotpack compare`: figures_test.py HOTPACK"""

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


class FiguresTest(unittest.TestCase):
    def check(self, recording):
        data = data_of(run("report", recording, "--time-limit", "200ms"))
        show, compare = (json.loads(run(command, recording, "--json")) for command in ("show", "compare"))
        figures, iteration = data["figures"], show.get("marked") or show.get("detected")
        self.assertEqual(figures["period"], iteration["requests"])
        for name in ("carried_blocks", "carried_bytes", "lower_bound"):
            self.assertEqual(figures[name], iteration[name], name)
        self.assertEqual(figures["unplanned_requests"], iteration["retained_blocks"])
        self.assertEqual(figures["lower_bound"], compare["iteration"]["plan_lower_bound"])
        self.assertEqual(figures["beside_bytes"], compare["iteration"]["not_planned"])
        self.assertEqual(figures["live_peak"], compare["live_steady"])
        self.assertEqual(data["live_steady"], compare["live_steady"])
        rows = {row["name"]: row for row in compare["rows"]}
        self.assertEqual([peer["name"] for peer in data["peers"]], list(rows))
        for peer in data["peers"]:
            if peer["name"] == "hotpack":  # its plans are searched for by the clock
                continue
            row = rows[peer["name"]]
            self.assertEqual((peer["steady"], peer["peak"], peer["calls"]), (row["reserved_steady"], row["reserved_peak"], row["device_calls"]), peer["name"])

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
                self.check(path)

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
