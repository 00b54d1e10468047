"""tools/results with made documents and pages: which tables are written, which documents are refused."""

import json
import os
import sys
import unittest

from results_case import (
    HEAD,
    MIB,
    ROOT,
    ResultsCase,
    google_document,
    gpu_document,
    torch_document,
    torch_row,
    with_models,
)

sys.path.insert(0, str(ROOT / "bench" / "tables"))
import measures  # noqa: E402
from made import text_of  # noqa: E402
from pages import Fault, pages, typed_figures  # noqa: E402

sys.path.insert(1, str(ROOT / "bench" / "torch"))
import table as torch_table  # noqa: E402


def marked(name: str, inside: str = "old\n") -> str:
    return f"<!-- results: {name} -->\n{inside}<!-- end -->\n"


class PagesTest(ResultsCase):
    def test_a_table_is_written_once_and_then_up_to_date(self):
        self.put("memory", torch_document())
        page = self.page("# Title\n\n" + marked("torch_memory") + "\nbehind\n")
        self.assertIn("docs/page.md: torch_memory: not up to date", self.run_it("--check", code=1))
        self.assertIn("old", page.read_text())
        self.run_it()
        text = page.read_text()
        self.assertTrue(text.startswith("# Title\n") and text.endswith("\nbehind\n") and "\nold\n" not in text)
        for part in ("By `bench/some --json FILE`, 2026-03-01: A processor, 4 cores, no GPU; hotpack 0.1.0, commit `0123456789ab`",
                     "PyTorch 2.0", "| vit   |     4 |  1300.0 |     1200.0 |  1100.0 |                     1010.0 |",
                     "By the most held in the whole run hotpack holds less than PyTorch's defaults for 1 of 1 models; less than expandable segments for 1"):
            self.assertIn(part, text)
        self.assertEqual(self.run_it("--check"), "")

    def test_another_figure_or_a_typed_one_is_noticed(self):
        self.put("memory", torch_document())
        page = self.page(marked("torch_memory_brief"))
        self.run_it()
        self.assertIn("| vit | 4 | 1300 | 1200 | 1100 | 1010 | 1000 |", page.read_text())
        self.put("memory", torch_document(torch_row(stats={"reserved_peak": 1120 * MIB})))
        self.run_it("--check", code=1)
        self.run_it()
        page.write_text(page.read_text().replace("1300", "1400"))
        self.run_it("--check", code=1)

    def test_the_newest_document_counts(self):
        self.put("a", torch_document(torch_row("later"), date="2026-04-01T00:00:00Z"))
        self.put("b", torch_document(torch_row("earlier")))
        self.put("c", torch_document(torch_row("real", settings={"simulated": False}), date="2026-05-01T00:00:00Z"))
        page = self.page(marked("torch_memory"))
        self.run_it()
        self.assertIn("| later", page.read_text())

    def test_peers(self):
        peers = {"cudamalloc": 1000 * MIB, "chainer": 1310 * MIB, "pytorch": 1, "pytorch-expandable": 1, "best-fit": 1320 * MIB,
                 "first-fit": 1330 * MIB, "async": 1340 * MIB}
        self.put("a", torch_document(torch_row(peers=peers, peers_measure="held at most in the whole run")))
        self.put("c", torch_document(torch_row(peers=peers), date="2026-03-15T00:00:00Z"))  # with what one step holds
        self.put("b", torch_document(torch_row("later"), date="2026-04-01T00:00:00Z"))  # without peers
        page = self.page(marked("torch_peers") + marked("torch_memory"))
        self.run_it()
        for part in ("| vit   |  1100.0 |                   1000.0 |         1.1000 |  1300.0 |     1200.0 |       1310.0 |   1320.0 |    1330.0 "
                     "|          1340.0 |", "says nothing of NVIDIA's", "| later"):
            self.assertIn(part, page.read_text())

    def test_what_was_not_measured_says_so_and_names_the_command(self):
        page = self.page(marked("gpu_timing") + marked("packer scale") + marked("largest_batch"))
        self.run_it()
        for part in ("GPU timing has not been measured yet: `tools/gpu_check --out", "`bench/packer scale --json", "--largest-batch"):
            self.assertIn(part, page.read_text())

    def test_a_gpus_times_and_differences(self):
        self.put("gpu_check-x", gpu_document(result="differs"))
        page = self.page(marked("gpu_timing") + marked("gpu_differences"))
        self.run_it()
        for part in ("A GPU, driver 580.1", "| cuda-preloaded | 700 | 700 | 700 | ns |", "| cuda over cuda-preloaded | 3.00 |",
                     "| A GPU | 580.1 | zeroed | zeros | a \\| b |"):
            self.assertIn(part, page.read_text())

    def test_a_gpus_benchmarks_and_models(self):
        self.put("gpu_check-x", with_models(gpu_document()))
        page = self.page(marked("gpu_timing"))
        self.run_it()
        for part in ("| cuda-preloaded | 700 |", "| serving_bench: OnScriptPair | 21.5 | 21.5 | 21.5 | ns |",
                     "| vit | preload | 0.900 | 0.950 | 1.020 | - | equal |"):
            self.assertIn(part, page.read_text())
        self.assertNotIn("enable()", page.read_text())  # not run
        self.put("gpu_check-x", with_models(gpu_document(), losses="fail"))
        self.run_it()
        self.assertIn("| 1.020 | - | differ |", page.read_text())

    def test_largest_batches(self):
        row = torch_row(largest_batch=[{"capacity": 16 << 30, "rows": {"default": 8, "expandable": 10, "hotpack": 11}}])
        self.put("largest", torch_document(row))
        page = self.page(marked("largest_batch") + marked("torch_memory"))
        self.run_it()
        self.assertIn("|          16 |       8 |         10 |      11 |                1.100 |", page.read_text())
        self.assertIn("Not measured yet: `bench/torch/compare", page.read_text())  # that of memory is another run

    def test_benchmarks(self):
        rows = [{"run_name": "Pair/streams:2", "real_time": 20.04, "cpu_time": 19.0, "time_unit": "ns", "scatter": 0.031, "waits": 0.5},
                {"run_name": "Other", "real_time": 5.0, "cpu_time": 5.0, "time_unit": "ms", "scatter": 0.0, "s_a_block": 2.5e-8}]
        self.put("serving_bench", {**HEAD, "schema": "hotpack-benchmarks", "repetitions": 5, "benchmarks": rows})
        page = self.page(marked("benchmark serving_bench") + marked("benchmark plan_bench"))
        self.run_it()
        for part in ("By `bench/some --json FILE`, 2026-03-01", "Medians of 5;",
                     "| Pair/streams:2 | 20.04 ns |          19 ns |      3% |   0.5 |         |",
                     "| Other          |     5 ms |           5 ms |      0% |       | 25.0 ns |",
                     "Not measured yet: `bench/benchmarks plan_bench --out bench/results` does."):
            self.assertIn(part, page.read_text())

    def test_counts_and_checks(self):
        self.put("instructions", {**HEAD, "schema": "hotpack-instructions", "rows": [{"what": "a pair", "instructions": 189, "of": 9}]})
        counts = {"instances": 1000000, "packs": 3, "placements": 2, "failures": 0, "exact_out_of_time": 1}
        self.put("pack_check_brute", {**HEAD, "schema": "hotpack-output", "output": json.dumps(counts)})
        page = self.page(marked("instructions") + marked("pack_check"))
        self.run_it()
        for part in ("| a pair |          189 |", "| `bench/some --json FILE` | 2026-03-01 | `0123456789ab` | 1,000,000 |     3 |"):
            self.assertIn(part, page.read_text())

    def test_what_solvers_proved(self):
        def answer(status: str, height: int | None, ended: bool = False) -> dict:
            return {"seconds": 1.5, "wall": 2.0, "ended": ended, "status": status, "height": height, "best": 100, "proved": True}

        optimal = answer("Optimal", 100)
        rows = [{"instance": "a", "binaries": 7, "solvers": {"CBC": optimal, "CBC without lb": answer("Stopped", 100)}},
                {"instance": "b", "binaries": 8, "solvers": {"CBC": answer("", None, True), "CBC without lb": answer("Stopped", 105)}},
                {"instance": "c", "binaries": 9, "solvers": {"CBC": optimal}}]
        self.put("solvers", {**HEAD, "schema": "hotpack-solvers", "time_limit": 30, "solvers": {"CBC": "2.10"}, "rows": rows})
        page = self.page(marked("solvers"))
        self.run_it()
        for part in ("CBC 2.10; 30 s for a solver", "| a | 7 | 1.5 s | not proved |", "| b | 8 | not in time | +5.0% |", "| c | 9 | 1.5 s |  |",
                     "CBC proved 2 of 3; of the 2 that were solved both ways 0 without `lb` and 1 with it."):
            self.assertIn(part, page.read_text())

    def test_a_documents_rows_are_a_line_each(self):
        document = {"a": [], "rows": [{"x": 1, "y": "µ"}, {"x": [1, {"z": None}]}], "b": {"c": 1.5}}
        self.assertEqual(json.loads(text_of(document)), document)
        self.assertEqual(text_of({"a": 1, "rows": [{"x": 1, "y": "µ"}]}), '{\n "a": 1,\n "rows": [\n  {"x": 1, "y": "µ"}\n ]\n}\n')

    def test_kept_output(self):
        page = self.page(marked("output said"))
        os.environ["KEPT_FOLDER"] = "here/there"
        self.addCleanup(os.environ.pop, "KEPT_FOLDER")
        self.run_it("--keep", "said", "--", "echo", "$KEPT_FOLDER/x", "two words")
        kept = json.loads((self.root / "bench" / "results" / "said.json").read_text())
        self.assertNotIn("here/there", json.dumps(kept))
        self.assertEqual((kept["command"], kept["output"]), ("echo $KEPT_FOLDER/x 'two words'", "$KEPT_FOLDER/x two words\n"))
        kept["hotpack"]["commit"] = "0123"
        self.put("said", kept)
        self.run_it()
        self.assertIn("```\n$KEPT_FOLDER/x two words\n```", page.read_text())
        self.run_it("--keep", "fails", "--", "sh", "-c", "echo a row; false", code=2, printed="a row\n")
        self.assertFalse((self.root / "bench" / "results" / "fails.json").exists())

    def test_a_table_that_a_program_wrote(self):
        folder = self.root / "bench" / "results" / "paper"
        folder.mkdir()
        self.put("paper/figure2", {**HEAD, "schema": "hotpack-paper-figure2"})
        origin = ("By `bench/some --json FILE`, 2026-03-01: A processor, 4 cores, no GPU; hotpack 0.1.0, commit `0123456789ab`.")
        table, picture = "\n\n| a |\n|---|\n| 1 |\n\n![a]({}figure2a.svg)\n", "../bench/results/paper/"
        (folder / "figure2.md").write_text("# Figure\n\n" + origin + table.format(""))
        page = self.page(marked("markdown paper/figure2") + marked("markdown paper/figure3"))
        self.run_it()
        self.assertEqual(page.read_text(), marked("markdown paper/figure2", origin + table.format(picture)) + marked(
            "markdown paper/figure3",
            "Not measured yet: `bench/paper/figure3 --out bench/results/paper` does, on a machine with a GPU.\n"))
        (folder / "figure2.md").write_text(origin.replace("2026-03-01", "2026-03-02") + table)
        self.assertIn("is of another run than", self.run_it("--check", code=2))
        (folder / "figure2.md").unlink()
        self.assertIn("not both", self.run_it("--check", code=2))

    def test_a_page_of_long_tables_is_in_a_folder_of_its_own(self):
        self.put("figure", {**HEAD, "schema": "hotpack-some"})
        origin = "By `bench/some --json FILE`, 2026-03-01: A processor, 4 cores, no GPU; hotpack 0.1.0, commit `0123456789ab`."
        (self.root / "bench" / "results" / "figure.md").write_text("# Figure\n\n" + origin + "\n\n![a](figure.svg)\n")
        page = self.root / "docs" / "results" / "page.md"
        page.parent.mkdir()
        page.write_text(marked("markdown figure"))
        self.assertIn("docs/results/page.md: markdown figure: not up to date", self.run_it("--check", code=1))
        self.run_it()
        self.assertIn("![a](../../bench/results/figure.svg)", page.read_text())
        self.assertEqual(self.run_it("--check"), "")

    def test_short_tables_of_planners(self):
        graph = {"graph": "net", "program_bytes": 2_000_000}
        rows = [{"graph": "net", "point": f"{i} of 20", "part": i / 20, "bound": 1.0, "search_ratio": search, "chen_ratio": chen,
                 "dtr_ratio": dtr} for i, search, chen, dtr in ((5, None, 1.5, 1.4), (10, 1.2, 1.3, None), (15, 1.1, None, None))]
        head = {**HEAD, "schema": "hotpack-planner"}
        self.put("budgets", {**head, "section": "budgets", "graphs": [graph], "rows": rows})
        page = self.page(marked("planner_brief") + marked("planner_papers"))
        self.run_it()
        for part in ("Three of 3 budgets of each graph.", "Not measured yet: `bench/planner chen --out bench/results/planner` does.",
                     "| net   |            2 |  25.0% |   none | 1.4000 dtr |  50.0% | 1.2000 | 1.3000 chen |  75.0% | 1.1000 |       none |"):
            self.assertIn(part, page.read_text())
        figures = [{"ours": 1.04, "published": 1.0}, {"ours": 1.06, "published": 1.0}, {"ours": 3.0, "published": None}]
        for section in ("chen", "echo", "dqn", "exact"):
            self.put(section, {**head, "section": section, "rows": figures, "orderings": [{"holds": True}, {"holds": False}]})
        self.run_it()
        self.assertRegex(page.read_text(), r"\| Echo +\| +3 \| +2 \| +1 \| +1 of 2 \| 2026-03-01 \| `0123456789ab` \|")

    def test_short_tables_of_the_packer_and_of_benchmarks(self):
        sections = {name: {"rows": [{}, {}], "columns": [], "summary": f"all of {name}"}
                    for name in ("traces", "capacity", "optimum", "large", "generated", "scale", "heuristics", "paper")}
        self.put("packer", {**HEAD, "schema": "hotpack-packer", "sections": sections})
        page = self.page(marked("packer_brief") + marked("benchmarks_brief"))
        self.run_it()
        for part in ("| capacity | 2 | all of capacity | 2026-03-01 | `0123456789ab` |",
                     "Not measured yet: `bench/benchmarks --out bench/results` does."):
            self.assertIn(part, page.read_text())
        for name, rows in (("serving_bench", ("OnScriptPair", "BestFitPair/5000", "MallocPair")), ("hook_bench", ("hotpack/DriverPair",)),
                           ("recorder_bench", ("PairRecorded/iterations:2560000",)), ("plan_bench", ("Load/nested/blocks:1000000",)),
                           ("startup_bench", ("no CUDA/alone/real_time", "no CUDA/preloaded/real_time"))):
            self.put(name, {**HEAD, "schema": "hotpack-benchmarks", "repetitions": 5, "benchmarks": [
                {"run_name": row, "real_time": 12.5, "cpu_time": 12.5, "time_unit": "ns", "scatter": 0} for row in rows]})
        self.run_it()
        self.assertRegex(page.read_text(), r"\| `malloc` and `free` +\| +`serving_bench`, MallocPair \| 12.5 ns \|")
        self.assertEqual(page.read_text().count("By `bench/some"), 1)

    def test_pages_that_are_wrong(self):
        for text, word in ((marked("nothing"), "'nothing' is no table"), (marked("packer"), "is no table"),
                           (marked("torch_memory x"), "is no table"), (marked("output unknown"), "no output 'unknown'"),
                           ("\n<!-- results: gpu_timing -->\n", "line 2: no <!-- end -->"),
                           ("<!-- results: gpu_timing -->\n" + marked("gpu_timing"), "line 1: no <!-- end -->")):
            with self.subTest(word):
                page = self.page(text)
                self.assertIn(word, self.run_it(code=2))
                self.assertEqual(page.read_text(), text)

    def test_examples_in_code_stay(self):
        self.page("```\n" + marked("nothing") + "```\n")
        self.assertEqual(self.run_it("--check"), "")

    def test_documents_that_are_no_evidence(self):
        changed = {**HEAD["hotpack"], "commit": "0123-changed"}
        smoke = torch_document(command="bench/some --smoke")
        for document, word in ((google_document(), "neither command nor commit"), (smoke, "--smoke"), (gpu_document(simulated=True), "simulated device"), (gpu_document(complete=False), "ended from outside"),
                               (torch_document(hotpack=changed), "0123-changed"), ({"rows": []}, "neither a document"),
                               ({**torch_document(), "schema_version": 2}, "version 2")):
            with self.subTest(word):
                self.put("x", document)
                self.assertIn(word, self.run_it("--check", code=2))

    def test_wrong_use(self):
        for arguments, word in ((["--keep", "x"], "a command goes with"), (["--", "ls"], "a command goes with"),
                                (["--check", "--compare", "a", "b"], "not allowed"), (["--tolerance", "-1"], "at least 0"),
                                (["--compare", "/nowhere/a", "/nowhere/b"], "No such file")):
            with self.subTest(word):
                self.assertIn(word, self.run_it(*arguments, code=2))


