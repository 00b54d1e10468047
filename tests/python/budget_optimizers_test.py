"""Optimizer steps in slices, with the state on the host between them: equal to whole steps for every class, and in the ways that
programs step."""

import copy
import io
import unittest
from unittest import mock

import torch
from budget import training
from budget.training import budget
from hotpack._budget.optimizers import SLICED

torch.set_num_threads(1)
BATCHES = [torch.randn(16, 32, generator=torch.Generator().manual_seed(number)) for number in range(6)]


class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.matrices = torch.nn.ModuleList([torch.nn.Linear(32, 48, bias=False), torch.nn.Linear(48, 16, bias=False)])
        self.bias = torch.nn.Parameter(torch.zeros(16))
        self.unused = torch.nn.Parameter(torch.zeros(700))
        self.scalar = torch.nn.Parameter(torch.ones(()))

    def forward(self, x):
        return ((self.matrices[1](torch.tanh(self.matrices[0](x))) + self.bias) * self.scalar).pow(2).mean()


def run(within, make, step=None, steps=5, **options):
    """The parameters and the state after some steps; and the session."""
    torch.manual_seed(3)
    model = Network()
    with budget(within, **options) as session:
        updates = make(model)
        left = []
        for batch in BATCHES[:steps]:
            if step is not None:
                step(model, updates, batch)
            else:
                model(batch).backward()
                updates.step()
                updates.zero_grad()
            left += [p.detach().clone() for p in model.parameters()]
        state = copy.deepcopy(updates.state_dict())
    for entry in state["state"].values():
        left += [value for value in entry.values() if torch.is_tensor(value)]
    return left, session


