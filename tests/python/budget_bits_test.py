"""A budget changes no bit: losses, gradients, weights, buffers, optimizer state and the generator's state of five steps."""

import unittest

import torch
from budget import training
from hotpack._budget.passes import KEEP, MOVE

torch.set_num_threads(1)


class BudgetBitsTest(unittest.TestCase):
    def each(self, check):
        for name, kind in training.MODELS.items():
            for autocast in (False, True):
                with self.subTest(model=name, autocast=autocast):
                    check(kind, autocast, training.train(kind, None, autocast=autocast)[0])

    def test_shares_of_activations(self):
        def check(kind, autocast, plain):
            moved = []
            for share in (75, 50, 35):
                left, session = training.train(kind, f"activations:{share}%", autocast=autocast)
                self.assertTrue(training.same(plain, left), share)
                moved.append(session.moved)
                self.assertEqual(session._slices.calls, 0)  # of activations alone: steps are whole
            self.assertLess(moved[0], moved[1])
            self.assertLessEqual(moved[1], moved[2])

        self.each(check)

    def test_treatments_by_dice(self):
        def check(kind, autocast, plain):
            for seed in range(3):
                chooser = training.by_dice(seed, (KEEP, MOVE))
                left, session = training.train(kind, "activations:50%", autocast=autocast, chooser=chooser)
                self.assertTrue(training.same(plain, left), seed)
                self.assertGreater(session.moved, 0)

        self.each(check)

    def test_shares_of_the_step(self):
        """Optimizer steps are sliced, and their state is away between steps."""
        def check(kind, autocast, plain):
            for share in (75, 50, 35):
                left, session = training.train(kind, f"{share}%", autocast=autocast)
                self.assertTrue(training.same(plain, left), share)
                self.assertGreater(session._slices.calls, 5)
                self.assertGreater(session._pager.moved, 0)

        self.each(check)

    def test_what_is_held_stays_within_the_budget(self):
        """Counted by weak references to the storages, where backward begins."""
        for name, kind in training.MODELS.items():
            if name == "Lstm":  # its backward needs nearly all at once
                continue
            with self.subTest(model=name):
                _, session = training.train(kind, "activations:60%", steps=6)
                self.assertGreater(session.predicted, 0)
                self.assertLessEqual(session.predicted, session.budget)
                self.assertLessEqual(session.saves.resident, session.predicted)
                self.assertGreater(session.saves.resident, session.budget // 4)


if __name__ == "__main__":
    unittest.main()
