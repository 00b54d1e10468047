"""The models of bench/torch and the training loop, on the CPU. Needs PyTorch."""

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import torch

BENCH = Path(__file__).resolve().parents[2] / "bench" / "torch"
sys.path.insert(0, str(BENCH))
from loop import Loop  # noqa: E402
from models import TASKS, HostSource, llama, moe, parameter_count  # noqa: E402
from train import parse  # noqa: E402

torch.set_num_threads(1)  # as quick on small tensors, and quicker where others compute too

# Published counts; of seq2seq, llama and moe, which are our own, none is published.
PARAMETERS = {"alexnet": 61_100_840, "vgg16": 138_357_544, "resnet50": 25_557_032, "gpt2_small": 124_439_808,
              "gpt2_medium": 354_823_168, "vit": 86_567_656, "googlenet": 13_004_888, "inception_resnet": 55_843_464,
              "unet": 31_037_698}


def on_meta(name: str) -> torch.nn.Module:
    with torch.device("meta"):
        return TASKS[name].build(False)


def tiny_step(name: str, checkpoint: bool = False) -> tuple[float, dict[str, torch.Tensor]]:
    """The loss of one batch and the gradients, with the same weights and dropout every time."""
    task = TASKS[name]
    torch.manual_seed(3)
    model = task.build(True)
    model.checkpoint = checkpoint
    torch.manual_seed(4)
    loss = task.loss(model, task.draw(HostSource(5), task.tiny_batch, True))
    loss.backward()
    return loss.item(), {key: value.grad for key, value in model.named_parameters()}


class ModelsTest(unittest.TestCase):
    def test_parameter_counts_are_the_published_ones(self):
        for name, count in PARAMETERS.items():
            with self.subTest(name):
                self.assertEqual(parameter_count(on_meta(name)), count)

    def test_images_become_classes(self):
        for name, side in (("alexnet", 224), ("vgg16", 224), ("resnet50", 224), ("vit", 224), ("googlenet", 224),
                           ("inception_resnet", 299)):
            with self.subTest(name):
                model, images = on_meta(name), torch.empty(2, 3, side, side, device="meta")
                self.assertEqual(model.eval()(images).shape, (2, 1000))

    def test_auxiliary_classifiers_answer_in_training(self):
        answer, others = on_meta("googlenet").train()(torch.empty(2, 3, 224, 224, device="meta"))
        self.assertEqual([answer.shape] + [other.shape for other in others], [(2, 1000)] * 3)

    def test_unet_answers_each_pixel(self):
        self.assertEqual(on_meta("unet")(torch.empty(2, 3, 256, 256, device="meta")).shape, (2, 2, 256, 256))

    def test_decoders_answer_each_token(self):
        for name, length, vocabulary in (("gpt2_small", 1024, 50257), ("gpt2_medium", 1024, 50257), ("llama", 1024, 32000)):
            with self.subTest(name):
                tokens = torch.zeros(2, length, dtype=torch.int64, device="meta")
                self.assertEqual(on_meta(name)(tokens).shape, (2, length, vocabulary))

    def test_every_parameter_takes_part(self):
        for name in TASKS:
            with self.subTest(name):
                loss, gradients = tiny_step(name)
                self.assertTrue(torch.isfinite(torch.tensor(loss)))
                unused = {key for key, gradient in gradients.items() if gradient is None or not gradient.isfinite().all()}
                # Counting tokens is not differentiable, but an expert without a token is just not used.
                self.assertEqual({key for key in unused if ".experts." not in key}, set())

    def test_one_batch_can_be_learnt(self):
        for name, task in TASKS.items():
            with self.subTest(name):
                torch.manual_seed(3)
                model, batch = task.build(True), task.draw(HostSource(5), task.tiny_batch, True)
                optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
                losses = []
                for _ in range(15):
                    optimizer.zero_grad()
                    loss = task.loss(model, batch)
                    loss.backward()
                    optimizer.step()
                    losses.append(loss.item())
                self.assertLess(sum(losses[-3:]), sum(losses[:3]))

    def test_checkpoints_change_no_gradient(self):
        for name in TASKS:
            if name.startswith("seq2seq"):  # has none
                continue
            with self.subTest(name):
                loss, gradients = tiny_step(name)
                loss_again, gradients_again = tiny_step(name, checkpoint=True)
                self.assertEqual(loss, loss_again)
                for key, gradient in gradients.items():
                    if gradient is not None:
                        torch.testing.assert_close(gradient, gradients_again[key])

    def test_static_models_have_static_batches_and_others_have_not(self):
        for name, task in TASKS.items():
            with self.subTest(name):
                source = HostSource(1)
                batches = [task.draw(source, task.tiny_batch, True) for _ in range(12)]
                shapes = {tuple(part.shape if isinstance(part, torch.Tensor) else str(part) for part in batch)
                          for batch in batches}
                self.assertEqual(len(shapes) == 1, task.static)

    def test_batches_follow_from_the_seed(self):
        for name, task in TASKS.items():
            first, again, other = (task.draw(HostSource(seed), 4, True)[0] for seed in (1, 1, 2))
            self.assertTrue(torch.equal(first, again), name)
            self.assertFalse(first.shape == other.shape and torch.equal(first, other), name)

    def test_shares_add_up(self):
        source = HostSource(1)
        for total in (0, 1, 7, 4096):
            shares = source.shares(total, 8)
            self.assertEqual((sum(shares), len(shares)), (total, 8))
            self.assertGreaterEqual(min(shares), 0)

    def test_drawn_counts_route_as_counted_ones(self):
        torch.manual_seed(1)
        mixture = moe.Mixture(moe.TINY)
        x = torch.randn(32, moe.TINY.width)
        chosen = torch.topk(torch.softmax(mixture.router(x), -1), moe.TINY.chosen, -1).indices
        counts = [int((chosen == expert).sum()) for expert in range(moe.TINY.experts)]
        torch.testing.assert_close(mixture(x, counts), mixture(x, None))

    def test_rotary_products_depend_on_the_distance_alone(self):
        size = llama.TINY
        model = llama.Llama(size)
        query, key = torch.randn(size.width // size.heads), torch.randn(size.width // size.heads)
        turned = [[llama.rotate(vector, model.cosine[place], model.sine[place]) for place in range(size.length)]
                  for vector in (query, key)]
        torch.testing.assert_close(turned[0][5] @ turned[1][2], turned[0][12] @ turned[1][9])
        torch.testing.assert_close(turned[0][5].norm(), query.norm())


def train(*arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, str(BENCH / "train.py"), *arguments], capture_output=True, text=True, timeout=300)