class OptimizersTest(unittest.TestCase):
    def equal(self, make, step=None, sliced=True):
        plain, _ = run(None, make, step)
        left, session = run("30%", make, step)
        self.assertTrue(training.same(plain, left))
        self.assertEqual(session._slices.calls > 0, sliced)
        return session

    def test_every_class(self):
        """Every class of torch.optim is either sliced or named here."""
        kinds = {name for name, kind in vars(torch.optim).items()
                 if isinstance(kind, type) and issubclass(kind, torch.optim.Optimizer)} - {"Optimizer"}
        self.assertEqual(kinds - set(SLICED), {"LBFGS"})
        for name in sorted(kinds & set(SLICED)):
            kind = getattr(torch.optim, name)
            ways = [{}]
            if name in ("Adam", "AdamW", "SGD", "Adagrad"):
                ways += [{"foreach": True}, {"foreach": False}, {"fused": True}]
            elif name not in ("Muon", "Adafactor", "SparseAdam"):
                ways += [{"foreach": True}, {"foreach": False}]
            if name == "SGD":
                ways = [{**way, "momentum": 0.9} for way in ways] + [{"momentum": 0.9, "nesterov": True, "weight_decay": 0.1}]
            if name in ("Adam", "AdamW"):
                ways.append({"amsgrad": True, "weight_decay": 0.1})
            for way in ways:
                def make(model, kind=kind, way=way, name=name):
                    parameters = model.matrices.parameters() if name in ("Muon", "SparseAdam") else model.parameters()
                    return kind(parameters, lr=1e-2, **way)

                def sparse(model, updates, batch):
                    model(batch).backward()
                    for parameter in model.matrices.parameters():
                        parameter.grad = parameter.grad.to_sparse(1)
                    updates.step()
                    updates.zero_grad()

                with self.subTest(optimizer=name, way=way):
                    self.equal(make, sparse if name == "SparseAdam" else None)

    def test_groups_schedules_and_hooks(self):
        calls = []

        def make(model):
            updates = torch.optim.AdamW([{"params": model.matrices.parameters(), "lr": 0.1}, {"params": [model.bias, model.scalar]},
                                         {"params": []}] if False else
                                        [{"params": model.matrices.parameters(), "lr": 0.1}, {"params": [model.bias, model.scalar]}])
            updates.register_step_pre_hook(lambda *_: calls.append("before"))
            updates.register_step_post_hook(lambda of, *_: calls.append(sum(len(g["params"]) for g in of.param_groups)))
            updates.schedule = torch.optim.lr_scheduler.ExponentialLR(updates, 0.7)
            return updates

        def step(model, updates, batch):
            model(batch).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.05)
            updates.step()
            updates.schedule.step()
            updates.zero_grad()

        self.equal(make, step)
        self.assertEqual(calls, ["before", 4] * 10)

    def test_closures_run_once(self):
        calls = []

        def step(model, updates, batch):
            def closure():
                calls.append(torch.is_grad_enabled())
                updates.zero_grad()
                loss = model(batch)
                loss.backward()
                return loss

            loss = updates.step(closure)
            self.assertTrue(loss.requires_grad)

        self.equal(lambda model: torch.optim.Adam(model.parameters(), lr=1e-2), step)
        self.assertEqual(calls, [True] * 10)

    def test_whole_steps(self):
        def step(model, updates, batch):
            def closure():
                updates.zero_grad()
                loss = model(batch)
                loss.backward()
                return loss

            updates.step(closure)

        with mock.patch("sys.stderr", new_callable=io.StringIO) as stderr:
            self.equal(lambda model: torch.optim.LBFGS(model.parameters(), max_iter=3), step, sliced=False)
        self.assertEqual(stderr.getvalue().count("LBFGS's state stays on the device, and its step is not sliced"), 1)

        class Norm(torch.optim.SGD):
            """Needs all gradients at once."""

            @torch.no_grad()
            def step(self, closure=None):
                total = torch.stack([p.grad.norm() for g in self.param_groups for p in g["params"] if p.grad is not None]).norm()
                for group in self.param_groups:
                    for p in group["params"]:
                        if p.grad is not None:
                            p.sub_(p.grad / total, alpha=group["lr"])

        self.equal(lambda model: Norm(model.parameters(), lr=1e-2), sliced=False)
        self.equal(lambda model: torch.optim.Adam(model.parameters(), lr=torch.tensor(1e-2), differentiable=False, foreach=False))

    def test_a_class_of_the_program_that_changes_the_step(self):
        class Projected(torch.optim.Adam):
            def step(self, closure=None):
                loss = super().step(closure)
                with torch.no_grad():
                    for group in self.param_groups:
                        for p in group["params"]:
                            p.clamp_(-0.1, 0.1)
                return loss

        torch.optim.Adam([torch.nn.Parameter(torch.zeros(1))])  # its step has PyTorch's wrapper now
        self.equal(lambda model: Projected(model.parameters(), lr=1e-2))

        class Plain(torch.optim.Adam):
            pass

        self.equal(lambda model: Plain(model.parameters(), lr=1e-2))

    def test_gradient_scaling_and_accumulation(self):
        for fused in (False, True):
            def step(model, updates, batch, fused=fused):
                for part in batch.chunk(2):
                    model.scaler.scale(model(part)).backward()
                if batch is BATCHES[2]:
                    model.bias.grad[3] = float("inf")
                model.scaler.step(updates)
                model.scaler.update()
                updates.zero_grad()

            def make(model, fused=fused):
                model.scaler = torch.amp.GradScaler("cpu", init_scale=64.0)
                return torch.optim.AdamW(model.parameters(), lr=1e-2, fused=fused)

            with self.subTest(fused=fused):
                self.equal(make, step)

    def test_state_saved_in_mid_run_continues_equal_without_a_budget(self):
        def continued(within, then):
            torch.manual_seed(3)
            model = Network()
            with budget(within):
                updates = torch.optim.Adam(model.parameters(), lr=1e-2)
                for batch in BATCHES[:3]:
                    model(batch).backward()
                    updates.step()
                    updates.zero_grad()
                file = io.BytesIO()
                torch.save((model.state_dict(), updates.state_dict()), file)
            file.seek(0)
            weights, state = torch.load(file)
            with budget(then):
                model = Network()
                model.load_state_dict(weights)
                updates = torch.optim.Adam(model.parameters(), lr=1e-2)
                updates.load_state_dict(state)
                for batch in BATCHES[3:]:
                    model(batch).backward()
                    updates.step()
                    updates.zero_grad()
            return [p.detach().clone() for p in model.parameters()]

        plain = continued(None, None)
        for within, then in (("30%", None), (None, "30%"), ("30%", "30%")):
            self.assertTrue(training.same(plain, continued(within, then)), (within, then))

    def test_an_optimizer_goes_on_when_the_budget_ends(self):
        plain, _ = run(None, lambda model: torch.optim.Adam(model.parameters()))
        torch.manual_seed(3)
        model = Network()
        left = []
        with budget("30%"):
            updates = torch.optim.Adam(model.parameters())
            for batch in BATCHES[:3]:
                model(batch).backward()
                updates.step()
                updates.zero_grad()
                left += [p.detach().clone() for p in model.parameters()]
        for batch in BATCHES[3:5]:
            model(batch).backward()
            updates.step()
            updates.zero_grad()
            left += [p.detach().clone() for p in model.parameters()]
        self.assertTrue(training.same(plain[:len(left)], left))

    def test_an_exception_within_a_step_leaves_the_groups_whole(self):
        with budget("30%"):
            model = Network()
            updates = torch.optim.Adam(model.parameters())
            model(BATCHES[0]).backward()
            model.matrices[1].weight.grad = model.matrices[1].weight.grad.to_sparse()  # Adam refuses it
            with self.assertRaises(RuntimeError):
                updates.step()
            self.assertEqual(len(updates.param_groups[0]["params"]), 5)
            updates.zero_grad()
            model(BATCHES[0]).backward()
            updates.step()


if __name__ == "__main__":
    unittest.main()