class TypedFiguresTest(unittest.TestCase):
    # Tables whose figures are no measurements, by a beginning of their heading.
    ALLOWED = {
        "docs/plan_format.md": ["| byte | type | what |"],   # the layout of a file
        "docs/trace_format.md": ["| byte | type | what |"],
        "docs/pytorch.md": ["| | from | tried |"],           # versions
        "simgpu/README.md": ["| what takes time | setting |"],  # costs that others published
        "docs/gpu_check.md": ["| part | limit |"],           # limits of time
    }

    def test_no_page_has_figures_that_were_typed(self):
        for path in pages(ROOT):
            for heading, line in typed_figures(path.read_text(encoding="utf-8")):
                name = str(path.relative_to(ROOT))
                if not any(heading.startswith(beginning) for beginning in self.ALLOWED.get(name, ())):
                    self.fail(f"{name}: {line.strip()}\nis a typed figure in the table '{heading}': tools/results makes such tables "
                              "of documents (docs/results.md)")

    def test_what_is_allowed_is_there(self):
        for name, headings in self.ALLOWED.items():
            found = [heading for heading, _ in typed_figures((ROOT / name).read_text(encoding="utf-8"))]
            for beginning in headings:
                self.assertTrue(any(heading.startswith(beginning) for heading in found), f"{name}: {beginning}")

    def test_which_cells_are_figures(self):
        table = "| instance | wall s |\n|---|---:|\n| A | {} |\n"
        for cell in ("0.0016", "1,000,000", "4842496", "1.7 s", "169.8 times", "12 MiB", "-3.7%", "4.9 %", "`0.5 ms`", "**35 ns**", "~20 µs",
                     "< 0.1", "2026 / 17.5", "1.0000 / 0.02", "0.3 s |", "232 MB", "1e-3", "250.0 MiB (1.002)"):
            with self.subTest(cell):
                self.assertEqual(len(typed_figures(table.format(cell))), 1)
                self.assertEqual(typed_figures(marked("x", table.format(cell))), [])
                self.assertEqual(typed_figures("```\n" + table.format(cell) + "```\n"), [])
        for cell in ("yes", "20 ms up to 2,000 blocks", "8", "0..7", "figure 4.2", "", "`a.b`", "libcupti.so.13", "12.4 and up"):
            with self.subTest(cell):
                self.assertEqual(typed_figures(table.format(cell)), [])

    def test_a_typed_row_above_a_marker_or_between_two_is_found(self):
        made = marked("x", "| a |\n|---|\n| 1.5 |\n")
        self.assertEqual(typed_figures(made + "| a |\n|---|\n| 2.5 |\n" + made), [("| a |", "| 2.5 |")])


