"""The programs of bench/ with tiny sizes, the documents they leave, and the tables that tools/results makes of these: they go
together. Arguments: the build directory, then unittest's."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(sys.argv.pop(1)).resolve()
BIN = BUILD / "bin"


def built(*names: str) -> bool:
    return all((BIN / name).exists() for name in names)


class MadeTablesTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        self.results = self.root / "bench" / "results"
        for each in (self.root / "docs", self.results / "paper"):
            each.mkdir(parents=True)

    def run_it(self, program: str, *arguments: object, code: int = 0) -> str:
        done = subprocess.run([str(ROOT / program), *map(str, arguments)], capture_output=True, text=True, timeout=280, env=os.environ)
        if done.returncode == 77:
            self.skipTest(done.stderr.strip())
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stderr if code == 2 else done.stdout

    def table(self, name: str, all_measured: bool = True) -> str:
        """What a page shows. Documents are made as if of a whole run of a commit: otherwise they are refused, which is another test."""
        for path in self.results.rglob("*.json"):
            written = json.loads(path.read_text())
            self.assertEqual((written["schema_version"], set(written["machine"]), set(written["hotpack"])),
                             (1, {"processor", "cores", "gpu", "system"}, {"version", "commit"}))
            text, beside = path.read_text(), path.with_suffix(".md")
            for part, kept in ((" --smoke", ""), (written["hotpack"]["commit"], "0" * 40)):
                text = text.replace(part, kept)
            path.write_text(text)
            if beside.exists():
                shown = written["hotpack"]["commit"][:12] + ("-changed" if written["hotpack"]["commit"].endswith("-changed") else "")
                beside.write_text(beside.read_text().replace(" --smoke", "").replace(shown, "0" * 12))
        page = self.root / "docs" / "page.md"
        page.write_text(f"<!-- results: {name} -->\n<!-- end -->\n")
        self.run_it("tools/results", "--root", self.root)
        self.assertEqual("Not measured yet" not in page.read_text(), all_measured)
        self.assertIn("`000000000000`", page.read_text())
        return page.read_text()

    @unittest.skipUnless(built("serving_bench", "recorder_bench", "hook_bench", "startup_bench", "plan_bench"), "not built")
    def test_benchmarks(self):
        self.run_it("bench/benchmarks", "--smoke", "--build", BUILD, "--out", self.results)
        for name, row in (("serving_bench", "| OnScriptPair "), ("recorder_bench", "| PairRecorded/"), ("hook_bench", "| hotpack/DriverPair "),
                          ("hook_bench", "| simulated driver/DriverPairAsync "), ("startup_bench", "| CUDA/hotpack run"), ("plan_bench", "| Load/")):
            self.assertIn(row, self.table(f"benchmark {name}"))
        rows = {row["name"]: row for row in json.loads((self.results / "hook_bench.json").read_text())["benchmarks"]}
        self.assertEqual((rows["hotpack/DriverPair"]["by_hotpack"], rows["simulated driver/DriverPair"]["by_hotpack"]), (1, 0))
        for row in json.loads((self.results / "plan_bench.json").read_text())["benchmarks"]:
            self.assertLessEqual(row["bytes_a_block"], 24)

    def test_wrong_use_is_one_line(self):
        for program, arguments, word in (("benchmarks", ["none"], "not none"), ("benchmarks", ["--repetitions", "1"], "at least 2"),
                                         ("benchmarks", ["--out", "/nowhere"], "no such directory"), ("packer", ["--nothing"], "unrecognized"),
                                         ("packer", ["none"], "not none"), ("planner", ["none"], "not none"), ("cost", ["--blocks", "3"], "at least two"),
                                         ("ranks", ["--ranks", "0"], "at least 1"), ("solvers", ["--time-limit", "0"], "above 0"),
                                         ("count_instructions", ["all", "--nothing"], "no option"),
                                         ("count_instructions", ["all", "--build", "/nowhere"], "is not built")):
            with self.subTest(program=program, word=word):
                said = self.run_it(f"bench/{program}", *arguments, code=2)
                self.assertEqual(said.count("\n"), 1, said)
                self.assertIn(word, said)

    def test_a_program_that_fails_leaves_nothing(self):
        (self.root / "bin").mkdir()
        (self.root / "bin" / "plan_bench").symlink_to("/bin/false")
        said = self.run_it("bench/benchmarks", "plan_bench", "--build", self.root, "--out", self.results, code=1)
        self.assertEqual((said, list(self.results.glob("*.json"))), ("", []))

    @unittest.skipUnless(shutil.which("valgrind") and built("serving_callgrind", "hook_callgrind", "launch_callgrind"), "no valgrind, or not built")
    def test_instructions(self):
        printed = self.run_it("bench/count_instructions", "all", "--build", BUILD, "--json", self.results / "instructions.json")
        rows = json.loads((self.results / "instructions.json").read_text())["rows"]
        self.assertEqual([f"{row['instructions']} instructions for {row['what']} " for row in rows],
                         [line[:line.index("(")] for line in printed.splitlines()])
        self.assertIn("| an allocation and a release served by script ", self.table("instructions"))

    @unittest.skipUnless(built("scale_bench"), "not built")
    def test_cost(self):
        self.run_it("bench/cost", "--smoke", "--build", BUILD, "--out", self.results / "cost")
        shown = self.table("markdown cost")
        for part in ("| pack, best fit ", "| most resident, MB ", "![Processor time by step](../bench/results/cost.svg)"):
            self.assertIn(part, shown)

    @unittest.skipUnless(built("request_bench") and (BUILD / "lib" / "simgpu").exists(), "not built")
    def test_ranks(self):
        self.run_it("bench/ranks", "--smoke", "--build", BUILD, "--out", self.results / "ranks")
        self.assertRegex(self.table("markdown ranks"), r"\| all at once, with their plans \| +8 \|.* 100\.00 % \|")

    @unittest.skipUnless(built("packer_bench", "packer_instances"), "not built")
    def test_packer(self):
        self.run_it("bench/packer", "--smoke", "--build", BUILD, "--json", self.results / "packer.json")
        for section in ("traces", "capacity", "optimum", "large", "generated", "scale", "paper"):
            self.assertIn("Medians of 1, times from outside", self.table(f"packer {section}"))
        self.assertRegex(self.table("packer heuristics"), r"\| \d\.\d{4} / \d")
        self.assertIn("of one run of `packer_bench`", self.table("packer heuristics"))
        self.assertIn("| capacity |", self.table("packer_brief"))

    def test_planner(self):
        self.run_it("bench/planner", "budgets", "exact", "--smoke", "--build", BUILD, "--out", self.results / "planner")
        shown = self.table("markdown planner_budgets")
        for part in ("| vgg:11,batch=2,image=32 ", "| vgg:11,batch=2,image=32, copies ", "](../bench/results/planner_budgets_vgg_11_batch_2_image_32.svg)"):
            self.assertIn(part, shown)
        self.assertIn("| vgg:11,batch=2,image=32 ", self.table("planner_brief"))
        if built("exact_figures"):
            self.assertIn("- yes: no plan is faster than its bound", self.table("markdown planner_exact"))

    def test_solvers(self):
        self.run_it("bench/solvers", "--smoke", "--build", BUILD, "--json", self.results / "solvers.json")
        shown = self.table("solvers")
        self.assertRegex(shown, r"(CBC|HiGHS) \d+\.\d+")  # the version
        self.assertIn(" of the 1 that were solved both ways ", shown)

    @unittest.skipUnless(built("paper_events"), "not built")
    def test_paper(self):
        for name in ("figure2", "figure4", "text"):
            self.run_it(f"bench/paper/{name}", "--smoke", "--build", BUILD, "--out", self.results / "paper")
            shown = self.table(f"markdown paper/{name}")
            self.assertEqual("](../bench/results/paper/" in shown, name != "text")

    @unittest.skipUnless((BUILD / "tests" / "pack_check").exists(), "not built")
    def test_pack_check(self):
        self.run_it("tools/results", "--root", self.root, "--keep", "pack_check_brute", "--", BUILD / "tests" / "pack_check", "--json",
                    "--instances", "40", "--max-blocks", "5")
        self.assertRegex(self.table("pack_check", all_measured=False), r"\| +40 \|")


if __name__ == "__main__":
    unittest.main()
