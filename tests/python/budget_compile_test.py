"""A block compiled by torch.compile under a budget: its saves are moved as others are, and the bits stay the same."""

import unittest

import torch
from budget import training

torch.set_num_threads(1)


class Compiled(training.Mlp):
    def __init__(self):
        super().__init__()
        self.block = torch.compile(self.layers[4:9], backend="aot_eager")

    def forward(self, x):
        return self.layers[9:](self.block(self.layers[:4](x))).pow(2).mean()


class BudgetCompileTest(unittest.TestCase):
    def test_a_compiled_block(self):
        plain, _ = training.train(Compiled, None, steps=4)
        left, session = training.train(Compiled, "60%", steps=4)
        self.assertTrue(training.same(plain, left))
        self.assertGreater(session.saves.moved, 0)


if __name__ == "__main__":
    unittest.main()