def losses(model: str, *arguments: str) -> list[float]:
    options = parse([model, "--tiny", "--device", "cpu", *arguments])
    options.allocator = "default"
    loop = Loop(TASKS[model], options)
    loop.run()
    return loop.losses


class LoopTest(unittest.TestCase):
    def test_losses_follow_from_the_seed(self):
        first = losses("gpt2_small", "--steps", "4")
        self.assertEqual(len(first), 4)
        self.assertEqual(first, losses("gpt2_small", "--steps", "4"))
        self.assertNotEqual(first, losses("gpt2_small", "--steps", "4", "--seed", "2"))

    def test_an_evaluation_leaves_no_trace(self):  # ViT has no dropout, which would draw from the same generator
        self.assertEqual(losses("vit", "--steps", "4"), losses("vit", "--steps", "4", "--evaluate-every", "2"))

    def test_options_do_what_they_say(self):
        self.assertEqual(len(losses("vit", "--steps", "3", "--epochs", "2")), 6)
        plain = losses("vit", "--steps", "3", "--optimizer", "sgd")
        self.assertNotEqual(plain, losses("vit", "--steps", "3", "--optimizer", "adam"))
        self.assertNotEqual(plain, losses("vit", "--steps", "3", "--optimizer", "sgd", "--accumulate", "2"))
        self.assertNotEqual(plain, losses("vit", "--steps", "3", "--optimizer", "sgd", "--precision", "bf16"))

    def test_the_figures_are_written(self):
        with tempfile.TemporaryDirectory() as scratch:
            path = Path(scratch, "run.json")
            lines = Path(scratch, "losses")
            done = train("resnet50", "--tiny", "--device", "cpu", "--steps", "2", "--batch", "3", "--json", str(path),
                         "--losses", str(lines))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(float.fromhex(lines.read_text().split()[1]), json.loads(path.read_text())["figures"]["last_loss"])
            written = json.loads(path.read_text())
            self.assertEqual((written["settings"]["batch"], written["figures"]["steps"]), (3, 2))
            self.assertGreater(written["figures"]["step_ms"], 0)
            self.assertIn("steps: 2\n", done.stdout)

    def test_bad_use_gets_one_line(self):
        for arguments in (["resnet51"], ["resnet50", "--batch", "0"], ["resnet50", "--batch", "many"], [], ["vit", "--what"],
                          ["vit", "--optimizer", "lion"], ["vit", "--allocator", "preload"],
                          ["vit", "--device", "cpu", "--allocator", "hotpack"], ["vit", "--losses", "no/such/place"]):
            with self.subTest(arguments):
                done = train(*arguments)
                self.assertEqual(done.returncode, 2)
                self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
                self.assertTrue(done.stderr.startswith("train.py: "))
                self.assertEqual(done.stdout, "")


if __name__ == "__main__":
    unittest.main()
