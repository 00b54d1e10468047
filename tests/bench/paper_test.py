"""bench/paper with small networks: the shares of a recording by hand, the documents, refusals. Arguments: the build directory,
then unittest's. Needs no PyTorch; what needs one is paper_torch_test.py."""

import csv
import json
import os
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(sys.argv.pop(1)).resolve()
PAPER = ROOT / "bench" / "paper"
sys.path.insert(0, str(PAPER))
import published  # noqa: E402
from bars import Bar  # noqa: E402
from plot import Bars, chart  # noqa: E402
from shares import shares_of  # noqa: E402


def run(program: str, *arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, str(PAPER / program), "--build", str(BUILD), *arguments], capture_output=True, text=True,
                          timeout=300, env=os.environ)


class SharesTest(unittest.TestCase):
    # Weights (0) stay; a gradient (1, 4) lives until the next iteration; 2, 3 and 5, 6 are an iteration's own.
    RUN = ("event,id,bytes\nalloc,0,1000\nmark,step,\nalloc,2,600\nalloc,1,512\nfree,2,\nmark,step,\nalloc,5,600\nfree,1,\n"
           "alloc,4,512\nalloc,6,100\nfree,6,\nfree,5,\nmark,end,\n")

    def test_retained_carried_and_kept_to_the_end(self):
        shares = shares_of(self.RUN)
        self.assertEqual((shares.retained, shares.carried, shares.requests), (1024, 512, 3))
        # 1024 + 512 + 1024 before the gradient goes; then 1024 + 1024 + 512 + 512 at the end.
        self.assertEqual(shares.kept_to_the_end, 1024 + 1024 + 512 + 512)

    def test_without_two_marks_there_are_none(self):
        self.assertIsNone(shares_of("event,id,bytes\nalloc,0,1\nmark,step,\nfree,0,\n"))

    def test_a_bar_is_the_sum_of_its_shares(self):
        bar = Bar("n", "training", 1, 3, 90, 20, 10, 95, 99, 120, 100, 98, 96, 70)
        self.assertEqual(bar.retained + bar.carried + bar.packed("hotpack"), bar.hotpack)
        self.assertAlmostEqual(bar.saved("hotpack"), 1 / 6)
        self.assertAlmostEqual(bar.as_json()["hotpack_orig_ratio"], 100 / 120)


class ChartTest(unittest.TestCase):
    def boxes(self, svg: str) -> list[float]:
        return [float(box.get("height")) for box in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}rect")
                if len(box)]  # those with a title

    def test_bars_are_as_high_as_their_values(self):
        first, second, third = self.boxes(chart("t", "MiB", [Bars("1", "a", [("x", [1.0, 3.0]), ("y", [2.0, 0.0])])],
                                                [("p", "#111"), ("q", "#222")]))[:3]
        self.assertAlmostEqual(second, 3 * first, delta=0.05)
        self.assertAlmostEqual(third, 2 * first, delta=0.05)

    def test_a_logarithmic_axis_adds_a_step_for_each_tenfold(self):
        one, ten, hundred = self.boxes(chart("<t>", "ms", [Bars("", "a", [("", [value]) for value in (0.02, 0.2, 2.0)])],
                                             [("p", "#111")], logarithmic=True))
        self.assertAlmostEqual(hundred - ten, ten - one, delta=0.05)
        self.assertGreater(one, 0)


class CommandsTest(unittest.TestCase):
    def take(self, program: str, *arguments: str) -> tuple[dict, str, Path]:
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        done = run(program, "--smoke", "--out", scratch.name, *arguments)
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
        folder = Path(scratch.name)
        document = json.loads((folder / f"{program}.json").read_text())
        self.assertEqual(document["schema"], f"hotpack-paper-{program}")
        self.assertEqual((folder / f"{program}.md").read_text(), done.stdout)
        with open(folder / f"{program}.csv", encoding="utf-8") as file:
            self.assertEqual(len(list(csv.DictReader(file))), len(document["rows"]))
        self.assertIn("--smoke: small networks; the figures show nothing.", done.stdout)
        for picture in folder.glob("*.svg"):
            ElementTree.parse(picture)
        return document, done.stdout, folder

    def test_figure2(self):
        document, _, folder = self.take("figure2")
        rows = {(row["network"], row["mode"]): row for row in document["rows"]}
        self.assertEqual(len(rows), 4)
        for row in rows.values():
            self.assertLessEqual(row["live"], min(row["naive"], row["orig"], row["hotpack"]))
            self.assertLess(row["naive"], row["kept"])
            self.assertGreater(row["retained"], 0)
            self.assertEqual(row["carried"] > 0, row["mode"] == "training")
        inference = rows["alexnet", "inference"]
        self.assertEqual(inference["plan_height"], published.OPTIMA["alexnet"])
        self.assertEqual(inference["plan"], inference["retained"] + inference["plan_height"])
        self.assertLess(inference["plan"], inference["orig"])
        # AlexNet's weights are 62378344 numbers in 16 blocks; its momenta as many again.
        for mode, times in (("inference", 1), ("training", 2)):
            self.assertAlmostEqual(rows["alexnet", mode]["retained"], times * 4 * 62378344, delta=times * 16 * 512)
        self.assertAlmostEqual(rows["alexnet", "training"]["carried"], 4 * 62378344, delta=16 * 512)
        self.assertEqual(len(list(folder.glob("figure2?.svg"))), 4)

    def test_figure4(self):
        document, _, folder = self.take("figure4", "--repeat", "2")
        self.assertEqual([row["network"] for row in document["rows"]], ["alexnet", "alexnet", "seq2seq_tiny", "seq2seq_tiny"])
        for row in document["rows"]:
            self.assertGreaterEqual(row["height"], row["lower_bound"])
            self.assertGreater(row["seconds"], 0)
        self.assertEqual(document["rows"][0]["height"], published.OPTIMA["alexnet"])
        self.assertTrue((folder / "figure4.svg").exists())

    def test_text(self):
        document, said, _ = self.take("text")
        rows = {row["what"]: row for row in document["rows"]}
        self.assertEqual(rows["alexnet, inference: the optimum"]["our_value"], published.OPTIMA["alexnet"])
        self.assertIn("needs a GPU: bench/paper/figure3", said)

    def test_a_case_that_cannot_be_had_is_said_and_fails(self):
        with tempfile.TemporaryDirectory() as scratch:
            build = Path(scratch, "build")
            (build / "bin").mkdir(parents=True)
            (build / "bin" / "hotpack").symlink_to(BUILD / "bin" / "hotpack")
            (build / "bin" / "paper_events").symlink_to("/bin/false")
            done = subprocess.run([sys.executable, str(PAPER / "figure2"), "--smoke", "--build", str(build)], capture_output=True, text=True)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertEqual(done.stdout.count("Missing: "), 4)

    def test_wrong_use_is_one_line(self):
        for program, arguments, word in (("figure2", ["--events", "none"], "invalid choice"), ("figure2", ["--out", "/nowhere"], "no such"),
                                         ("figure4", ["--repeat", "0"], "not a positive number"), ("text", ["--nothing"], "unrecognized"),
                                         ("figure3", ["--build", "/nowhere"], "is not built")):
            with self.subTest(program=program, word=word):
                done = run(program, *arguments)
                self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1), done.stderr)
                self.assertIn(word, done.stderr)


if __name__ == "__main__":
    unittest.main()
