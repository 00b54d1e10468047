"""The recorded graph of a step: run again it gives the same bits, its live peak is the allocator's, `hotpack plan` reads it."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
from pathlib import Path

import hotpack
import torch
from hotpack import _marks
from hotpack._graph import calls, recorder, session
from hotpack._graph.recorder import Observer
from torch._C import _len_torch_dispatch_stack
from torch.utils._python_dispatch import TorchDispatchMode

BUILD = Path(os.environ["HOTPACK_BUILD"])
HOTPACK = str(BUILD / "bin" / "hotpack")
FUNCTIONAL = torch.nn.functional


class Contents(Observer):
    """Keeps what each storage held before the step, what each operator returned and changed, and the generator's states."""

    def __init__(self):
        self.recorder = None
        self.given = {}    # value: a copy of its storage
        self.states = {}   # id(operator): the generator's state before it
        self.results = {}  # id(operator): copies of what it returned, and of its arguments afterwards
        self.arguments = {}

    def before(self, operator, tensors):
        for tensor in tensors:
            value = self.recorder.values.find(tensor)
            if value is not None and value.maker is None and value.number not in self.given:
                self.given[value.number] = tensor.untyped_storage().clone()
        if operator.traits.random:
            self.states[id(operator)] = torch.get_rng_state()
        self.arguments[id(operator)] = tensors

    def after(self, operator, results):
        arguments = self.arguments.pop(id(operator))
        self.results[id(operator)] = [[tensor.detach().clone() for tensor in tensors] for tensors in (results, arguments)]


def flat(nested):
    if isinstance(nested, (list, tuple)):
        return [item for part in nested for item in flat(part)]
    return [nested] if isinstance(nested, torch.Tensor) else []


def same_bits(one, other):
    return one.dtype == other.dtype and one.size() == other.size() and torch.equal(
        one.contiguous().reshape(-1).view(torch.uint8), other.contiguous().reshape(-1).view(torch.uint8))


def same_storage(one, other):
    return torch.equal(*(torch.empty(0, dtype=torch.uint8).set_(storage) for storage in (one, other)))


class Replay:
    """Runs the operators of a document again. contents: by storage's name, before the step."""

    def __init__(self, document, contents):
        self.storages = dict(contents)
        self.document = document

    def tensor(self, number):
        name, dtype, size, stride, offset = self.document["tensors"][number]
        return torch.empty(0, dtype=getattr(torch, dtype)).set_(self.storages[name], offset, size, stride)

    def run(self, operator):
        """What the operator returns, and its arguments afterwards."""
        call = operator["call"]
        space, name, overload = call["op"].split(".")
        function = getattr(getattr(getattr(torch.ops, space), name), overload)
        arguments = calls.decode(torch, call["args"], self.tensor, "cpu")
        keywords = {key: calls.decode(torch, item, self.tensor, "cpu") for key, item in call.get("kwargs", {}).items()}
        with torch.set_grad_enabled(call.get("grad", False)), torch._C._AutoDispatchBelowAutograd():  # some kernels ask
            results = flat([function(*arguments, **keywords)])
        numbers = [item["t"] for item in references(call["results"])]
        assert len(results) == len(numbers), call
        for result, number in zip(results, numbers):
            name, dtype, size, stride, offset = self.document["tensors"][number]
            assert (str(result.dtype), list(result.size()), list(result.stride()), result.storage_offset()) == (
                "torch." + dtype, size, stride, offset), call
            self.storages[name] = result.untyped_storage()
        return results, flat([arguments, list(keywords.values())])


def references(encoded):
    if isinstance(encoded, list):
        return [item for part in encoded for item in references(part)]
    return [encoded] if isinstance(encoded, dict) and "t" in encoded else []


def mlp():
    model = torch.nn.Sequential(torch.nn.Linear(20, 32), torch.nn.ReLU(), torch.nn.Linear(32, 5))
    return model, torch.optim.SGD(model.parameters(), 0.1, momentum=0.9), lambda: FUNCTIONAL.cross_entropy(
        model(torch.randn(8, 20)), torch.randint(0, 5, (8,)))


def convnet():
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU(inplace=True), torch.nn.MaxPool2d(2),
                                torch.nn.Flatten(), torch.nn.Linear(8 * 7 * 7, 10))
    return model, torch.optim.SGD(model.parameters(), 0.1, foreach=False), lambda: model(torch.randn(4, 3, 16, 16)).square().mean()


