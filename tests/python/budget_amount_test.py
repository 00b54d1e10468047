"""What a budget may say, where it comes from, and the plan that a load makes. Needs no training."""

import io
import os
import subprocess
import sys
import unittest
from unittest import mock

import hotpack
from hotpack import _budget
from hotpack._budget.amount import parse, size_text
from hotpack._budget.clock import Rates
from hotpack._budget.passes import AGAIN, KEEP, MOVE
from hotpack._budget.policy import LONGEST_CHAIN, Sight, choose
from hotpack._budget.timeline import Timeline, Use


class AmountTest(unittest.TestCase):
    def test_sizes(self):
        for given, expected in (("7.5GiB", 15 << 29), ("8G", 8 << 30), ("300M", 300 << 20), ("24GB", 24 * 10**9), ("1024", 1024),
                                (1 << 33, 1 << 33), ("2kB", 2000), (" 1T ", 1 << 40)):
            self.assertEqual(parse(given).bytes, expected)
            self.assertEqual(parse(given).of(5), expected)

    def test_shares(self):
        self.assertEqual(parse("60%").of(1000), 600)
        self.assertFalse(parse("60%").activations)
        self.assertEqual(parse("activations:12.5%").of(1000), 125)
        self.assertTrue(parse("activations:100%").activations)

    def test_no_budget(self):
        for given in (None, "", "0", "none", 0):
            self.assertIsNone(parse(given))

    def test_what_is_none(self):
        for given in ("half", "-1", "0%", "101%", "activations:", "activations:8G", "8 G B", "1e9", "nan", "8Gib", "%", 0.5, True, -3,
                      "0.2", "9" * 40, "60 %", "activations:0%", "1..5G", "²"):
            with self.subTest(given=given), self.assertRaises(hotpack.Error) as raised:
                parse(given)
            self.assertRegex(str(raised.exception), r"^the budget .* is no size \(7.5GiB\), share of the step \(60%\) or of its "
                             r"activations \(activations:50%\)$")

    def test_the_environment_comes_first(self):
        with mock.patch.dict(os.environ, {"HOTPACK_BUDGET": "3G"}):
            self.assertEqual(_budget.chosen("60%").bytes, 3 << 30)
        for off in ("0", "none"):
            with mock.patch.dict(os.environ, {"HOTPACK_BUDGET": off}):
                self.assertIsNone(_budget.chosen("60%"))
        with mock.patch.dict(os.environ, {"HOTPACK_BUDGET": ""}):
            self.assertEqual(_budget.chosen("60%"), parse("60%"))

    def test_size_text(self):
        self.assertEqual([size_text(n) for n in (0, 1023, 1024, 3 << 29, 5 << 50)], ["0 B", "1023 B", "1.0 KiB", "1.5 GiB", "5120.0 TiB"])


