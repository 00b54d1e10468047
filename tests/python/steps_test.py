"""Which optimizer's steps end an iteration. Needs neither PyTorch nor a device."""

import gc
import unittest

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


if __name__ == "__main__":
    unittest.main()
