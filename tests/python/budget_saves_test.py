"""Saved tensors under a budget: what is moved comes back as it was, what must not be moved stays, and whatever a program does
with its graphs gives what it gives without a budget."""

import contextlib
import gc
import io
import re
import threading
import unittest
from unittest import mock

import torch
from budget import training
from budget.training import budget, train
from hotpack._budget import host
from hotpack._budget.passes import KEEP, MOVE
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader

torch.set_num_threads(1)


def moving(_passing, _item, _treatment):
    return MOVE


def everything_moved():
    return budget("activations:50%", moving)


class Seen(torch.autograd.Function):
    """Notes the tensors that backward gets."""

    got = []

    @staticmethod
    def forward(context, *tensors):
        context.save_for_backward(*tensors)
        return sum(tensor.sum() for tensor in tensors)

    @staticmethod
    def backward(context, gradient):
        Seen.got = list(context.saved_tensors)
        return tuple(gradient.expand(tensor.shape) for tensor in Seen.got)


class SavedTensorsTest(unittest.TestCase):
    def back(self, *tensors):
        """What backward gets of these, with everything moved. The program lets them go before."""
        with everything_moved() as session:
            loss = Seen.apply(*tensors)
            del tensors
            gc.collect()
            loss.backward()
            return Seen.got, session

    def test_strides_offset_and_sharing(self):
        weight = torch.randn(1, requires_grad=True)

        def made():
            whole = torch.arange(6000.0).view(60, 100) * weight
            return [whole[3:40].t(), whole[:, 10:90:2], whole.view(-1)[7:], (torch.arange(900.0) * weight).expand(3, 900),
                    (torch.randn(2, 8, 9, 9) * weight).to(memory_format=torch.channels_last), whole[5].to(torch.bfloat16).repeat(99)]

        torch.manual_seed(1)
        kept = [tensor.detach() for tensor in made()]
        torch.manual_seed(1)
        got, session = self.back(*made())
        self.assertGreater(session.moved, 6000 * 4)
        for before, after in zip(kept, got):
            self.assertEqual((before.shape, before.stride(), before.storage_offset(), before.dtype),
                             (after.shape, after.stride(), after.storage_offset(), after.dtype))
            self.assertTrue(torch.equal(before, after))
        storages = [tensor.untyped_storage().data_ptr() for tensor in got]
        self.assertEqual(storages[0], storages[1])
        self.assertEqual(storages[0], storages[2])
        self.assertEqual(len(set(storages)), 4)
        self.assertEqual(session.moved, sum({t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in got}.values()))

    def test_a_storage_of_several_saves_is_copied_once_and_let_go(self):
        """The program's storage is gone while it is away."""
        from torch.multiprocessing.reductions import StorageWeakRef

        weight = torch.randn(400, requires_grad=True)
        with everything_moved() as session:
            value = weight * 2
            alive = StorageWeakRef(value.untyped_storage())
            loss = (value.exp() * value.sin() * value).sum()
            del value
            self.assertTrue(alive.expired())
            before = session.moved
            loss.backward()
        plain = weight.grad.clone()
        weight.grad = None
        value = weight * 2
        (value.exp() * value.sin() * value).sum().backward()
        self.assertTrue(torch.equal(plain, weight.grad))
        self.assertEqual(before, session.moved)

    def test_parameters_buffers_and_small_tensors_stay(self):
        layer = torch.nn.Linear(64, 64)
        frozen = torch.nn.Linear(64, 64).requires_grad_(False)
        with everything_moved() as session:
            x = torch.randn(1, 64)
            frozen(layer(x)).sum().backward()  # rows of 256 bytes; weights of 16 KiB
        self.assertEqual(session.moved, 0)

    def test_buffers_are_known_after_the_first_pass(self):
        buffer = torch.randn(1000)  # a leaf that needs no gradient, as a batch
        weight = torch.randn(1000, requires_grad=True)
        with everything_moved() as session:
            for _ in range(5):
                (weight * buffer).sum().backward()
        self.assertEqual(session.moved, 4000)

    def test_an_in_place_change_raises_pytorchs_error(self):
        @torch.no_grad()
        def change(tensor):
            tensor.add_(1)

        @torch.no_grad()
        def change_view(tensor):
            tensor[3:5].zero_()

        weight = torch.randn(20, 20, requires_grad=True)
        for how in (change, change_view):
            for make in (lambda: weight * 1, lambda: (weight * 1).t()):
                said = []
                for within, chooser in ((None, None), ("activations:50%", moving), ("activations:50%", lambda *_: KEEP)):
                    with self.subTest(how=how.__name__, within=within), budget(within, chooser):
                        value = make()
                        loss = (value * value).sum()
                        how(value)
                        with self.assertRaises(RuntimeError) as raised:
                            loss.backward()
                        # Of a view PyTorch names the operator that it makes up after the change.
                        said.append(re.sub("output 0 of (T|AsStrided),", "output 0 of a view,", str(raised.exception).splitlines()[0]))
                self.assertIn("modified by an inplace operation", said[0])
                self.assertEqual(said[0], said[1])
                self.assertEqual(said[0], said[2])
        with everything_moved():  # a leaf
            leaf = torch.randn(500)
            loss = (weight.sum() * leaf).sum()
            leaf.zero_()
            with self.assertRaisesRegex(RuntimeError, "inplace operation: .torch.FloatTensor .500..* is at version 1; expected version 0"):
                loss.backward()

    def test_another_tensor_on_the_storage_has_contents_of_its_own(self):
        """.data has a version counter of its own: at the same version it may have other contents."""
        weight = torch.randn(500, requires_grad=True)

        def loss():
            value = weight * 1
            first = (value.detach().data * weight).sum()
            other = value.data
            value.data.mul_(2)
            return first + (other.data * weight).sum()

        with everything_moved():
            loss().backward()
        # The first product saved the value before the change that no counter shows. PyTorch would show the changed one.
        expected = weight.detach() * 3
        self.assertTrue(torch.equal(weight.grad, expected))

    def test_a_host_without_memory_is_told_of_once(self):
        plain, _ = training.train(training.Mlp, None)
        said = io.StringIO()
        with mock.patch.object(host.PlainHost, "out", side_effect=RuntimeError("no pinned memory\nat all")), \
                contextlib.redirect_stderr(said):
            left, session = training.train(training.Mlp, "activations:50%")
        self.assertTrue(training.same(plain, left))
        self.assertEqual(session.saves.moved, 0)
        self.assertEqual(said.getvalue().count("no pinned memory"), 1, said.getvalue())
        self.assertNotIn("at all", said.getvalue())

    def test_a_graph_that_is_dropped_before_backward(self):
        """As that of a generator whose samples a discriminator learns from: its saves are gone then, so they are no part of the peak."""
        def dropping(count):
            def step(model, batch, _number):
                loss = model(batch)
                for _ in range(count):
                    model(batch)
                loss.backward()
                return loss

            return step

        budgets = []
        for count in (0, 3):
            left, session = train(training.Transformer, "activations:50%", step=dropping(count))
            plain, _ = train(training.Transformer, None, step=dropping(count))
            self.assertTrue(training.same(plain, left))
            budgets.append(session.budget)
        self.assertLess(budgets[1], budgets[0] * 2.1)  # two graphs at once

    def test_the_host_hears_of_each_storage(self):
        """One that is moved goes when two more are saved, kept ones too."""
        said = []
        with mock.patch.object(host.PlainHost, "passed", lambda _host: said.append("kept")):
            _, session = train(training.Mlp, "activations:50%", steps=1, chooser=training.by_dice(0, (KEEP, MOVE)))
            moved = session.saves.moved
            count = len(said)
            _, kept = train(training.Mlp, "activations:50%", steps=1, chooser=lambda *_: KEEP)
        self.assertGreater(count, 0)
        self.assertGreater(moved, 0)
        self.assertGreater(len(said) - count, count)
        self.assertEqual(kept.saves.moved, 0)

    def test_nothing_leaks(self):
        def tensors():
            gc.collect()
            return sum(1 for one in gc.get_objects() if issubclass(type(one), torch.Tensor))

        counts = []

        def step(model, batch, number):
            loss = model(batch)
            loss.backward()
            if number in (20, 199):
                counts.append(tensors())
            return loss

        plain, _ = train(training.Mlp, None, steps=200, step=step)
        left, session = train(training.Mlp, "activations:50%", steps=200, step=step)
        self.assertEqual(counts[1] - counts[0], counts[3] - counts[2])  # train() itself keeps gradients
        self.assertLessEqual(len(session._kinds.all), 2)
        self.assertLess(len(session.saves._lasting), 20)
        self.assertTrue(training.same(plain, left))

    def test_a_graph_without_backward_gives_everything_back(self):
        with everything_moved() as session:
            weight = torch.randn(1000, requires_grad=True)
            for _ in range(3):
                loss = (weight * 2).exp().sum()
                self.assertGreater(len(session.saves._passing.live), 0)
                del loss
                self.assertEqual(len(session.saves._passing.live), 0)


