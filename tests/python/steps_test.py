"""Which optimizer's steps end an iteration. Needs neither PyTorch nor a device."""

import gc
import unittest
from types import SimpleNamespace
from unittest import mock

from hotpack import _torch
from hotpack._steps import Steps


class Optimizer:
    pass


class StepsTest(unittest.TestCase):
    def ends(self, order: str, steps: "Steps | None" = None, named=None) -> str:
        """The order's letters, in capitals where the step ended an iteration."""
        steps = steps or Steps()
        named = named if named is not None else {}
        return "".join(letter.upper() if steps.ends_iteration(named.setdefault(letter, Optimizer())) else letter for letter in order)

    def test_the_first_step_ends_nothing(self):
        self.assertEqual(self.ends("aaaa"), "aAAA")

    def test_the_first_of_several(self):
        self.assertEqual(self.ends("abababab"), "abAbAbAb")
        self.assertEqual(self.ends("abcabcabc" * 20), "abc" + "Abc" * 59)

    def test_the_one_that_steps_more_rarely(self):
        self.assertEqual(self.ends("ddgddgddgddgddgddg"), "dDgDDgDDgDDGddGddG")
        ends = self.ends("dddddg" * 20)
        self.assertTrue(ends.endswith("dddddG" * 16), ends)
        ends = self.ends("gdd" * 20)
        self.assertTrue(ends.endswith("Gdd" * 10), ends)

    def test_equal_shares_stay(self):
        self.assertEqual(self.ends("aabb" * 20), "aAbb" + "AAbb" * 19)

    def test_one_that_stops_is_replaced(self):
        named = {}
        steps = Steps()
        self.ends("abab", steps, named)
        self.assertEqual(self.ends("b" * 70, steps, named), "b" * 63 + "B" * 7)

    def test_one_that_is_gone_is_replaced_at_once(self):
        named = {}
        steps = Steps()
        self.ends("ababab", steps, named)
        del named["a"]
        gc.collect()
        self.assertEqual(self.ends("bbb", steps, named), "bBB")


class AnnouncedStepsTest(unittest.TestCase):
    """What _torch does to PyTorch's class of optimizers."""

    def setUp(self):
        class Optimizer:
            def __init__(self, parameters: list, rate: float = 0.5):
                self.made = (parameters, rate)

        class Adam(Optimizer):
            def __init__(self, parameters: list):
                super().__init__(parameters, rate=0.1)

        self.optimizer, self.adam = Optimizer, Adam
        self.construct = Optimizer.__init__
        self.announced = 0
        patch = mock.patch("hotpack._marks.expect", self.announce)
        patch.start()
        self.addCleanup(patch.stop)
        _torch._expect_steps(SimpleNamespace(optim=SimpleNamespace(Optimizer=Optimizer)))

    def announce(self):
        self.announced += 1

    def test_the_first_optimizer_announces_them(self):
        self.assertEqual(self.announced, 0)
        self.assertEqual(self.adam([1]).made, ([1], 0.1))
        self.assertEqual(self.announced, 1)
        self.assertEqual(self.optimizer([2]).made, ([2], 0.5))
        self.assertEqual(self.announced, 1)

    def test_the_class_is_left_as_it_was(self):
        self.assertEqual(self.optimizer.__init__.__name__, "__init__")
        self.adam([1])
        self.assertIs(self.optimizer.__init__, self.construct)

    def test_a_later_change_of_the_class_stays(self):
        ours = self.optimizer.__init__

        def theirs(self, *arguments, **keywords):
            ours(self, *arguments, **keywords)

        self.optimizer.__init__ = theirs
        self.adam([1])
        self.assertIs(self.optimizer.__init__, theirs)
        self.assertEqual(self.announced, 1)


if __name__ == "__main__":
    unittest.main()