class OneMeasureTest(ResultsCase):
    """Allocators are compared by the most held in the whole run, the same for all."""

    def test_every_table_names_its_columns_measures_and_mixes_none(self):
        row = torch_table.Row.from_json(torch_row(peers={name: 1000 * MIB for name in torch_table.TITLES}))
        for columns in (torch_table.brief_columns(), torch_table._columns([row], True), torch_table._peer_columns([row])):
            self.assertEqual(measures.mixed(columns), [])
            self.assertTrue(any(column.measure == measures.HELD and column.side == "hotpack" for column in columns))
            self.assertGreaterEqual(sum(column.measure == measures.HELD and column.side not in ("", "hotpack") for column in columns), 2)

    def test_a_table_that_mixes_them_is_refused(self):
        held, served, live = measures.HELD, measures.SERVED, measures.LIVE

        def column(title: str, measure: str, side: str, over: str = "") -> measures.Column:
            return measures.Column(title, str, measure, side, over)

        pytorch, ours = column("PyTorch", held, "PyTorch"), column("hotpack", held, "hotpack")
        served_column = column("hotpack, held while served", served, "hotpack")
        self.assertEqual(measures.mixed([pytorch, ours, served_column, column("hotpack / live", held, "hotpack", over=live)]), [])
        for columns, word in (([pytorch, served_column], "no column has what hotpack held at most"),
                              ([pytorch, ours, column("hotpack", served, "hotpack")], "under another name"),
                              ([column("PyTorch", served, "PyTorch"), ours], "is of PyTorch, and not held at most"),
                              ([pytorch, ours, column("serving / live", served, "hotpack", over=live)], "in a ratio"),
                              ([pytorch, ours, column("PyTorch / served", held, "PyTorch", over=served)], "divided by what is held while served")):
            with self.subTest(word):
                self.assertTrue(any(word in fault for fault in measures.mixed(columns)), measures.mixed(columns))
                with self.assertRaisesRegex(Fault, "a table of different measures"):
                    torch_table._render(columns, [])

    def test_no_page_has_a_table_that_mixes_them(self):
        for path in pages(ROOT):
            with self.subTest(path.name):
                self.assertEqual(measures.mixed_headings(path.read_text(encoding="utf-8")), [])

    def test_which_headings_mix_them(self):
        rule = "\n|---|---|---|\n"
        for heading in ("| model | PyTorch | hotpack, serving |", "| x | expandable | serving / live |", "| orig | hotpack | steady |",
                        "| allocator | PyTorch | last iteration |", "| PyTorch | hotpack | held while served / PyTorch |"):
            self.assertEqual(len(measures.mixed_headings(heading + rule)), 1, heading)
        for heading in ("| model | PyTorch | hotpack, held while served |", "| field | steady | meaning |", "| model | PyTorch | hotpack |"):
            self.assertEqual(measures.mixed_headings(heading + rule), [], heading)

    def test_what_the_tables_do_not_say(self):
        """Neither figures nor words of before: an arena that is smaller than what lived in it, a bound of a part of it."""
        for path in pages(ROOT):
            text = path.read_text(encoding="utf-8")
            for words in ("driver calls avoided", "hotpack, serving", "serving / live", "what was saved"):
                self.assertNotIn(words, text, path.name)


if __name__ == "__main__":
    unittest.main()
