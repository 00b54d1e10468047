#!/usr/bin/env python3
"""Draws the README's picture of a budget from two recordings of one program: its load without a budget and within one.

    hotpack run --simulate --trace plain.trace -- python bench/torch/train.py gpt2_medium --steps 6
    hotpack export plain.trace --format event-csv --out plain.csv
    hotpack run --simulate --budget 7.5GiB --trace budget.trace -- python bench/torch/train.py gpt2_medium --steps 6
    hotpack export budget.trace --format event-csv --out budget.csv
    docs/images/budget.py plain.csv budget.csv 7.5 8 docs/images/budget.svg

The numbers are GiB: the budget, and the device. The standard library is all it needs.
"""

import csv
import sys

from svg import ACCENT, BLUE, FAINT, INK, Frame, Picture

GIB = 1 << 30
STEPS = 6
WIDTH, STEP, HEIGHT, LEFT = 860, 118, 190, 62


def steps_of(path):
    """The load after each event in bytes, from mark to mark: a step's end is one, from the second step on."""
    load, sizes, steps = 0, {}, [[]]
    with open(path, newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["event"] == "mark":
                if row["id"] == "step":
                    steps.append([])
                continue
            if row["event"] == "alloc":
                sizes[row["id"]] = int(row["bytes"])
                load += sizes[row["id"]]
            else:
                load -= sizes.pop(row["id"])
            steps[-1].append(load)
    return steps[:STEPS - 1]


def columns_of(loads, count):
    """The lowest and the highest load of each of so many parts of a step: as much as a picture shows."""
    parts = [loads[number * len(loads) // count:(number + 1) * len(loads) // count] for number in range(count)]
    return [load for part in parts if part for load in (min(part), max(part))]


def draw(picture, steps, color, top, name):
    """Each step has the same width; the first two have no mark between them."""
    left = LEFT
    for number, step in enumerate(steps):
        width = STEP if number else 2 * STEP
        loads = columns_of(step, width)
        frame = Frame(picture, left, 44, width, HEIGHT, 0, max(len(loads), 1), top)
        left += width
        picture.path([(frame.x(event), frame.y(load)) for event, load in enumerate(loads)], color, 1.6)
    peak = max(max(loads) for loads in steps if loads)
    return f"{name}: at most {peak / GIB:.1f} GiB"


def main(plain, within, budget, device, out):
    runs = [steps_of(plain), steps_of(within)]
    budget, device = float(budget) * GIB, float(device) * GIB
    top = 1.08 * max(device, *(max(loads, default=0) for run in runs for loads in run))
    picture = Picture(WIDTH, 290, "The load of a training step, without a budget and within one")
    whole = Frame(picture, LEFT, 44, STEPS * STEP, HEIGHT, 0, STEPS, top)
    whole.axes()
    for gib in range(0, int(top / GIB) + 1, 2):
        picture.text(LEFT - 8, whole.y(gib * GIB) + 4, f"{gib} GiB", 11, "end", FAINT)
    for number in range(STEPS):
        picture.text(LEFT + (number + 0.5) * STEP, whole.y(0) + 18, f"step {number + 1}", 11, "middle", FAINT)
        picture.line(LEFT + number * STEP, whole.y(0), LEFT + number * STEP, whole.y(0) + 5, FAINT)
    whole.level(0, STEPS, device, INK, 1.5, "6 4")
    whole.level(0, STEPS, budget, BLUE, 1.5, "2 3")
    picture.text(LEFT + STEPS * STEP + 6, whole.y(device) - 1, f"device {device / GIB:g}", 11)
    picture.text(LEFT + STEPS * STEP + 6, whole.y(budget) + 9, f"budget {budget / GIB:g}", 11, fill=BLUE)
    for place, run, color, name in zip((0, 260), runs, (ACCENT, BLUE), ("without a budget", "within it")):
        picture.text(LEFT + place, 24, draw(picture, run, color, top, name), 13, fill=color)
    words = "GPT-2 medium, batch 2, in PyTorch: live memory, request by request. Everything is moved in steps 1 to 3."
    picture.text(LEFT, whole.y(0) + 40, words, 11, fill=FAINT)
    with open(out, "w", encoding="utf-8") as file:
        file.write(picture.svg())


if __name__ == "__main__":
    if len(sys.argv) != 6:
        sys.exit("usage: budget.py PLAIN.csv WITHIN.csv BUDGET DEVICE OUT.svg")
    main(*sys.argv[1:])
