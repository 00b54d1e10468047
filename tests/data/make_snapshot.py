#!/usr/bin/env python3
"""Records a memory snapshot of PyTorch's caching allocator while a small perceptron trains. Needs PyTorch.

    make_snapshot.py FILE [--steps N] [--entries N] [--strip] [--streams]

--entries: the length of the history, which is a ring: older entries are lost. --strip: without the call stacks. --streams:
the input is made on a stream of its own and handed over with record_stream. Prints what is in it, as JSON.

mlp-torch.pickle of this folder: make_snapshot.py mlp-torch.pickle --entries 400 --strip --streams, with PyTorch 2.15.0 on
the simulated device (simgpu/), whose libraries are preloaded: memory is real, arithmetic is not done.
"""

import argparse
import json
import pickle
import sys

import torch


def train(steps: int, streams: bool) -> tuple:
    """Returns what stays live."""
    device = torch.device("cuda")
    sizes = [64, 128, 64, 10]
    layers = [layer for a, b in zip(sizes, sizes[1:]) for layer in (torch.nn.Linear(a, b), torch.nn.ReLU())]
    model = torch.nn.Sequential(*layers).to(device)
    optimizer = torch.optim.Adam(model.parameters())
    side = torch.cuda.Stream() if streams else torch.cuda.current_stream()
    for _ in range(steps):
        with torch.cuda.stream(side):
            x = torch.zeros(32, 64, device=device)
        x.record_stream(torch.cuda.current_stream())
        loss = model(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model, optimizer


def strip(snapshot: dict) -> None:
    for segment in snapshot["segments"]:
        segment["frames"] = []
        for block in segment["blocks"]:
            block["frames"] = []
    for history in snapshot["device_traces"]:
        for entry in history:
            entry["frames"] = []


def facts(snapshot: dict) -> dict:
    """What an import has to find, counted from the dictionary alone."""
    history = snapshot["device_traces"][0]
    of = {action: [e for e in history if e["action"] == action] for action in ("alloc", "free_requested")}
    live, before = set(), 0
    for entry in history:
        if entry["action"] == "alloc":
            live.add(entry["addr"])
        elif entry["action"] == "free_requested":
            before += entry["addr"] not in live
            live.discard(entry["addr"])
    blocks = [b for s in snapshot["segments"] for b in s["blocks"] if b["state"] == "active_allocated"]
    before += sum(b["address"] not in live for b in blocks)
    return {
        "entries": len(history),
        "allocations": len(of["alloc"]),
        "releases": len(of["free_requested"]),
        "live_before": before,
        "not_released": len(blocks),
        "streams": len({e["stream"] for e in of["alloc"]}),
        "bytes": sum(e["size"] for e in of["alloc"]),
    }


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("file")
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--entries", type=int, default=100000)
    parser.add_argument("--strip", action="store_true")
    parser.add_argument("--streams", action="store_true")
    options = parser.parse_args()
    torch.cuda.memory._record_memory_history(enabled="all", max_entries=options.entries)
    kept = train(options.steps, options.streams)
    snapshot = torch.cuda.memory._snapshot()
    if options.strip:
        strip(snapshot)
        with open(options.file, "wb") as out:
            pickle.dump(snapshot, out)
    else:
        torch.cuda.memory._dump_snapshot(options.file)
        with open(options.file, "rb") as file:
            snapshot = pickle.load(file)
    print(json.dumps(facts(snapshot)))
    del kept
    return 0


if __name__ == "__main__":
    sys.exit(main())