def transformer():
    model = torch.nn.TransformerEncoderLayer(32, 4, 64, dropout=0.1, batch_first=True)
    return model, torch.optim.Adam(model.parameters(), 1e-3), lambda: model(torch.randn(2, 10, 32)).square().mean()


def lstm():
    model = torch.nn.LSTM(8, 16, num_layers=2, dropout=0.2)
    return model, torch.optim.RMSprop(model.parameters(), 1e-3), lambda: model(torch.randn(6, 2, 8))[0].square().mean()


class Tagger(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.table = torch.nn.Embedding(50, 16)
        self.norm = torch.nn.LayerNorm(16)
        self.head = torch.nn.Linear(16, 50)

    def forward(self, words):
        return self.head(self.norm(self.table(words)))


def embedding():
    model = Tagger()
    return model, torch.optim.AdamW(model.parameters(), 1e-3), lambda: FUNCTIONAL.cross_entropy(
        model(torch.randint(0, 50, (3, 7))).flatten(0, 1), torch.randint(0, 50, (21,)))


def train(make, steps=4):
    torch.manual_seed(0)
    model, optimizer, loss = make()
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        result = loss()
        result.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(result.item())
    return losses, [parameter.detach().clone() for parameter in model.parameters()]


class ReplayTest(unittest.TestCase):
    def record(self, make):
        """The document, the session, what was kept; training is the same as without."""
        plain = train(make)
        contents = Contents()
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "step.json")
            recording = session.start(path, 3, None, contents)
            begin = recording._begin

            def begin_and_tell():
                begin()
                contents.recorder = recording._recorder

            recording._begin = begin_and_tell
            recorded = train(make)
            recording.close()
            self.assertEqual(recording.failed, None)
            document = json.loads(path.read_text())
        self.assertEqual(plain[0], recorded[0])
        for one, other in zip(plain[1], recorded[1]):
            self.assertTrue(torch.equal(one, other))
        return document, contents

    def check(self, make):
        document, contents = self.record(make)
        names = [storage["name"] for storage in document["storages"]]
        replay = Replay(document, {names[value]: storage.clone() for value, storage in contents.given.items()})
        compared = 0
        operators = iter(contents.recorder.operators)
        for entry in document["operators"]:
            operator = next(operators)
            self.assertEqual(operator.name, entry["name"])
            if entry["name"] == "input":
                continue
            self.assertIn("call", entry)
            if id(operator) in contents.states:
                self.assertTrue(entry["random"])
                torch.set_rng_state(contents.states[id(operator)])
            given = {self.name_of(document, item) for item in references([entry["call"]["args"], *entry["call"].get("kwargs", {}).values()])}
            before = {name: replay.storages[name].clone() for name in given}
            results, arguments = replay.run(entry)
            writes = {name for key in ("writes", "updates", "statistics") for name in entry.get(key, [])}
            self.assertLessEqual({name for name in given if not same_storage(before[name], replay.storages[name])}, writes, entry)
            if not entry["name"].endswith("_like"):
                self.assertLessEqual(given, writes | set(entry.get("reads", [])), entry)
            if "empty" in entry["name"]:
                continue
            for again, kept in zip(results + arguments, sum(contents.results[id(operator)], [])):
                # oneDNN leaves gaps of its workspace unset.
                opaque = entry["name"].startswith("aten::mkldnn_rnn_layer") and kept.dtype == torch.uint8
                self.assertTrue(opaque or same_bits(again, kept), entry)
                compared += 1
        self.assertGreater(compared, 20)
        temporary = [storage for storage in document["storages"] if storage["kind"] == "temporary"]
        self.assertTrue(all(storage["held"] for storage in temporary), temporary)
        self.assertLessEqual(sum(storage["released"] is None for storage in temporary), 1)  # the loss
        peak = document["peak"]
        for parts in (peak["by_kind"].values(), [row["bytes"] for row in peak["by_module"]], [row["bytes"] for row in peak["by_line"]]):
            self.assertEqual(sum(parts), peak["bytes"])
        self.assertEqual({operator["phase"] for operator in document["operators"]}, {"forward", "backward", "update"})
        return document

    @staticmethod
    def name_of(document, reference):
        return document["tensors"][reference["t"]][0]

    def test_mlp(self):
        document = self.check(mlp)
        kinds = {storage["name"]: storage["kind"] for storage in document["storages"]}
        self.assertEqual(kinds["0.weight"], "parameter")
        self.assertEqual(kinds["0.weight.grad"], "gradient")
        self.assertEqual(kinds["0.weight.momentum_buffer"], "optimizer_state")

    def test_convnet(self):
        document = self.check(convnet)
        changed = {name for operator in document["operators"] for name in operator.get("statistics", [])}
        self.assertEqual(changed, {"1.running_mean", "1.running_var"})

    def test_transformer(self):
        self.check(transformer)

    def test_lstm(self):
        self.check(lstm)

    def test_embedding(self):
        self.check(embedding)


