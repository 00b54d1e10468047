"""Saved tensors that are computed again: the same bits, the generator and batch norm's statistics as without, and sources that
change are noticed."""

import collections
import gc
import os
import unittest
from pathlib import Path
from unittest import mock

os.environ["XDG_CACHE_HOME"] = str(Path(os.environ["HOTPACK_BUILD"]) / "cache")  # where the recorder is kept

import torch  # noqa: E402
from budget import training  # noqa: E402
from budget.training import FUNCTIONAL, budget, train  # noqa: E402
from hotpack import Error  # noqa: E402
from hotpack._budget import content, host, passes, recorder  # noqa: E402
from hotpack._budget.again import Again, Recipe  # noqa: E402
from hotpack._budget.clock import Rates  # noqa: E402
from hotpack._budget.passes import AGAIN, KEEP, MOVE  # noqa: E402

torch.set_num_threads(1)


def again(_passing, _item, _treatment):
    return AGAIN


def everything_again():
    return budget("activations:50%", again, recompute=True)


class AgainTest(unittest.TestCase):
    def test_the_same_bits(self):
        for name, kind in training.MODELS.items():
            for autocast in (False, True):
                plain, _ = train(kind, None, autocast=autocast)
                choosers = [again, *(training.by_dice(seed, (KEEP, MOVE, AGAIN)) for seed in range(3)), None]
                for number, chooser in enumerate(choosers):
                    with self.subTest(model=name, autocast=autocast, way=number):
                        left, session = train(kind, "activations:50%", autocast=autocast, chooser=chooser, recompute=True)
                        self.assertTrue(training.same(plain, left))
                        if number == 0:
                            self.assertGreater(session.computed, 0)

    @mock.patch.object(host.PlainHost, "rates", lambda self: Rates(1e6, 1e6, False))
    def test_plans_compute_again_what_is_slower_to_move(self):
        for kind in (training.Conv, training.Transformer):
            _, moved = train(kind, "activations:60%", steps=8)
            _, session = train(kind, "activations:60%", steps=8, recompute=True)
            with self.subTest(model=kind.__name__):
                self.assertGreater(session.computed, 0)
                per_step = [(each.moved - each.observed_moves) / (8 - observed) for each, observed in ((session, 3), (moved, 2))]
                self.assertLess(*per_step)
                self.assertLessEqual(session.saves.resident, session.predicted)
                self.assertLessEqual(session.predicted, session.budget)

    def test_nothing_leaks(self):
        """200 steps of each model, with each save's treatment at random: what lives after a step stays as it is after the first ones."""
        watched = collections.Counter()  # storages, by how many live recipes watch them

        class Watched:  # the recorder's module
            def __init__(self, module):
                self.module = module

            def watch(self, key):
                watched[key] += 1
                self.module.watch(key)

            def unwatch(self, key):
                watched[key] -= 1
                self.module.unwatch(key)

            def __getattr__(self, name):
                return getattr(self.module, name)

        ours = {kind.__name__ for kind in (content.Kept, content.Away, content.Moved, content.Tracked, Again, Recipe, host.Copy,
                                           host.Arrival, passes.Pass, passes.Saved)}

        def alive(session):
            gc.collect()
            kinds = collections.Counter(type(one).__name__ for one in gc.get_objects() if issubclass(type(one), torch.Tensor)
                                        or type(one).__name__ in ours)
            return {**kinds, "watched": sum(watched.values()), "recorded": session.saves.recorder._tape.size(),
                    "recipes": len(session.saves.recorder._live), "lasting": len(session.saves._lasting)}

        for kind in (training.Mlp, training.Conv, training.Transformer):
            torch.manual_seed(0)
            model = kind()
            with budget("60%", training.by_dice(1, (KEEP, MOVE, AGAIN)), recompute=True) as session:
                session.saves.recorder.module = Watched(session.saves.recorder.module)
                updates = torch.optim.AdamW(model.parameters(), lr=1e-4)
                counts = []
                most_watched = 0
                for number in range(200):
                    loss = model(kind.batch())
                    most_watched = max(most_watched, sum(watched.values()))
                    loss.backward()
                    del loss
                    updates.step()
                    updates.zero_grad()
                    if number in (10, 199):
                        counts.append(alive(session))
            with self.subTest(model=kind.__name__):
                self.assertEqual(*counts)
                self.assertGreater(most_watched, 0)
                self.assertEqual(counts[1]["watched"], 0)
                self.assertGreater(session.computed, 0)
                self.assertGreater(session.saves.moved, 0)

    def test_what_is_written_without_an_operator(self):
        """By a kernel of the program's own, say, for which NumPy stands here. Its results are filled through their addresses."""
        class Outside(training.Mlp):
            def forward(self, x):
                hidden = self.layers[0](x)
                for make in (torch.zeros_like, torch.empty_like):
                    scale = make(hidden.detach())
                    scale.numpy()[:] = hidden.detach().numpy() ** 2 + 1
                    scale = scale * 0.5
                    hidden = torch.tanh(hidden * scale) + hidden
                    del scale
                same = torch.zeros_like(hidden.detach()) * 0.5  # backward gets this one first, which is right
                hidden = torch.tanh(hidden * same) + hidden
                return self.layers[3:](hidden).pow(2).mean()

        plain, _ = train(Outside, None, steps=8)
        for share in (60, 35):
            left, session = train(Outside, f"activations:{share}%", steps=8, recompute=True)
            self.assertTrue(training.same(plain, left))
        self.assertIn(("aten::zeros_like", "aten::mul", torch.float32, 2, (60 * 120).bit_length()), session.saves.checks.wrong)
        self.assertNotIn(("aten::empty_like", "aten::mul"), {kind[:2] for kind in session.saves.checks.right})
        self.assertGreater(session.computed, 0)

    def run_both(self, program):
        """program(weight) returns tensors; run without a budget, and with everything computed again."""
        def run():
            torch.manual_seed(5)
            weight = torch.randn(60, 60, requires_grad=True)
            left = [value.detach().clone() for value in program(weight)]
            return [*left, weight.grad.clone(), torch.get_rng_state()]

        plain = run()
        with everything_again() as session:
            left = run()
        self.assertTrue(training.same(plain, left))
        return session

    def test_changes_of_sources(self):
        """Legal without a budget, because autograd did not save the sources: a batch, a parameter before a late backward."""
        def batch(weight):
            x = torch.randn(60, 1)
            y = (x.expand(60, 60) * 2).sigmoid() * weight  # sigmoid's result is saved, x is not
            x.zero_()
            y.sum().backward()
            return [x]

        def view_of_batch(weight):
            x = torch.randn(1, 60)
            y = (x.t().expand(60, 60) * 2).sigmoid() * weight
            x[0, 3:9].fill_(7)
            y.sum().backward()
            return [x]

        def parameter(weight):
            y = (weight * 2).sigmoid().exp()
            with torch.no_grad():
                weight.mul_(3)
            y.sum().backward()
            return [y]

        def held(weight):
            hidden = weight.exp()  # saved
            y = (hidden * 2).sin()  # saves hidden * 2
            with torch.no_grad():
                weight.mul_(2)
            y.sum().backward()
            return [hidden]

        def optimizer(weight):
            y = (weight * 2).sigmoid().exp()
            weight.grad = torch.ones(60, 60)
            torch.optim.SGD([weight], lr=0.1).step()
            weight.grad = None
            y.sum().backward()
            return [y]

        for program in (batch, view_of_batch, parameter, held, optimizer):
            with self.subTest(program=program.__name__):
                session = self.run_both(program)
                self.assertGreater(session.computed, 0)

    def test_changes_of_sources_while_the_program_has_the_result(self):
        """Nothing is computed then: what the program has is kept."""
        def named(weight):
            x = torch.randn(60, 1)
            scale = (x.expand(60, 60) * 2).sigmoid()
            y = scale * weight
            x.zero_()
            del scale
            y.sum().backward()
            return [x]

        session = self.run_both(named)
        self.assertEqual(session.computed, 0)

    def test_in_place_chains_and_views(self):
        def chain(weight):
            x = torch.randn(60, 60)
            y = (x * 2).mul_(3).relu_().t()
            z = FUNCTIONAL.dropout(y, 0.3)
            (z.exp() * weight).sum().backward()
            return [z]

        def parts(weight):
            """Whole storages are made of parts: only what was written may be computed again."""
            x = torch.randn(60, 60)
            whole = torch.empty_like(x)
            whole[:30].copy_(x[:30].sin())
            whole[30:].copy_(x[30:].cos())
            (whole[30:] * weight[30:]).sum().backward(retain_graph=True)
            (whole[:30] * weight[:30] + whole[30:] * weight[30:]).exp().sum().backward()
            return [whole]

        def split(weight):
            q, k, v = torch.cat([weight.tanh()] * 3, dim=1).split(60, dim=1)
            loss = (q.exp() * k.sin() * v).sum()
            del q, k, v
            loss.backward()
            return [loss]

        for program in (chain, parts, split):
            with self.subTest(program=program.__name__):
                self.run_both(program)

    def test_a_storage_that_is_saved_again_after_its_graph_is_gone(self):
        def program(weight):
            first = weight.sigmoid()
            loss = (first.detach() * weight).sum()
            other = first.exp().sum()
            del other, loss
            y = (first * weight.detach()).exp() * first
            del first
            y.sum().backward()
            return [y]

        self.run_both(program)
        with budget("activations:50%", lambda *_: MOVE) as session:
            weight = torch.randn(500, requires_grad=True)
            value = weight.detach().exp()
            kept = weight.exp().sum()
            (weight * value).sum()  # its graph goes at once
            loss = (weight * value).sum()
            del value
            loss.backward()
            self.assertEqual(session.moved, 6000)
            del kept

    def test_retain_graph_after_a_change(self):
        def program(weight):
            y = (weight * 2).sigmoid().exp().sum()
            y.backward(retain_graph=True)
            with torch.no_grad():
                weight.mul_(3)
            y.backward(retain_graph=True)
            y.backward()
            return [y]

        self.run_both(program)

    def test_statistics_and_generators(self):
        """Batch norm's are written once, and a generator of the program is drawn from once."""
        own = torch.Generator().manual_seed(9)

        def program(weight):
            norm = torch.nn.BatchNorm1d(60, momentum=0.3)
            own.manual_seed(9)
            x = FUNCTIONAL.relu(norm(torch.randn(60, 60)))
            mask = torch.empty_like(x).bernoulli_(0.5, generator=own)
            y = (x * mask).exp() * weight
            del x, mask
            y.sum().backward()
            return [norm.running_mean, norm.running_var, norm.num_batches_tracked, own.get_state()]

        self.run_both(program)

    def test_evaluation_of_batch_norm_reads_statistics_that_change(self):
        def program(weight):
            norm = torch.nn.BatchNorm1d(60)
            x = torch.randn(60, 60)
            y = FUNCTIONAL.relu(norm.eval()(x)) * weight
            norm.train()(x * 5)
            y.sum().backward()
            return [norm.running_mean]

        self.run_both(program)

    def test_what_does_not_come_back_the_same_is_moved(self):
        """Accumulation in any order, and operators of others."""
        def program(weight):
            x = torch.zeros(60, 60).index_add(0, torch.randint(0, 9, (60,)), torch.randn(60, 60))
            y = x.exp() * weight
            y.sum().backward()
            return [x]

        session = self.run_both(program)
        self.assertGreater(session.saves.moved, 0)

    def test_memory_goes_and_the_tape_ends(self):
        with everything_again() as session:
            weight = torch.randn(200, 200, requires_grad=True)
            sizes = []
            for _ in range(6):
                (weight * 2).sigmoid().exp().sum().backward()
                weight.grad = None
                with torch.no_grad():
                    for _ in range(50):
                        weight.sin()
                sizes.append(session.saves.recorder._tape.size())
            self.assertEqual(len(set(sizes[1:])), 1)
            self.assertLess(sizes[-1], 20)
            self.assertEqual(len(session.saves.recorder._live), 0)

    def test_a_full_tape_is_emptied(self):
        with everything_again() as session:
            weight = torch.randn(60, 60, requires_grad=True)
            for _ in range(2):
                before = session.computed
                y = (weight * 2).sigmoid().exp()
                for _ in range(100_000):
                    weight.t()
                y.sum().backward()
                self.assertGreater(session.computed, before)

    def test_without_a_compiler(self):
        with mock.patch.object(recorder, "load", side_effect=Error("there is no C++ compiler")), \
                mock.patch("sys.stderr") as stderr:
            left, session = train(training.Mlp, "activations:50%", recompute=True)
        said = "".join(call.args[0] for call in stderr.write.call_args_list)
        self.assertIn("hotpack: saved tensors are moved, and none is computed again: there is no C++ compiler", said)
        self.assertTrue(training.same(train(training.Mlp, None)[0], left))
        self.assertGreater(session.moved, 0)

    def test_a_compiler_that_fails(self):
        with mock.patch.dict(os.environ, {"CXX": "false", "XDG_CACHE_HOME": os.path.join(os.environ["HOTPACK_BUILD"], "no_cache")}):
            with self.assertRaisesRegex(Error, "the compiler failed: without a word"):
                recorder.load(torch)
        with mock.patch.dict(os.environ, {"XDG_CACHE_HOME": "/proc/none"}), self.assertRaises(Error):
            recorder.load(torch)


if __name__ == "__main__":
    unittest.main()
