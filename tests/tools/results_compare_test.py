"""tools/results --compare with made documents: what counts as worse."""

import copy
import unittest

from results_case import HEAD, MIB, ResultsCase, google_document, gpu_document, torch_document, torch_row, with_models


class CompareTest(ResultsCase):
    def compare(self, old: dict, new: dict, *options: str, code: int = 0) -> str:
        return self.run_it("--compare", str(self.put("old", old)), str(self.put("new", new)), *options, code=code)

    def test_the_same_is_neither_better_nor_worse(self):
        for document in (torch_document(), gpu_document(), google_document()):
            self.assertIn(" 0 better, 0 worse", self.compare(document, document))

    def test_more_memory_is_named_and_less_is_no_fault(self):
        more = torch_document(torch_row(stats={"reserved_steady": 1030 * MIB, "reserved_peak": 1122 * MIB}))
        said = self.compare(torch_document(), more, code=1)
        self.assertIn("worse: vit, batch 4: held while served / live: 1.01, now 1.03 (+2.0%)", said)
        self.assertIn("worse: vit, batch 4: hotpack / PyTorch expandable", said)
        self.assertIn("4 better, 0 worse", self.compare(more, torch_document()))
        self.assertIn("0 worse", self.compare(torch_document(), more, "--tolerance", "0.03"))

    def test_peers_are_ratios_and_the_simulated_devices_pool_none(self):
        def with_peers(simulated: bool = True, **peers: int) -> dict:
            return torch_document(torch_row(settings={"simulated": simulated}, peers_measure="held at most in the whole run",
                                            peers={"cudamalloc": 1000 * MIB, "best-fit": 1300 * MIB, "async": 1400 * MIB, **peers}))
        said = self.compare(with_peers(), with_peers(cudamalloc=990 * MIB), code=1)
        self.assertIn("worse: vit, batch 4: hotpack / cudamalloc: 1.1, now 1.11111 (+1.0%)", said)
        self.assertIn(" 0 better, 0 worse", self.compare(with_peers(), with_peers(**{"async": 900 * MIB})))
        said = self.compare(with_peers(False), with_peers(False, **{"async": 900 * MIB}), code=1)
        self.assertIn("worse: vit, batch 4: hotpack / async", said)
        said = self.compare(with_peers(), torch_document(torch_row(peers=None)), code=1)
        self.assertIn("worse: vit, batch 4: hotpack / best-fit: missing", said)

    def test_within_the_tolerance(self):
        slightly = torch_document(torch_row(stats={"reserved_peak": 1104 * MIB}))
        self.assertIn("0 better, 0 worse", self.compare(torch_document(), slightly))

    def test_higher_may_be_better(self):
        fewer = torch_row(stats={"planned_steady": 900})
        self.assertIn("worse: vit, batch 4: by the plan: 1, now 0.9", self.compare(torch_document(), torch_document(fewer), code=1))
        largest = [torch_row(largest_batch=[{"capacity": 1 << 30, "rows": {"default": 10, "expandable": 10, "hotpack": rows}}])
                   for rows in (12, 11)]
        self.assertIn("largest batch, hotpack / default: 1.2, now 1.1",
                      self.compare(torch_document(largest[0]), torch_document(largest[1]), code=1))

    def test_a_missing_row_is_worse_and_a_new_one_a_note(self):
        two = torch_document(torch_row(), torch_row("unet"))
        said = self.compare(two, torch_document(), code=1)
        self.assertIn("worse: unet, batch 4: held while served / live: missing", said)
        self.assertIn("note: 7 new", self.compare(torch_document(), two))

    def test_one_fault_more_is_worse_whatever_the_tolerance(self):
        said = self.compare(torch_document(), torch_document(torch_row(reports=1)), "--tolerance", "9", code=1)
        self.assertIn("worse: vit, batch 4: reports: 0, now 1", said)
        said = self.compare(gpu_document(), gpu_document(result="fail"), code=1)
        self.assertIn("worse: probes/gpu_probe/vmm/without: failed: 0, now 1", said)

    def test_times_count_on_the_same_machine_only(self):
        slower = gpu_document(time=1400.0)
        self.assertIn("worse: timing/rounds: cuda-preloaded: 700, now 1400 (+100.0%)", self.compare(gpu_document(), slower, code=1))
        elsewhere = copy.deepcopy(slower)
        elsewhere["device"]["name"] = "Another GPU"
        said = self.compare(gpu_document(), elsewhere)
        self.assertIn("note: other machine: 1 times are not compared", said)
        self.assertIn("0 worse", said)

    def test_ratios_of_times_count_everywhere(self):
        elsewhere = gpu_document(ratio=2.0, host={"cpu": "Another", "cores": 8})
        self.assertIn("cuda over cuda-preloaded: 3, now 2 (-33.3%)", self.compare(gpu_document(), elsewhere, code=1))

    def test_a_gpus_models_and_benchmarks_are_compared(self):
        old = with_models(gpu_document())
        self.assertIn("0 better, 0 worse", self.compare(old, with_models(gpu_document(), step=1.05)))
        for more, said in (({"memory": 0.92}, "pytorch/vit/ratios: memory, preload / default: 0.9, now 0.92"),
                           ({"step": 1.3}, "pytorch/vit/ratios: step time, preload / default: 1.02, now 1.3"),
                           ({"over": 2.0}, "benchmarks/serving_bench: MallocPair over OnScriptPair: 3, now 2"),
                           ({"losses": "fail"}, "pytorch/vit/preload: failed: 0, now 1")):
            with self.subTest(said):
                self.assertIn(f"worse: {said}", self.compare(old, with_models(gpu_document(), **more), code=1))
        self.assertIn("2 better, 0 worse", self.compare(old, with_models(gpu_document(), memory=0.8, over=4.0)))

    def test_benchmarks_are_held_against_one_of_them(self):
        old, new = google_document(), google_document(script=40.0, mutex=20.0, host="b")
        self.assertIn("0 worse", self.compare(old, new, "--reference", "MutexPair"))
        new = google_document(script=60.0, mutex=20.0, host="b")
        self.assertIn("worse: OnScriptPair / MutexPair: 2, now 3", self.compare(old, new, "--reference", "MutexPair", code=1))
        self.assertIn("OnScriptPair: ratio: 1, now 1.1", self.compare(google_document(ratio=1.0), google_document(ratio=1.1), code=1))

    def test_a_document_of_another_program_is_compared_by_its_ratios(self):
        def other(first: float, second: float) -> dict:
            return {**HEAD, "schema": "hotpack-x", "rows": [{"network": "vgg", "batch": batch, "hotpack_ratio": ratio, "seconds": 1.0}
                                                            for batch, ratio in ((32, first), (64, second))]}
        said = self.compare(other(1.0, 1.0), other(1.1, 1.0), code=1)
        self.assertIn("worse: rows, vgg, batch 32: hotpack_ratio: 1, now 1.1", said)
        self.assertIn("2 figures compared, 0 better, 1 worse", said)

    def test_documents_of_different_programs(self):
        self.assertIn("nothing to compare", self.compare(torch_document(), gpu_document(), code=2))
        self.assertIn("no figure in common", self.compare({**HEAD, "schema": "hotpack-x", "rows": []},
                                                          {**HEAD, "schema": "hotpack-x", "rows": []}, code=2))


if __name__ == "__main__":
    unittest.main()