class ProgramsTest(unittest.TestCase):
    """Each case runs without a budget, with everything moved, by dice, and by plans."""

    def equal(self, kind, step=None, steps=6, moves=True, **options):
        plain, _ = train(kind, None, steps=steps, step=step, **options)
        for within, chooser in (("activations:50%", moving), ("activations:50%", training.by_dice(4, (KEEP, MOVE))),
                                ("activations:60%", None), ("60%", None)):
            left, session = train(kind, within, steps=steps, step=step, chooser=chooser, **options)
            self.assertTrue(training.same(plain, left), (within, chooser))
            if moves:
                self.assertGreater(session.saves.moved, 0)
        return session

    def test_other_lengths_in_each_step(self):
        def step(model, batch, number):
            loss = model(batch[:, :(24, 7, 16, 24, 30, 12, 24, 9)[number]])
            loss.backward()
            return loss

        class Longer(training.Transformer):
            @staticmethod
            def batch():
                return torch.randint(0, 64, (4, 30))

        self.equal(Longer, step, steps=8)

    def test_a_layer_that_is_left_out(self):
        class Skipping(training.Mlp):
            def forward(self, x):
                for number, layer in enumerate(self.layers):
                    if number != 11 or x.sum() > 0:
                        x = layer(x) if x.shape[-1] == 64 or number in (0,) else x
                return x.pow(2).mean()

        self.equal(Skipping)

    def test_an_exception_in_forward(self):
        def step(model, batch, number):
            if number % 2 == 1:
                try:
                    hidden = model.first(batch)
                    raise ValueError(hidden.shape)
                except ValueError:
                    pass
            loss = model(batch)
            loss.backward()
            return loss

        self.equal(training.Conv, step)

    def test_evaluation_between(self):
        def step(model, batch, number):
            loss = model(batch)
            model.eval()
            if number % 2 == 0:
                with torch.no_grad():
                    model(batch * 2)
            else:
                model(batch * 2)  # with a graph that has no backward
            model.train()
            loss.backward()
            return loss

        self.equal(training.Conv, step)

    def test_two_forwards_before_one_backward(self):
        def step(model, batch, number):
            first = model(batch)
            second = model(batch.flip(0))
            loss = first + 2 * second if number % 2 == 0 else first
            loss.backward()
            return loss

        self.equal(training.Conv, step)

    def test_accumulation(self):
        def step(model, batch, number):
            losses = [model(part) / 4 for part in batch[:32].chunk(2)]
            for loss in losses:
                loss.backward()
            return losses[0] + sum(model(part).backward() or 0 for part in batch[32:].chunk(2))

        self.equal(training.Mlp, step)

    def test_retain_graph(self):
        def step(model, batch, number):
            loss = model(batch)
            loss.backward(retain_graph=True)
            torch.autograd.grad(loss, list(model.parameters())[:2], retain_graph=True)
            loss.backward()
            return loss

        self.equal(training.Conv, step)

    def test_checkpoints_of_the_program(self):
        for reentrant in (False, True):
            def step(model, batch, number, reentrant=reentrant):
                batch.requires_grad_()
                x = checkpoint(model.layers[:5], batch, use_reentrant=reentrant)
                x = checkpoint(model.layers[5:10], x, use_reentrant=reentrant)
                loss = model.layers[10:](x).pow(2).mean()
                loss.backward()
                return loss

            with self.subTest(reentrant=reentrant):
                self.equal(training.Mlp, step)

    def test_hooks_of_the_program(self):
        def step(model, batch, number):
            with torch.autograd.graph.saved_tensors_hooks(lambda t: t.detach().clone(), lambda t: t):
                x = model.layers[:6](batch)
            with torch.autograd.graph.save_on_cpu():
                x = model.layers[6:9](x)
            loss = model.layers[9:](x).pow(2).mean()
            loss.backward()
            return loss

        self.equal(training.Mlp, step)

    def test_a_function_of_the_program(self):
        class Square(torch.autograd.Function):
            @staticmethod
            def forward(context, x):
                result = x * x
                context.save_for_backward(x, result)
                context.own = x.detach()
                return result

            @staticmethod
            def backward(context, gradient):
                x, result = context.saved_tensors
                return gradient * 2 * x + 0 * result.sum() * context.own

        class Squares(training.Mlp):
            def forward(self, x):
                return Square.apply(self.layers(x)).mean() + Square.apply(self.layers[0](x)).mean()

        self.equal(Squares)

    def test_second_derivatives(self):
        def step(model, batch, number):
            batch.requires_grad_()
            loss = model(batch)
            gradient, = torch.autograd.grad(loss, batch, create_graph=True)
            loss = loss + gradient.pow(2).sum()
            loss.backward()
            return loss

        class Smooth(training.Mlp):
            def forward(self, x):
                return torch.tanh(self.layers[0](x) * self.layers[0](x)).exp().mean()

        self.equal(Smooth, step)

    def test_torch_func(self):
        """Its transforms refuse to run below saved-tensor hooks."""
        def step(model, batch, number):
            values = dict(model.named_parameters())
            gradients = torch.func.grad(lambda p: torch.func.functional_call(model.eval(), p, (batch,)))(values)
            jacobian = torch.func.jacrev(lambda x: model.layers[0](x).sum(0))(batch[:2])
            model.train()
            loss = model(batch) + 0 * sum(g.sum() for g in gradients.values()) + 0 * jacobian.sum()
            loss.backward()
            return loss

        self.equal(training.Mlp, step)

    def test_vmap(self):
        def step(model, batch, number):
            loss = torch.vmap(lambda row: model.layers[0](row).tanh().sum())(batch).mean() + model(batch)
            loss.backward()
            return loss

        self.equal(training.Mlp, step)

    def test_a_program_that_looks_at_saved_tensors(self):
        def step(model, batch, number):
            value = model.layers[0](batch).exp()
            loss = value.mean() + model(batch)
            node = value.grad_fn
            seen = node._saved_result
            del value
            loss = loss + 0 * seen.sum()
            loss.backward()
            return loss

        self.equal(training.Mlp, step)

    def test_subclasses_sparse_and_complex_tensors(self):
        class Own(torch.Tensor):
            pass

        def step(model, batch, number):
            own = batch.as_subclass(Own)
            wave = torch.fft.fft(model.layers[0](batch))
            loss = (wave * wave.conj()).real.mean() + model(own).as_subclass(torch.Tensor) + wave.conj().imag.exp().mean()
            sparse = torch.eye(64).to_sparse()
            loss = loss + torch.sparse.mm(sparse, model.layers[0](batch)).pow(2).mean()
            loss.backward()
            return loss

        self.equal(training.Mlp, step)

    def test_a_backward_in_another_thread(self):
        def step(model, batch, number):
            loss = model(batch)
            thread = threading.Thread(target=loss.backward)
            thread.start()
            thread.join()
            return loss

        self.equal(training.Conv, step)

    def test_training_in_another_thread(self):
        """Hooks belong to a thread: it has them after its first optimizer step."""
        plain, _ = train(training.Mlp, None)
        with budget("activations:50%") as session:
            left = []
            thread = threading.Thread(target=lambda: left.append(train(training.Mlp, None)[0]))
            thread.start()
            thread.join()
        self.assertTrue(training.same(plain, left[0]))
        self.assertGreater(session.moved, 0)

    def test_data_loaders_and_shared_batches(self):
        batches = list(DataLoader(torch.randn(64 * 3, 32), batch_size=64))

        def step(model, batch, number):
            loss = model(batches[number % 3])
            loss.backward()
            return loss

        self.equal(training.Mlp, step)


if __name__ == "__main__":
    unittest.main()