class PolicyTest(unittest.TestCase):
    """Loads as in the picture of policy.py: the nearest to the turn are kept first."""

    #  position   0  1  2  3  4  5  6
    #  base       1  1  1  1  2  2  2      a: [1, 6) 4 bytes   b: [2, 5) 4 bytes   c: [3, 4) 4 bytes
    def sight(self, *uses, rate=1.0, overlaps=False):
        uses = list(uses) or [Use(4, 1, 6), Use(4, 2, 5), Use(4, 3, 4)]
        return Sight([1, 1, 1, 1, 2, 2, 2], [0] * 7, uses, Timeline([1.0] * 7, Rates(rate, rate, overlaps), 0.0))

    def test_what_is_kept(self):
        for room, kept, predicted in ((13, "kkk", 13), (12, "mkk", 9), (9, "mkk", 9), (8, "mmk", 5), (5, "mmk", 5),
                                      (4, "mmm", 2), (0, "mmm", 2)):
            plan = choose(self.sight(), room, False)
            with self.subTest(room=room):
                self.assertEqual("".join(treatment[0] for treatment in plan.treatments), kept)
                self.assertEqual(plan.predicted, predicted)
                self.assertEqual(plan.floor, 2)
                self.assertEqual(plan.moved, 4 * kept.count("m"))

    def test_what_is_computed_again(self):
        """b from a, c from b, each in half of a copy's time. A source comes back with the result."""
        def plan(room, extra=0):
            uses = [Use(4, 1, 6), Use(4, 2, 5, [0], extra, 4.0), Use(4, 3, 4, [1], 0, 4.0)]
            return choose(self.sight(*uses), room, False)

        self.assertEqual(plan(13).treatments, [KEEP] * 3)
        self.assertEqual((plan(9).treatments, plan(9).seconds), ([KEEP, AGAIN, KEEP], 7 + 4))
        self.assertEqual((plan(10).treatments, plan(10).moved), ([KEEP, AGAIN, KEEP], 0))
        self.assertEqual(plan(6).treatments.count(KEEP), 1)
        self.assertNotIn(AGAIN, plan(5).treatments)  # no room for a source at its result's position
        self.assertEqual(plan(5).predicted, 5)
        self.assertEqual(plan(9, extra=5).predicted, 9)

    def test_chains_are_computed_from_their_end_to_their_begin(self):
        uses = [Use(4, 1, 6), Use(1, 2, 5, [0], 0, 1.0), Use(1, 3, 4, [1], 0, 1.0)]
        plan = choose(Sight([0, 0, 1, 1, 0, 0, 0], [0] * 7, uses, Timeline([1.0] * 7, Rates(1e-3, 1e-3, False), 0.0)), 5, False)
        self.assertEqual(plan.treatments, [KEEP, AGAIN, AGAIN])
        self.assertEqual(plan.predicted, 5)  # b is there from the position of c on
        self.assertEqual(plan.seconds, 9.0)

    def test_the_longest_chain(self):
        count = 3 * LONGEST_CHAIN
        uses = [Use(9, number, 2 * count - number, [number - 1] if number else None, 0, 1.0) for number in range(count)]
        plan = choose(Sight([0] * 2 * count, [0] * 2 * count, uses, Timeline([1.0] * 2 * count, Rates(1e-9, 1e-9, False), 0.0)),
                      9 * count // 2, False)
        chain = longest = 0
        for treatment in plan.treatments:
            chain = chain + 1 if treatment == AGAIN else 0
            longest = max(longest, chain)
        self.assertTrue(1 < longest <= LONGEST_CHAIN)
        self.assertLessEqual(plan.predicted, 9 * count // 2)

    def test_copies_beside_kernels(self):
        """Four seconds of copies of each, which hide behind seven of work: nothing is computed again, which does not."""
        uses = [Use(4, 1, 6, None, 0, 0.0, 0), Use(4, 2, 5, [0], 0, 0.5, 1), Use(4, 3, 4, [1], 0, 0.5, 2)]
        fast = choose(self.sight(*uses, rate=8.0, overlaps=True), 9, False)
        self.assertEqual((fast.treatments, fast.fetches, fast.seconds), ([MOVE, KEEP, KEEP], [(5, 0)], 7.0))
        slow = choose(self.sight(*uses, rate=0.1, overlaps=True), 9, False)
        self.assertEqual((slow.treatments, slow.seconds), ([KEEP, AGAIN, KEEP], 7.5))

    def test_copies_back_wait_for_room(self):
        uses = [Use(4, 1, 6, None, 0, 0.0, 0), Use(4, 2, 5, None, 0, 0.0, 1), Use(4, 3, 4, None, 0, 0.0, 2)]
        plan = choose(self.sight(*uses, rate=1.0, overlaps=True), 9, False)
        self.assertEqual(plan.treatments, [MOVE, KEEP, KEEP])
        self.assertEqual(plan.predicted, 9)
        self.assertEqual(plan.fetches, [(5, 0)])  # when the others are gone

    def test_plain(self):
        self.assertEqual(self.sight().plain(False), 13)

    def test_what_the_program_holds_is_kept(self):
        plan = choose(Sight([9, 9], [0, 0], [Use(5, 1, 1)]), 1, False)
        self.assertEqual((plan.treatments, plan.moved), ([KEEP], 0))


class ProgramTest(unittest.TestCase):
    """Of a whole process, without a device."""

    SCRIPT = """
import sys, hotpack
hotpack.enable(budget=sys.argv[1])
import torch
torch.manual_seed(0)
model = torch.nn.Sequential(*[torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Tanh()) for _ in range(8)])
updates = torch.optim.Adam(model.parameters())
for _ in range(4):
    model(torch.randn(32, 64)).pow(2).mean().backward()
    updates.step()
    updates.zero_grad()
figures = hotpack.stats()
print(figures.get("budget"), figures.get("moved_bytes"), figures.get("predicted_peak"))
"""

    def program(self, budget, **environment):
        # A driver that is there does not count: the process has no path to it.
        return subprocess.run([sys.executable, "-c", self.SCRIPT, budget], env={**os.environ, "HOTPACK_RECOMPUTE": "0", **environment},
                              capture_output=True, text=True, timeout=120)

    def test_on_the_cpu(self):
        done = self.program("activations:50%")
        if "budget activations" not in done.stderr:
            self.skipTest("a device is there")
        self.assertEqual(done.returncode, 0, done.stderr)
        budget, moved, predicted = map(int, done.stdout.split())
        self.assertGreater(moved, 0)
        self.assertTrue(0 < predicted <= budget, done.stdout)
        self.assertRegex(done.stderr, r"hotpack: budget activations:50% \(.* KiB\): predicted .* KiB; .* copied to the host and .* computed again in 4 steps; "
                         "saved tensors held at most .* where backward began\n$")
        quiet = self.program("activations:50%", HOTPACK_QUIET="1")
        self.assertEqual(quiet.stderr, "")
        self.assertEqual(quiet.stdout, done.stdout)

    def test_off(self):
        done = self.program("activations:50%", HOTPACK_BUDGET="none")
        self.assertNotIn("hotpack: budget", done.stderr)

    def test_wrong_values(self):
        done = self.program("much")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr.splitlines()[-1], "^hotpack.Error: the budget 'much' is no size")
        for switch in ("HOTPACK_RECOMPUTE", "HOTPACK_STATE_AHEAD"):
            done = self.program("60%", **{switch: "yes"})
            self.assertRegex(done.stderr.splitlines()[-1], f"^hotpack.Error: {switch}=yes is not 0 or 1")


class FigureTest(unittest.TestCase):
    def test_no_figures_without_a_budget(self):
        self.assertEqual(_budget.figures(), {})
        with mock.patch("sys.stderr", new_callable=io.StringIO):
            self.assertNotIn("budget", _budget.figures())


if __name__ == "__main__":
    unittest.main()
