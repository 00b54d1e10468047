"""Data-parallel training on several devices, one process each, under hotpack. Each rank has an arena and a plan of its
own.

    HOTPACK_PLAN=job.%r.plan torchrun --nproc-per-node 2 torchrun_train.py
    HOTPACK_PLAN=job.%r.plan torchrun --nproc-per-node 2 torchrun_train.py --simulate    # without a GPU

The second start begins with the plans that the first one left (%r stands for the rank): the last line says from which
iteration on a rank's requests were served by the plan, 0 or 1 then. Without HOTPACK_PLAN each run makes its own plan.

NCCL cannot run on the simulated device. There gradients are averaged by gloo, on copies in host memory.
"""

import argparse
import os
import sys
import time

import hotpack

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--simulate", action="store_true", help="on the simulated device")
parser.add_argument("--steps", type=int, default=12)
options = parser.parse_args()
rank, local, world = (int(os.environ.get(name, default))
                      for name, default in (("RANK", 0), ("LOCAL_RANK", 0), ("WORLD_SIZE", 1)))
if options.simulate:
    hotpack.simulate(devices=int(os.environ.get("LOCAL_WORLD_SIZE", 1)))  # starts this rank again, with its environment
hotpack.enable()

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from torch import nn  # noqa: E402

WIDTH, LAYERS, ROWS = 512, 8, 64


def average_gradients(model: nn.Module) -> None:
    """Every rank's gradients become the mean over the ranks."""
    for parameter in model.parameters():
        gradient = parameter.grad
        if dist.get_backend() == "nccl":
            dist.all_reduce(gradient, op=dist.ReduceOp.AVG)
            continue
        copy = gradient.cpu()
        dist.all_reduce(copy)
        gradient.copy_(copy.div_(world))


def step(model: nn.Module, optimizer: torch.optim.Optimizer, rows: torch.Tensor, labels: torch.Tensor) -> None:
    nn.functional.cross_entropy(model(rows), labels).backward()
    average_gradients(model)
    optimizer.step()
    optimizer.zero_grad()


def main() -> None:
    torch.cuda.set_device(local)
    device = torch.device("cuda", local)
    dist.init_process_group("gloo" if hotpack.simulated() else "nccl")
    torch.manual_seed(0)  # the same weights on every rank
    layers = [layer for _ in range(LAYERS) for layer in (nn.Linear(WIDTH, WIDTH), nn.GELU())]
    model = nn.Sequential(*layers, nn.Linear(WIDTH, 10)).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    torch.manual_seed(1 + rank)  # but batches of its own
    for _ in range(options.steps):
        step(model, optimizer, torch.randn(ROWS, WIDTH).to(device), torch.randint(10, (ROWS,)).to(device))
    torch.cuda.synchronize()
    time.sleep(1)  # PyTorch's autograd thread gives up the last graph: once the interpreter shuts down it would abort
    figures = hotpack.stats()
    dist.destroy_process_group()
    sys.stdout.write(f"rank {rank}: {figures['iterations']} iterations, by the plan from iteration "
                     f"{figures['steady_iteration']} on ({figures['planned']} of {figures['requests']} requests), "
                     f"held at most {figures['reserved_peak']} bytes\n")


main()
