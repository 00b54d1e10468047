"""Plans of a budget that the next run begins with."""

import contextlib
import errno
import io
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent))
from budget import training
from hotpack._budget import amount, host, saved_plan, session
from hotpack._budget.clock import Rates
from hotpack._errors import Error

STEPS = 9


def trained(within, kind=training.Transformer, width=None, change=None):
    """(what the training leaves, the session, what it said). change(found): before the first step."""
    torch.manual_seed(3)
    model = kind() if width is None else kind(width)
    updates = torch.optim.Adam(model.parameters(), lr=1e-3)
    said = io.StringIO()
    left = []
    with contextlib.redirect_stderr(said):
        found = session.Session(torch, amount.parse(within), "cpu", recompute=True)
        found.start()
        if change is not None:
            change(found)
        try:
            for step in range(STEPS):
                loss = model(model.batch(step)).pow(2).mean()
                loss.backward()
                updates.step()
                updates.zero_grad()
                left.append(loss.detach().clone())
        finally:
            found.stop()
        left += [parameter.detach().clone() for parameter in model.parameters()]
        print(found.summary(), file=sys.stderr)
    return left, found, said.getvalue()


class Mlp(torch.nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.layers = torch.nn.Sequential(*[part for _ in range(6) for part in (torch.nn.Linear(width, width), torch.nn.GELU(), torch.nn.Dropout(0.1))])
        self.width = width

    def forward(self, x):
        return self.layers(x)

    def batch(self, step):
        return torch.randn(128, self.width, generator=torch.Generator().manual_seed(step))


class SavedPlanTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.name = os.path.join(folder.name, "job.plan")
        self.file = Path(self.name + ".budget")
        # However fast copies are here, by their measured rate something is computed again.
        slow = mock.patch.object(host.PlainHost, "rates", lambda _: Rates(1e6, 1e6, False))
        for patch in (mock.patch.dict(os.environ, {"HOTPACK_PLAN": self.name}), slow):
            patch.start()
            self.addCleanup(patch.stop)

    def observed(self, within="60%", **options):
        """Which steps were observed, beside what trained() returns."""
        steps = []

        def watch(found):
            end = found._end_iteration

            def end_iteration():
                steps.append(found.saves.observe)
                end()

            found._end_iteration = end_iteration

        return steps, *trained(within, Mlp, change=watch, **options)

    def test_the_second_run_observes_one_step(self):
        first, left, one, said = self.observed()
        self.assertEqual(first, [True] * 3 + [False] * (STEPS - 3))
        self.assertNotIn("saved plan", said)
        self.assertTrue(self.file.exists())
        second, again, other, said = self.observed()
        self.assertEqual(second, [True] + [False] * (STEPS - 1))
        self.assertTrue(training.same(left, again))
        self.assertIn("budget 60% (", said)
        self.assertIn(" by a saved plan: predicted ", said)
        self.assertEqual([each.figures()["saved_plan"] for each in (one, other)], [0, 1])
        self.assertEqual((one.budget, one.predicted, one.planning.floor), (other.budget, other.predicted, other.planning.floor))
        self.assertEqual(one._kinds.all[0].plan.treatments, other._kinds.all[0].plan.treatments)
        self.assertGreater(other.computed, 0)
        self.assertLess(other.moved, one.moved)
        # What was read is what was written.
        self.assertEqual(one.planning.to_save(), other.planning.to_save())

    def test_the_bits_are_those_of_a_run_without(self):
        os.environ["HOTPACK_PLAN"] = ""
        left = self.observed()[1]
        self.assertFalse(self.file.exists())
        os.environ["HOTPACK_PLAN"] = self.name
        self.observed()
        _, again, resumed, _ = self.observed()
        self.assertTrue(training.same(left, again))
        self.assertTrue(resumed.resumed)

    def test_another_step_gets_its_own(self):
        self.observed(width=64)
        before = self.file.read_text()
        steps, _, found, said = self.observed(width=96)
        self.assertIn(f"hotpack: the plan in {self.file} is not used: it is for other parameters, or for another optimizer\n", said)
        self.assertEqual(steps[:3], [True, True, True])
        self.assertFalse(found.resumed)
        self.assertNotIn("not saved", said)
        self.assertNotIn("no plan for", said)
        self.assertFalse(self.file.read_text() == before)
        self.assertEqual(self.observed(width=96)[0], [True] + [False] * (STEPS - 1))

    def test_saves_that_differ_are_observed(self):
        """The parameters are the same, and the saves are not."""
        self.observed()
        with mock.patch.object(Mlp, "batch", lambda self, step: torch.randn(200, self.width, generator=torch.Generator().manual_seed(step))):
            steps, left, found, _ = self.observed()
            self.assertEqual(steps[:2], [True, False])
            self.assertIn(True, steps[2:])
            self.assertEqual([kind.saved for kind in found._kinds.all], [False])
            os.environ["HOTPACK_PLAN"] = ""
            self.assertTrue(training.same(left, self.observed()[1]))

    def test_a_plan_that_was_followed_stays_beside_new_ones(self):
        self.observed()
        with mock.patch.object(Mlp, "batch", lambda self, step: torch.randn(128 if step < 4 else 200, self.width)):
            _, _, found, _ = self.observed()
        self.assertEqual([kind.items[0].shape[0] for kind in found._kinds.all], [200, 128])
        self.assertFalse(found.resumed)  # it has made plans
        self.assertTrue(all(kind.plan is not None for kind in found._kinds.all))

    def test_what_a_plan_is_for(self):
        self.observed("60%")
        for change, reason in ((lambda: self.observed("50%"), "is for budget 60%, not 50%"),
                               (lambda: self.edited("for", device="cuda card"), "is for device cuda card, not cpu"),
                               (lambda: self.edited("for", torch="1.0"), f"is for torch 1.0, not {torch.__version__}"),
                               (lambda: self.edited(None, schema_version=0), "is of another version of hotpack")):
            with self.subTest(reason):
                steps, _, _, said = change()
                self.assertIn(f"is not used: {self.file} {reason}\n", said)
                self.assertEqual(steps[:3], [True, True, True])
                self.observed("60%")  # which writes its own

    def edited(self, section, **changes):
        found = json.loads(self.file.read_text())
        (found if section is None else found[section]).update(changes)
        self.file.write_text(json.dumps(found))
        return self.observed("60%")

    def test_broken_plans_change_nothing(self):
        self.observed()
        whole = json.loads(self.file.read_text())
        for broken in ({"kinds": [{}]}, {"kinds": whole["kinds"], "times": ["x"] * 4}, {"step": [1]}, {"optimizers": None},
                       {"passes": [7]}, {"recipes": None}, {"optimizers": [None, 0, 0, "x"]}, {"memory": [1]}):
            with self.subTest(broken):
                self.file.write_text(json.dumps({**whole, **broken}))
                steps, _, found, said = self.observed()
                self.assertIn("is not used: ", said)
                self.assertNotIn("no plan for this step", said)
                self.assertEqual((steps[:3], found.resumed), ([True, True, True], False))
        kind = whole["kinds"][0]
        kind["plan"]["state"] = [[1, 2], [1, 2], [1], 0.0]
        with self.assertRaisesRegex(ValueError, "do not fit"):
            saved_plan.kind_of(torch, kind)
        kind["plan"]["state"] = [[1, 2], [1, 2], [1, 2], 0.0]
        self.assertEqual(saved_plan.kind_of(torch, kind).plan.state.room, [1, 2])
        kind["plan"]["treatments"].pop()
        with self.assertRaisesRegex(ValueError, "do not fit"):
            saved_plan.kind_of(torch, kind)

    def test_other_files_are_left_alone(self):
        for text in ("a letter", '{"schema": "another"}'):
            self.file.write_text(text)
            steps, _, _, said = self.observed()
            self.assertIn(f"is not used: {self.file} is no plan of a budget", said)
            self.assertIn(f"the budget's plan is not saved: {self.file} is no plan of a budget: it is left alone", said)
            self.assertEqual((self.file.read_text(), steps[:3]), (text, [True, True, True]))
        self.file.unlink()
        self.name = "/proc/none/job.plan"
        os.environ["HOTPACK_PLAN"] = self.name
        self.assertIn("the budget's plan is not saved: ", self.observed()[3])
        self.assertEqual(os.listdir(self.file.parent), [])

    def test_recipes_are_trusted_by_their_texts(self):
        self.observed()
        computed = self.observed()[2].computed
        known = json.loads(self.file.read_text())["recipes"]
        self.assertTrue(any("aten::gelu" in each for each in known), known)
        found = json.loads(self.file.read_text())
        found["recipes"] = []
        self.file.write_text(json.dumps(found))
        _, _, other, _ = self.observed()
        self.assertTrue(other.resumed)
        self.assertTrue(0 < other.computed < computed)  # the second step compares them

    def test_plans_are_saved_when_asked(self):
        """In a whole process, without a device."""
        script = """
import sys, hotpack
hotpack.enable(budget="activations:50%")
import torch
torch.manual_seed(0)
model = torch.nn.Sequential(*[torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Tanh()) for _ in range(8)])
updates = torch.optim.Adam(model.parameters())
def train(steps):
    for _ in range(steps):
        model(torch.randn(32, 64)).pow(2).mean().backward()
        updates.step()
        updates.zero_grad()
def save(*path):
    try:
        return hotpack.save_plan(*path)
    except OSError as error:
        return error.errno
before = save(sys.argv[1])
train(6)
print(before, save(sys.argv[1]), save(), hotpack.stats().get("saved_plan"))
"""
        environment = {**os.environ, "HOTPACK_RECOMPUTE": "0", "HOTPACK_PLAN": ""}

        def run(**more):
            return subprocess.run([sys.executable, "-c", script, self.name], env={**environment, **more}, capture_output=True,
                                  text=True, timeout=120)

        done = run()
        if "budget activations" not in done.stderr:
            self.skipTest("a device is there")
        self.assertEqual(done.stdout.split(), [str(errno.ENODATA), "None", str(errno.EINVAL), "0"], done.stderr)
        self.assertTrue(self.file.exists())
        self.assertEqual(run(HOTPACK_PLAN=self.name).stdout.split(), [str(errno.ENODATA), "None", "None", "1"])
        self.file.write_text("a letter")
        self.assertEqual(run().stdout.split()[:2], [str(errno.ENODATA), str(errno.EEXIST)])
        self.assertEqual(self.file.read_text(), "a letter")

    def test_names(self):
        with mock.patch.dict(os.environ, {"RANK": "3", "SLURM_PROCID": "5"}):
            self.assertEqual(saved_plan.path_of("a.%r.%d.plan", 2), "a.3.2.plan.budget")
        with mock.patch.dict(os.environ, {"RANK": "x"}):
            self.assertEqual(saved_plan.path_of("%r%%%x%", 2), "0%%x%.budget")
        self.assertEqual(saved_plan.path_of("%p", 0), f"{os.getpid()}.budget")
        self.assertEqual(saved_plan.path_of("", 0), "")
        self.assertIsNone(saved_plan.read(self.name, {}))
        self.assertTrue(issubclass(Error, RuntimeError))


if __name__ == "__main__":
    unittest.main()