SIMULATED = """
import sys, torch
import hotpack
torch.manual_seed(0)
if sys.argv[1] == "mlp":
    model = torch.nn.Sequential(*[layer for _ in range(4) for layer in (torch.nn.Linear(256, 256), torch.nn.GELU())]).cuda()
    data = lambda: torch.randn(8192, 256)
else:
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 16, 3), torch.nn.BatchNorm2d(16), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
                                torch.nn.Flatten(), torch.nn.Linear(16 * 15 * 15, 10)).cuda()
    data = lambda: torch.randn(8, 3, 32, 32)
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(3):
    optimizer.zero_grad()
    out = model(data().cuda())
    out.square().mean().backward()
    optimizer.step()
print(hotpack.stats()["live_peak"])
"""


class CommandTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.path = self.folder / "step.json"

    def record(self, script, *arguments, options=("--simulate",), code=0):
        program = self.folder / "train.py"
        program.write_text(script)
        environment = {name: value for name, value in os.environ.items() if name not in ("HOTPACK_HOME", "PYTHONPATH")}
        done = subprocess.run([HOTPACK, "record", *options, "--graph", str(self.path), "--", sys.executable, str(program), *arguments],
                              env=environment, capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertEqual(list(self.folder.glob("*.partial*")), [])
        return done

    def plan(self, *options):
        done = subprocess.run([HOTPACK, "plan", str(self.path), *options], capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_the_peak_is_the_allocators(self):
        for model in ("mlp", "convnet"):
            done = self.record(SIMULATED, model, options=("--simulate", "--force"))
            document = json.loads(self.path.read_text())
            self.assertEqual(document["allocator"], "hotpack")
            peak = document["peak"]["bytes"]
            live_peak = int(done.stdout)
            self.assertLessEqual(abs(max(step["peak"] for step in document["steps"]) - live_peak), live_peak / 1000)
            self.assertEqual([step["step"] for step in document["steps"]], [1, 2, 3])
            self.assertEqual(document["steps"][2]["peak"], peak)
            self.assertEqual(sum(document["peak"]["by_kind"].values()), peak)
            self.assertEqual(json.loads(self.plan("--json"))["program_peak"], peak)
            self.assertIn("Next: hotpack plan", done.stderr)
            if model == "mlp":
                text = self.plan("--budget", str(peak * 9 // 10), "--time-limit", "300ms")
                self.assertRegex(text, r"\nagain .*aten::gelu \(\d, train.py:15\), 1 run")

    def test_with_a_recording(self):
        trace = self.folder / "job.trace"
        done = self.record(SIMULATED, "mlp", options=("--simulate", "--out", str(trace)))
        self.assertTrue(trace.exists())
        self.assertIn("Next: hotpack show", done.stderr)
        self.assertEqual(json.loads(self.path.read_text())["steps"][2]["peak"], json.loads(self.plan("--json"))["program_peak"])

    def test_a_step_on_the_cpu(self):
        script = SIMULATED.replace("8192", "64").replace(".cuda()", "").replace('print(hotpack.stats()["live_peak"])', "")
        self.record(script, "mlp", options=())
        document = json.loads(self.path.read_text())
        self.assertEqual((document["device"], document["allocator"]), ("cpu", None))
        self.assertEqual(json.loads(self.plan("--json"))["program_peak"], document["peak"]["bytes"])

    def test_no_step_and_no_graph(self):
        done = self.record("print(1)", code=2)
        self.assertEqual(done.stderr, "hotpack record: no graph: no process of PyTorch ended step 3 (an optimizer's step, or "
                         "hotpack.step())\n")
        done = self.record(SIMULATED.replace("out.square()", "if _ == 2: out[10000]\n    out.square()"), "mlp", code=1)
        self.assertIn("the program ended after 2 steps", done.stderr)
        self.assertFalse(self.path.exists())

    def test_wrong_use(self):
        with self.assertRaisesRegex(hotpack.Error, "step 1: the first step makes the optimizer's state"):
            hotpack.record_graph(self.path, step=1)
        with self.assertRaisesRegex(hotpack.Error, "no GPU 'H1' is known; there are H100 SXM"):
            hotpack.record_graph(self.path, gpu="H1")
        with self.assertRaisesRegex(hotpack.Error, "cannot be written"):
            hotpack.record_graph(self.folder / "nowhere" / "step.json")


class FaultTest(unittest.TestCase):
    def test_a_fault_of_the_recorder_leaves_the_program_alone(self):
        plain = train(mlp)
        with tempfile.TemporaryDirectory() as folder:
            recording = session.start(Path(folder, "step.json"), 3, None)
            for name in ("_uses", "_count"):
                with unittest.mock.patch.object(recorder.Recorder, name, side_effect=KeyError("broken")):
                    self.assertEqual(train(mlp)[0], plain[0])
                self.assertEqual(recording.failed, "KeyError: 'broken'")
                self.assertEqual(os.listdir(folder), [])
                recording = session.start(Path(folder, "step.json"), 3, None)
            recording.close()


class OtherMode(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


class SavesTest(unittest.TestCase):
    """What the hooks must not change."""

    def observed(self, step):
        """Runs step() as the third step of a session."""
        with tempfile.TemporaryDirectory() as folder:
            recording = session.start(Path(folder, "step.json"), 2, None)
            try:
                hotpack.step()
                return step()
            finally:
                recording.close()
                _marks._marked_by_hand = False

    def test_a_change_of_a_saved_tensor_is_found(self):
        def step():
            a = torch.ones(3, requires_grad=True)
            b = a * 2
            c = b * b
            b.add_(1)
            with self.assertRaisesRegex(RuntimeError, "modified by an inplace operation"):
                c.sum().backward()

        self.observed(step)

    def test_what_the_program_names_is_held(self):
        weight = torch.ones(256, 256, requires_grad=True)

        def step():
            named = (weight * 2).relu()
            (named.sigmoid().tanh().sum() + named.exp().sum()).backward()
            weight.grad = None

        with tempfile.TemporaryDirectory() as folder:
            recording = session.start(Path(folder, "step.json"), 2, None)
            hotpack.step()
            step()
            hotpack.step()
            recording.close()
            _marks._marked_by_hand = False
            document = json.loads(Path(folder, "step.json").read_text())
        held = {storage["name"].split(".")[0]: storage.get("held", False) for storage in document["storages"] if storage["kind"] == "saved"}
        self.assertEqual(held, {"relu": True, "sigmoid": False, "tanh": False, "exp": False})
        saves = {storage["name"].split(".")[0]: storage["saved"] for storage in document["storages"] if storage["kind"] == "saved"}
        operators = document["operators"]
        self.assertEqual([operators[save["by"]]["name"] for save in saves["sigmoid"]], ["aten::sigmoid"])
        self.assertEqual(saves["tanh"][0]["node"], "TanhBackward0")
        self.assertEqual([operators[number]["name"] for number in saves["tanh"][0]["unpacked"]], ["aten::tanh_backward"])

    def test_modes_and_hooks_above_the_recorders(self):
        with tempfile.TemporaryDirectory() as folder:
            recording = session.start(Path(folder, "step.json"), 2, None)
            hotpack.step()
            with torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor, lambda tensor: tensor), OtherMode():
                hotpack.step()
                self.assertEqual(_len_torch_dispatch_stack(), 2)
            hotpack.step()
            self.assertEqual(_len_torch_dispatch_stack(), 0)
            self.assertIsNone(torch._C._autograd._top_saved_tensors_default_hooks(False))
            recording.close()
            _marks._marked_by_hand = False

    def test_double_backward_and_transforms(self):
        def step():
            a = torch.ones(3, requires_grad=True)
            first, = torch.autograd.grad((a ** 3).sum(), a, create_graph=True)
            second, = torch.autograd.grad(first.sum(), a)
            return second, torch.func.grad(lambda x: (x ** 3).sum())(torch.ones(3))

        second, transformed = self.observed(step)
        self.assertEqual(second.tolist(), [6, 6, 6])
        self.assertEqual(transformed.tolist(), [3, 3, 3])

    def test_the_programs_own_hooks_stay(self):
        seen = []

        def pack(tensor):
            seen.append(tensor.shape)
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            self.observed(lambda: (torch.ones(3, requires_grad=True) ** 2).sum().backward())
        self.assertEqual(len(seen), 1)


if __name__ == "__main__":
    unittest.main()
