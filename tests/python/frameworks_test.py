"""The examples of docs/pytorch.md, With your framework, on the simulated device: each one as it stands on the page.

One process imports the frameworks and forks for each example, since hotpack.enable() must come before the first use of
CUDA. An example is skipped, with the reason, where its framework is missing.
"""

import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

BUILD = Path(os.environ["HOTPACK_BUILD"])
HOTPACK = str(BUILD / "bin" / "hotpack")
PAGE = Path(__file__).resolve().parents[2] / "docs" / "pytorch.md"


def read_examples() -> dict[str, list[str]]:
    """The section's code blocks by the bold name before them."""
    section = PAGE.read_text().partition("\n## With your framework\n")[2].partition("\n## ")[0]
    found: dict[str, list[str]] = {}
    name = ""
    for bold, text in re.findall(r"^\*\*([^*]+)\*\*|^```\w*\n(.*?)^```$", section, re.MULTILINE | re.DOTALL):
        if bold:
            name = bold
            found[name] = []
        else:
            found[name].append(text)
    return found


# What the page calls the program's.
PROGRAM = """
import os
import torch

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        layers = [torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.GELU()) for _ in range(2)]
        self.layers = torch.nn.Sequential(*layers)

    def forward(self, batch):
        return self.layers(batch).square().mean()

local_rank = int(os.environ.get("LOCAL_RANK", "0"))
loader = torch.utils.data.DataLoader(torch.randn(40 * 16, 256), batch_size=16)
validation = torch.utils.data.DataLoader(torch.randn(3 * 64, 256), batch_size=64)
"""

# NCCL needs a real device: one process stands for a rank of four (hotpack/_ranks.py).
RANK = """
os.environ.update(HOTPACK_NEED_RANKS="4", RANK="0", LOCAL_RANK="0", WORLD_SIZE="4")
import hotpack._ranks
hotpack._ranks.start(torch)
"""

# What an example needs besides PROGRAM.
SETUP = {
    "Hugging Face Trainer": """
class Model(Model):
    def forward(self, x):
        return {"loss": super().forward(x)}
model = Model()
dataset = [{"x": row} for row in torch.randn(160, 256)]
""",
    "Accelerate": "model = Model()\noptimizer = torch.optim.AdamW(model.parameters())\n",
    "Lightning": """
import lightning
class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.model = Model()
    def training_step(self, batch):
        return self.model(batch)
    def validation_step(self, batch):
        self.model(batch)
    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters())
module = Module()
""",
    "DDP": RANK,
    "FSDP2": RANK,
    "torch.compile": 'os.environ["TORCHINDUCTOR_CACHE_DIR"] = os.getcwd()\n',
    "Jupyter": "class Shell:\n    def register_magic_function(self, *_):\n        pass\n",
}
STEPS = {"PyTorch loop": 40, "Gradient accumulation": 10, "Validation": 40, "Requests that never repeat": 40,
         "Hugging Face Trainer": 30, "Accelerate": 20, "Lightning": 160, "DDP": 40, "FSDP2": 40, "torch.compile": 40,
         "Jupyter": 40}
VALIDATED = ("Validation", "Hugging Face Trainer", "Lightning")  # batches of a validation may count as iterations
NEEDS = {"Hugging Face Trainer": "transformers.trainer", "Accelerate": "accelerate", "Lightning": "lightning"}

NCCL = """
import hotpack
hotpack.enable()
os.environ.update(RANK="0", WORLD_SIZE="1", LOCAL_RANK="0", MASTER_ADDR="127.0.0.1", MASTER_PORT="0")
from torch.distributed import distributed_c10d
refused = []
for name in ("nccl2", "nccl-lazy") if hasattr(distributed_c10d, "ProcessGroupNCCL2") else ():
    try:
        torch.distributed.init_process_group(name, store=torch.distributed.HashStore(), rank=0, world_size=1)
    except hotpack.Error as error:
        refused.append(str(error))
assert all('use "nccl"' in each for each in refused), refused
torch.distributed.init_process_group("nccl", store=torch.distributed.HashStore(), rank=0, world_size=1)
group = distributed_c10d._get_default_group()._get_backend(torch.device("cuda"))
assert type(group) is torch.distributed.ProcessGroupNCCL, type(group)
torch.distributed.destroy_process_group()
"""

CHOSEN = """
import hotpack
hotpack.enable()
from torch.distributed import distributed_c10d
assert "NCCL" not in distributed_c10d.Backend._plugins or not hasattr(distributed_c10d, "ProcessGroupNCCL2")
assert getattr(distributed_c10d, "ProcessGroupNCCL2", type) is getattr(torch.distributed, "ProcessGroupNCCL2", type)
"""

# Reads {name: [setup, example]}, and prints {name: figures, or only the status}. Its arguments are modules.
HARNESS = """
import gc, importlib, json, os, sys, tempfile, time, traceback
gc.disable()  # while modules are imported, whose objects stay
import torch
import hotpack
from torch.optim.optimizer import register_optimizer_step_post_hook
for name in sys.argv[1:]:
    importlib.import_module(name)
gc.freeze()
gc.enable()

def tried(setup, example):
    steps, marks = [], []
    mark = hotpack._marks.mark
    hotpack._marks.mark = lambda: (marks.append(1), mark())
    register_optimizer_step_post_hook(lambda *_: steps.append(1))
    names = {"__name__": "__main__"}
    exec(setup, names)
    assert not hotpack.enabled() and not torch.cuda.is_initialized()
    exec(compile(example, "example", "exec"), names)
    torch.cuda.synchronize()
    time.sleep(0.1)  # for PyTorch's autograd thread, which gives up the last graph
    return {**hotpack.stats(), "steps": len(steps), "marks": len(marks), "enabled": hotpack.enabled(),
            "seconds": time.process_time()}

answers = {}
for name, (setup, example) in json.load(sys.stdin).items():
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.dup2(2, 1)
            with tempfile.TemporaryDirectory() as folder:
                os.chdir(folder)
                told = json.dumps(tried(setup, example))
            os.write(writer, told.encode())
            status = 0
        except BaseException:
            print(name, file=sys.stderr)
            traceback.print_exc()
        sys.stderr.flush()
        os._exit(status)
    os.close(writer)
    with os.fdopen(reader) as file:
        told = file.read()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    answers[name] = {"status": status, **(json.loads(told) if told else {})}
print(json.dumps(answers))
"""

