"""What the tests' PyTorch leaves out (tests/support/lean_torch.py) changes no result, and comes back when it is needed."""

import os
import subprocess
import sys
import unittest

TRAIN = """
import sys, torch
torch.manual_seed(1)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
optimizers = [kind(model.parameters(), lr=0.01) for kind in (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW)]
def train(model, steps):
    for _ in range(steps):
        for optimizer in optimizers:
            optimizer.zero_grad()
            model(torch.ones(2, 8)).square().sum().backward()
            assert torch.is_grad_enabled()
            optimizer.step(lambda: model(torch.ones(2, 8)).sum().detach())
            assert torch.is_grad_enabled()
train(model, 3)
print("torch._dynamo" in sys.modules)
if len(sys.argv) > 1:
    train(torch.compile(model, backend="eager"), 2)
    print("torch._dynamo" in sys.modules)
print([parameter.double().sum().item() for parameter in model.parameters()])
"""

SHAPES = """
import sys, torch
print("torch._decomp" in sys.modules)
{}
print("torch._decomp" in sys.modules, torch._meta_registrations.__file__.endswith("_meta_registrations.py"))
"""
CONVOLVED = "print(torch.nn.Conv2d(3, 4, 3)(torch.empty(2, 3, 8, 8)).shape)"
# What makes torch._meta_registrations come.
WANT_SHAPES = (
    f"with torch.device('meta'): {CONVOLVED}",
    f"from torch._subclasses.fake_tensor import FakeTensorMode\nwith FakeTensorMode(): {CONVOLVED}",
    "import torch._decomp; print(len(torch._decomp.decomposition_table))",
    "from torch._meta_registrations import meta_index_Tensor; print(meta_index_Tensor.__name__)",
    "print(torch._meta_registrations.device_hint(torch.ones(2)))",
)


def printed(*arguments: str, program: str = TRAIN, whole: bool = False) -> "list[str]":
    environment = {**os.environ, "HOTPACK_TEST_WHOLE_TORCH": "1" if whole else ""}
    done = subprocess.run([sys.executable, "-c", program, *arguments], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


class LeanTorchTest(unittest.TestCase):
    def setUp(self):
        try:
            import hotpack_lean_torch  # noqa: F401
        except ImportError:
            self.skipTest("this PyTorch is not the build's own")

    def test_the_same_bits(self):
        (lean, *sums), (whole, *expected) = printed(), printed(whole=True)
        self.assertEqual((lean, whole), ("False", "True"))
        self.assertEqual(sums, expected)

    def test_nothing_is_collected_while_it_is_imported(self):
        """Afterwards, a program that has switched collections off does not get them back. What has come since is collected."""
        program = ("import gc; {}; before, passes = gc.isenabled(), []; gc.callbacks.append(lambda *_: passes.append(1)); "
                   "import torch; print(len(passes) < 5, before == gc.isenabled(), gc.get_freeze_count() > 50000); "
                   "gc.collect(); cycle = []; cycle.append(cycle); del cycle; print(gc.collect() > 0)")
        for first in ("pass", "gc.disable()"):
            done = subprocess.run([sys.executable, "-c", program.format(first)], capture_output=True, text=True)
            self.assertEqual(done.stdout, "True True True\nTrue\n", done.stderr)

    def test_a_program_that_compiles_has_all_of_it(self):
        (before, after, *sums), (_, _, *expected) = printed("compile"), printed("compile", whole=True)
        self.assertEqual((before, after), ("False", "True"))
        self.assertEqual(sums, expected)

    def test_shapes_are_known_where_they_are_asked_for(self):
        for wanted in WANT_SHAPES:
            with self.subTest(wanted):
                program = SHAPES.format(wanted)
                (before, *lean), (always, *expected) = printed(program=program), printed(program=program, whole=True)
                self.assertEqual((before, always), ("False", "True"))
                self.assertEqual(lean, expected)
                self.assertEqual(lean[-1], "True True")

    def test_generators_are_made_before_and_after_shapes_are_known(self):
        program = """
import torch
numbers = [torch.rand(2, generator=torch.Generator().manual_seed(7)).tolist()]
print(type(torch.Generator), type(torch.Generator()))
import torch._prims
numbers.append(torch.rand(2, generator=torch.Generator().manual_seed(7)).tolist())
print(type(torch.Generator), numbers[0] == numbers[1], numbers)
"""
        self.assertEqual(printed(program=program), printed(program=program, whole=True))

    def test_the_place_of_a_caller(self):
        program = """
import torch
def place():
    return torch._library.utils.get_source(2)
def call():
    return place()
print(call(), torch._library.utils.get_source.__code__.co_name)
"""
        (lean,), (whole,) = printed(program=program), printed(program=program, whole=True)
        self.assertEqual(lean, whole.replace("get_source", "lean"))


if __name__ == "__main__":
    unittest.main()
