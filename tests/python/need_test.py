"""The part of `hotpack need` in Python: when a program ends, and a training program whose answer is known."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

from hotpack._need import Counter

HOTPACK = os.path.join(os.environ["HOTPACK_BUILD"], "bin", "hotpack")


class Optimizer:
    pass


class CounterTest(unittest.TestCase):
    def ends_after(self, order: str, unused: int = 0, steps: int = 3) -> int:
        """How many of the order's steps are made; each letter is an optimizer."""
        counter = Counter(steps)
        named = {letter: Optimizer() for letter in order}
        others = [*named.values(), *(Optimizer() for _ in range(unused))]
        for made, letter in enumerate(order, 1):
            if counter.enough(named[letter], lambda: others):
                return made
        return 0

    def test_one(self):
        self.assertEqual(self.ends_after("aaaaaa"), 3)
        self.assertEqual(self.ends_after("aaaaaa", steps=1), 1)

    def test_all_of_several(self):
        self.assertEqual(self.ends_after("abababab"), 6)
        self.assertEqual(self.ends_after("ddgddgddgddg"), 9)
        self.assertEqual(self.ends_after("ddddgddddgddddg"), 15 - 1, "the most frequent one has made twelve")

    def test_one_that_is_never_used_is_not_waited_for_long(self):
        self.assertEqual(self.ends_after("a" * 50, unused=1), 12)


PROGRAM = """
import sys, torch
torch.empty(int(sys.argv[2]) << 20, dtype=torch.uint8, device="cuda")
model = torch.nn.Sequential(*(torch.nn.Linear(1024, 1024) for _ in range(4))).cuda()
optimizer = torch.optim.Adam(model.parameters())
kept = []
for step in range(50):
    print("step", step, flush=True)
    optimizer.zero_grad(set_to_none=True)
    loss = model(torch.ones(int(sys.argv[1]), 1024, device="cuda")).sum()
    if loss > 5:
        print("never")
    loss.backward()
    optimizer.step()
    kept.append(torch.empty(1 << 20, dtype=torch.uint8, device="cuda"))
raise RuntimeError("it was not ended")
"""

RANKS = """
import os, torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(rank)
dist.init_process_group("nccl", init_method="env://")
pair = dist.new_group([0, 1], backend="gloo")
everybodys = [None] * dist.get_world_size()
dist.all_gather_object(everybodys, rank)
print("rank", dist.get_rank(), "of", dist.get_world_size(), "on", f"cuda:{torch.cuda.current_device()},", "all have", everybodys, flush=True)
model = DistributedDataParallel(torch.nn.Linear(1024, 1024).cuda(), device_ids=[rank])
optimizer = torch.optim.SGD(model.parameters(), 0.1)
while True:
    model(torch.ones(256 if rank else 8192, 1024, device="cuda")).sum().backward()
    optimizer.step()
    dist.barrier()
"""


class SimulateTest(unittest.TestCase):
    def test_a_size_that_is_none_is_refused_at_once(self):
        import hotpack

        for memory in ("lots", "", "-3G", "1K", "0", "16 monkeys"):
            with self.subTest(memory), self.assertRaisesRegex(hotpack.Error, "no size of at least 2M"):
                hotpack.simulate(memory=memory)
        with self.assertRaisesRegex(hotpack.Error, "devices=65"):
            hotpack.simulate(memory="24GiB", devices=65)


class ProgramTest(unittest.TestCase):
    def need(self, *options: str, before: int = 0, code: int = 0) -> "subprocess.CompletedProcess[str]":
        """Of PROGRAM. before: MiB that it has before its steps, for a moment. code: the expected exit code."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "train.py")
            with open(path, "w") as file:
                file.write(PROGRAM)
            done = subprocess.run([HOTPACK, "need", *options, "--", sys.executable, path, "256", str(before)],
                                  capture_output=True, text=True)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def test_the_most_is_not_said_of_a_step_that_has_less(self):
        printed = self.need(before=500).stdout
        self.assertIn("\nwith less memory: no plan of the recorded step helps, because 500.0 MiB are live outside of it\n", printed)
        self.assertNotIn("with less memory", self.need("--no-budgets", before=500).stdout)
        self.assertRegex(printed, r"live at most 500\.0 MiB, outside the recorded step\nof that step: [0-9.]+ MiB, in step 3, ")

    def test_a_training_program(self):
        done = self.need("--json", "--fits", "490M", code=1)
        need = json.loads(done.stdout)
        self.assertEqual(done.stderr.count("step "), 3, "what it prints goes to stderr")
        self.assertEqual((need["steps"], need["ended"]), (3, True))
        self.assertEqual(need["growth"], 1 << 20)
        self.assertTrue(need["same_requests"])
        weights = 4 * (1024 * 1024 + 1024) * 4
        self.assertGreater(need["live_peak"], 4 * weights, "with gradients and both states of Adam")
        self.assertLess(need["live_peak"], 7 * weights)
        peak = need["peak"]
        self.assertEqual(peak["bytes"], need["live_peak"])
        kinds = {part["name"]: part["bytes"] for part in peak["by_kind"]}
        self.assertEqual(kinds["parameter"], weights)
        self.assertGreaterEqual(kinds["optimizer_state"], 2 * weights)
        for parts in ("by_kind", "by_module", "by_line"):
            self.assertEqual(sum(part["bytes"] for part in peak[parts]), peak["bytes"])
        self.assertEqual(len(need["each_step"]), 3)
        for name in ("hotpack", "pytorch", "pytorch-expandable"):
            self.assertGreaterEqual(need[name]["smallest_device"], need["live_peak"])
            self.assertLessEqual(need[name]["smallest_device"], need[name]["held_at_most"])
        to_fit, *budgets = need["budgets"]
        self.assertEqual([each["percent"] for each in budgets], [75, 60, 50])
        others = need["needed_with_context"] - need["hotpack"]["smallest_device"]
        self.assertEqual((to_fit["to_fit"], to_fit["budget"]), (True, (490 << 20) - others))
        for each in budgets:
            self.assertFalse(each["to_fit"])
            self.assertEqual(each["budget"], need["pytorch"]["smallest_device"] * each["percent"] // 100)
            if each["found"]:
                self.assertGreaterEqual(each["time_ratio"], 1)
                self.assertLessEqual(each["arena"], each["budget"])
                self.assertRegex(each["costs"], "^roofline: ")
                self.assertGreater(each["recomputed"] + each["swapped"], 0)
        self.assertTrue(budgets[0]["found"])
        self.assertIn("train.py:11", [read["line"] for read in need["reads"]], "its loss decides")

    def test_each_rank_of_several(self):
        """The first rank has a larger batch. All see all devices, and none waits for another."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "train.py")
            with open(path, "w") as file:
                file.write(RANKS)
            done = subprocess.run([HOTPACK, "need", "--ranks", "3", "--no-graph", "--json", "--", sys.executable, path],
                                  capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        need = json.loads(done.stdout)
        self.assertEqual((need["parameter"], need["ranks"]), ("rank", 3))
        first, *others = need["cases"]
        self.assertEqual([case["value"] for case in need["cases"]], ["0", "1", "2"])
        self.assertEqual(others[0]["live_peak"], others[1]["live_peak"])
        self.assertGreater(first["live_peak"], others[0]["live_peak"])
        added = sum(part["bytes"] for part in need["not_simulated"])
        self.assertEqual(first["needed_with_context"], first["hotpack"]["smallest_device"] + added)
        for rank in range(3):
            self.assertIn(f"rank {rank} of 3 on cuda:{rank}, all have {[rank] * 3}", done.stderr)


if __name__ == "__main__":
    unittest.main()