# A program that does not mention hotpack until its end, for the command. Gloo in the place of NCCL, and no DDP, whose
# import takes most of the time.
TRAIN = """
torch.cuda.set_device(local_rank)
torch.distributed.init_process_group("gloo")
model = Model().cuda()
optimizer = torch.optim.AdamW(model.parameters())
for batch in loader:
    model(batch.cuda()).backward()
    optimizer.step()
    optimizer.zero_grad()
torch.cuda.synchronize()
torch.distributed.destroy_process_group()
import hotpack, json, time
time.sleep(0.5)
print(json.dumps({**hotpack.stats(), "steps": 40, "marks": 39, "enabled": hotpack.enabled()}), flush=True)
"""


def installed(module: str) -> bool:
    return importlib.util.find_spec(module.partition(".")[0]) is not None


class FrameworksTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.examples = read_examples()
        unset = 'os.environ.pop("TORCH_DIST_USE_NCCL2", None)\n'
        chosen = 'os.environ["TORCH_DIST_USE_NCCL2"] = "1"\n'
        jobs = {"NCCL": (PROGRAM + unset, NCCL), "NCCL as chosen": (PROGRAM + chosen, CHOSEN)}
        for name, blocks in cls.examples.items():
            text = "".join(block for block in blocks if not block.startswith("hotpack run "))
            if name == "Jupyter":
                loop = cls.examples["PyTorch loop"][0].partition("hotpack.enable()\n")[2]
                text = re.sub(r"^%load_ext (\w+)$", r"import \1; \1.load_ipython_extension(Shell())", text) + loop
            if installed(NEEDS.get(name, "torch")):
                jobs[name] = (PROGRAM + SETUP.get(name, ""), text)
        modules = [module for module in NEEDS.values() if installed(module)]
        with tempfile.TemporaryDirectory() as folder:
            reports = Path(folder, "reports")
            environment = {**os.environ, "SIMGPU_REPORT_FILE": str(reports), "TORCHINDUCTOR_COMPILE_THREADS": "1"}
            done = subprocess.run([HOTPACK, "run", "--simulate", "-q", "--keep-caching", "--", sys.executable, "-c",
                                   HARNESS, *modules], input=json.dumps(jobs), env=environment, capture_output=True,
                                  text=True, timeout=500)
            cls.reports = reports.read_text() if reports.exists() else ""
        cls.said = done.stderr
        assert done.returncode == 0, done.stderr
        cls.answers = json.loads(done.stdout.splitlines()[-1])

    def served(self, name: str, figures: dict[str, int]) -> None:
        self.assertTrue(figures["enabled"])
        self.assertEqual(figures["steps"], STEPS[name])
        self.assertEqual(figures["marks"], figures["steps"] - 1, "the first step ends nothing")
        self.assertGreater(figures["planned"], figures["requests"] / 2)
        self.assertGreater(figures["planned_steady"], 0.95 * figures["requests_steady"])
        self.assertGreaterEqual(figures["iterations"], figures["marks"] - 1)
        if name not in VALIDATED:
            self.assertLessEqual(figures["iterations"], figures["marks"])

    def test_each_example(self):
        self.assertEqual(set(self.examples), set(STEPS), "an example without its number of steps, or none of the page")
        for name in self.examples:
            with self.subTest(name):
                if name not in self.answers:
                    self.skipTest(f"{NEEDS[name]} is not installed")
                self.assertEqual(self.answers[name]["status"], 0, self.said)
                self.served(name, self.answers[name])
        self.assertEqual(self.reports, "")

    def test_requests_that_are_kept_out_are_not_in_the_plan(self):
        figures = self.answers["Requests that never repeat"]
        self.assertLess(figures["planned_steady"], figures["requests_steady"])

    def test_nccl_is_the_backend_that_works_with_a_pluggable_allocator(self):
        self.assertEqual(self.answers["NCCL"]["status"], 0, self.said)

    def test_the_environments_choice_of_nccl_stays(self):
        self.assertEqual(self.answers["NCCL as chosen"]["status"], 0, self.said)

    def test_the_command(self):
        command, _ = self.examples["DDP"]
        folder_of_python = os.path.dirname(sys.executable)
        if not os.access(os.path.join(folder_of_python, "torchrun"), os.X_OK):
            self.skipTest("this Python has no torchrun")
        hotpack, run, *words = command.split()
        self.assertEqual((hotpack, run, words[-1]), ("hotpack", "run", "train.py"))
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "train.py").write_text(PROGRAM + TRAIN)
            path = folder_of_python + os.pathsep + os.environ["PATH"]
            done = subprocess.run([HOTPACK, "run", "--simulate", *words], cwd=folder, env={**os.environ, "PATH": path},
                                  capture_output=True, text=True, timeout=250)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("REPORT", done.stderr)
        self.served("DDP", json.loads(done.stdout.splitlines()[-1]))


if __name__ == "__main__":
    unittest.main()
