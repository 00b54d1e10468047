"""Other planners for a budget: the graph that they get, and what becomes of their plans."""

import json
import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import torch
from budget import training
from hotpack import Error, _budget
from hotpack._budget import planners
from hotpack._budget.clock import Rates
from hotpack._budget.passes import AGAIN, KEEP, MOVE, Item, Kind
from hotpack._budget.policy import LONGEST_CHAIN, Sight, choose, with_treatments
from hotpack._budget.timeline import Timeline, Use

torch.set_num_threads(1)
BUILD = Path(os.environ["HOTPACK_BUILD"])
ROOT = Path(__file__).resolve().parents[2]
RIGHT = ("chen", "echo", "dtr", "knapsack", "memonger", "superneurons", "tflms")  # dqn learns for long


def chain(count, size=1 << 20, heavy=()):
    """Layers, each of whose results is computed from the one before."""
    uses = [Use(size, index + 1, 2 * count - index, [index - 1] if index else None, 0, 0.5, index) for index in range(count)]
    base = [size // 2] * (2 * count + 1)
    for index, use in enumerate(uses):
        base[index] += size
        base[use.end] += size
    kind = Kind([Item("ConvolutionBackward0" if index in heavy else "ReluBackward0", torch.float32, (size,), size)
                 for index in range(count)], list(range(count)))
    kind.sight = Sight(base, [part - size // 2 for part in base], uses,
                       Timeline([1.0] * len(base), Rates(1e9, 1e9, True), 0.0))
    return kind


class PlannersTest(unittest.TestCase):
    def test_names(self):
        self.assertEqual((planners.parse(""), planners.parse("chen")), ("search", "chen"))
        with self.assertRaisesRegex(Error, "the algorithm 'chenn' is none of search, chen, echo, .* tflms"):
            planners.parse("chenn")
        help_text = subprocess.run([BUILD / "bin" / "hotpack-remat", "plan", "--help"], capture_output=True, text=True, check=True).stdout
        names = re.search(r"One of auto, ([a-z, ]*)", help_text)[1].split(", ")
        self.assertEqual(set(names), set(planners.ALGORITHMS))
        self.assertTrue(set(planners._COPYING) < set(names))
        # What `hotpack run` takes: preload_run_test compares that with the page.
        row = re.search(r"\| `HOTPACK_ALGORITHM` \| `--algorithm` \| ([^|]*) \|", (ROOT / "docs" / "environment.md").read_text())[1]
        self.assertEqual(tuple(re.split(", | or ", row)), planners.ALGORITHMS)

    def test_the_graph_has_the_load_of_the_pass(self):
        """Its live bytes with everything kept, by hotpack-remat."""
        kind = chain(12)
        done = self.planned(planners.graph_of(kind, False), "--json")
        self.assertEqual(done["program_peak"], max(kind.sight.kept(False)))
        self.assertAlmostEqual(done["baseline_time"], 1e9 * kind.sight.timeline.total, delta=100)

    def planned(self, graph, *options):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(graph, file)
            file.flush()
            return json.loads(subprocess.run([BUILD / "bin" / "hotpack-remat", "plan", file.name, *options], capture_output=True,
                                             text=True, check=True).stdout)

    def test_each_has_plans_within_the_budget(self):
        kind = chain(16, heavy=range(0, 16, 2))
        plain = kind.sight.plain(False)
        room = int(0.7 * plain)
        own = choose(kind.sight, room, False)
        ways = {}
        for algorithm in RIGHT:
            treatments = planners.treatments(algorithm, kind, room, False)
            plan = with_treatments(kind.sight, room, False, treatments)
            with self.subTest(algorithm=algorithm):
                self.assertEqual(len(treatments), 16)
                self.assertLessEqual(plan.predicted, room)
                self.assertLessEqual(own.seconds, plan.seconds + 1e-9)
                ways[algorithm] = tuple(treatments)
        for algorithm in ("chen", "echo", "dtr", "memonger"):
            self.assertIn(AGAIN, ways[algorithm], algorithm)
            self.assertNotIn(MOVE, ways[algorithm], algorithm)
        self.assertIn(MOVE, ways["tflms"])
        # Echo never computes a convolution again, and all plans are not one.
        self.assertNotIn(AGAIN, ways["echo"][::2])
        self.assertGreater(len(set(ways.values())), 3)

    def test_treatments_of_a_plan(self):
        kind = chain(3)
        graph = planners.graph_of(kind, False)
        names = [operator["name"] for operator in graph["operators"]]
        storages = [storage["name"] for storage in graph["storages"]]
        make = names.index("make s1")
        plan = {"actions": [["run", place] for place in range(len(names))]}
        self.assertEqual(planners.treatments_of(graph, plan, 3), [KEEP] * 3)
        plan["actions"] += [["drop", storages.index("s1")], ["run", make], ["offload", storages.index("s2")], ["prefetch", storages.index("s2")]]
        self.assertEqual(planners.treatments_of(graph, plan, 3), [KEEP, AGAIN, MOVE])

    def test_without_a_plan_everything_is_kept_and_the_search_takes_away(self):
        kind = chain(8)
        room = max(kind.sight.base)
        self.assertEqual(planners.treatments("chen", kind, 1, False), [KEEP] * 8)
        self.assertLessEqual(with_treatments(kind.sight, room, False, [KEEP] * 8).predicted, room)

    def test_what_cannot_be_computed_again_moves_and_chains_end(self):
        kind = chain(LONGEST_CHAIN + 20)
        plan = with_treatments(kind.sight, 1 << 40, False, [AGAIN] * (LONGEST_CHAIN + 20))
        self.assertEqual(plan.treatments[0], MOVE)
        self.assertEqual(plan.treatments.count(KEEP), 1)
        longest = length = 0
        for treatment in plan.treatments:
            length = length + 1 if treatment == AGAIN else 0
            longest = max(longest, length)
        self.assertEqual(longest, LONGEST_CHAIN)

    def test_a_missing_program(self):
        with mock.patch.dict(os.environ, {"HOTPACK_HOME": "/nowhere"}), self.assertRaisesRegex(Error, "hotpack-remat is missing"):
            planners.treatments("chen", chain(3), 3 << 20, False)


class CarriedOutTest(unittest.TestCase):
    def test_bits_and_the_budget(self):
        """Of a transformer on the CPU, by planners of both kinds."""
        plain, _ = training.train(training.Transformer, None, steps=6)
        moved = {}
        for algorithm in ("search", "chen", "echo", "tflms"):
            with mock.patch.object(training.session, "Session", self.session(algorithm)):
                left, found = training.train(training.Transformer, "activations:60%", steps=6, recompute=True)
            with self.subTest(algorithm=algorithm):
                self.assertTrue(training.same(plain, left))
                self.assertLessEqual(found.predicted, found.budget)
                self.assertEqual(f" by {algorithm}: predicted" in found.summary(), algorithm != "search")
                kinds = [kind.plan.treatments for kind in found._kinds.all if kind.plan is not None]
                moved[algorithm] = tuple(map(tuple, kinds))
                self.assertGreater(sum(treatment != KEEP for plan in kinds for treatment in plan), 0)
        self.assertGreater(len(set(moved.values())), 2)

    @staticmethod
    def session(algorithm):
        kind = training.session.Session
        return lambda *arguments: kind(*arguments, algorithm=algorithm)

    def test_bad_names(self):
        with mock.patch.dict(os.environ, {"HOTPACK_ALGORITHM": "best"}), self.assertRaisesRegex(Error, "the algorithm 'best' is none of"):
            _budget.start(torch, _budget.chosen("50%"), "cpu")
        with self.assertRaisesRegex(Error, "the algorithm 'worst' is none of"):
            _budget.start(torch, _budget.chosen("50%"), "cpu", "worst")


if __name__ == "__main__":
    unittest.main()
