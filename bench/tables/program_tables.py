"""The tables of programs that measure hotpack itself: Google Benchmark's, callgrind's counts, the packer's random checks, and those
that a program writes next to its document."""

from __future__ import annotations

import json
import os
import re

from documents import BENCHMARKS, INSTRUCTIONS, Results
from made import origin
from pages import Fault
from text_table import render

_TEXT_COMMANDS = {  # of tables that a program writes next to its document
    **{f"planner_{name}": f"bench/planner {name} --out bench/results/planner" for name in ("logs", "budgets", "chen", "echo", "dqn", "exact")},
    "cost": "bench/cost --out bench/results/cost", "ranks": "bench/ranks --out bench/results/ranks",
    "paper/figure2": "bench/paper/figure2 --out bench/results/paper",
    "paper/figure2_pytorch": "bench/paper/figure2 --events pytorch --out bench/results/paper",
    "paper/figure3": "bench/paper/figure3 --out bench/results/paper",
    "paper/figure4": "bench/paper/figure4 --out bench/results/paper",
    "paper/text": "bench/paper/text --out bench/results/paper",
}
_PACK_CHECKS = {  # what is kept of each -> the run, some minutes at most
    "pack_check_brute": "--instances 1000000 --max-blocks 7 --against brute --threads 2 --seed 2026",
    "pack_check_exact": "--instances 100000 --max-blocks 12 --against exact --threads 2 --seed 7 --exact-ms 30",
    "pack_check_cut": "--instances 200000 --max-blocks 40 --against cut --threads 2 --seed 3 --exact-ms 20",
}
_NEED_GPU = ("paper/figure3",)
_INSTRUCTIONS = "bench/count_instructions all --json bench/results/instructions.json"
_OWN_COMMANDS = {"live_tensors": "bench/torch/live_tensors --json bench/results/live_tensors.json"}  # not bench/benchmarks
# Columns of Google Benchmark that are no counters of the program's own.
_GENERAL = {"name", "run_name", "run_type", "aggregate_name", "real_time", "cpu_time", "time_unit", "scatter"}


def not_yet(command: str, where: str = "") -> str:
    return f"Not measured yet: `{command}` does{where}."


def _counter(name: str, value: float) -> str:
    if name.startswith("s_"):  # seconds, of a part
        return f"{1e9 * value:.1f} ns"
    return f"{value:.4g}"


def benchmark(results: Results, name: str) -> str:
    """A document of bench/benchmarks, or of the same schema: of each benchmark the median of its repetitions."""
    written = results.named(name)
    if written is None:
        return not_yet(_OWN_COMMANDS.get(name, f"bench/benchmarks {name} --out bench/results"))
    if written["schema"] != BENCHMARKS:
        raise Fault(f"{name}.json is not of bench/benchmarks")
    rows = written["benchmarks"]
    counters = list(dict.fromkeys(key for row in rows for key in row if key not in _GENERAL))
    titles = [counter.removeprefix("s_").replace("_", " ") for counter in counters]
    lines = [["benchmark", "elapsed", "processor time", "scatter", *titles]]
    for row in rows:
        unit = row["time_unit"]
        name = row["run_name"].replace("|", "\\|")
        lines.append([name, f"{row['real_time']:.4g} {unit}", f"{row['cpu_time']:.4g} {unit}", f"{row['scatter']:.0%}",
                      *(_counter(key, row[key]) if key in row else "" for key in counters)])
    return (f"{origin(written)} Medians of {written['repetitions']}; scatter: the standard deviation as a share of the "
            f"mean, of the processor time (where a name ends with real_time, of what elapsed).\n\n{render(lines)}")


def instructions(results: Results, _: str) -> str:
    written = results.newest(INSTRUCTIONS)
    if written is None:
        return not_yet(_INSTRUCTIONS)
    lines = [["what", "instructions"], *([row["what"], str(row["instructions"])] for row in written["rows"])]
    return f"{origin(written)}\n\n{render(lines)}"


def pack_check(results: Results, _: str) -> str:
    """What runs of tests/packer's pack_check print with --json, each kept by `tools/results --keep`."""
    named = {name: results.named(name) for name in _PACK_CHECKS}
    missing = [not_yet(f"tools/results --keep {name} -- build/tests/pack_check --json {_PACK_CHECKS[name]}")
               for name, written in named.items() if written is None]
    kept = [written for written in named.values() if written is not None]
    if not kept:
        return "\n\n".join(missing)
    keys = ("instances", "packs", "placements", "failures", "exact_out_of_time")
    lines = [["run", "date", "commit", "instances", "packs", "placements validated", "failures",
              "exact search out of time"]]
    for written in kept:
        counts = json.loads(written["output"])
        lines.append([f"`{written['command']}`", written["date"][:10], f"`{written['hotpack']['commit'][:12]}`",
                      *(f"{counts[key]:,}" for key in keys)])
    machines = dict.fromkeys(f"{each['machine']['processor']}, {each['machine']['cores']} cores" for each in kept)
    return "\n\n".join([f"On {'; '.join(machines)}.", render(lines), *missing])


_BRIEF = (  # document, benchmark, what it measures: a row each
    ("serving_bench", "OnScriptPair", "an allocation and a release by script"),
    ("serving_bench", "BestFitPair/5000", "the same by best fit, at most 5,000 blocks live"),
    ("serving_bench", "MallocPair", "`malloc` and `free`"),
    ("hook_bench", "hotpack/DriverPair", "`cuMemAlloc` and `cuMemFree` through the hooks, by script"),
    ("recorder_bench", "PairRecorded/iterations:2560000", "an allocation and a release, recorded"),
    ("startup_bench", "no CUDA/alone/real_time", "a process without CUDA, from start to end"),
    ("startup_bench", "no CUDA/preloaded/real_time", "the same, with hotpack preloaded"),
    ("plan_bench", "Load/nested/blocks:1000000", "loading a plan of 1,000,000 blocks"),
)


def benchmarks_brief(results: Results, _: str) -> str:
    """The benchmarks that a reader asks for first, out of the documents of bench/benchmarks."""
    lines = [["what", "benchmark", "elapsed"]]
    origins: dict[str, None] = {}
    for name, row_name, what in _BRIEF:
        written = results.named(name)
        row = next((row for row in written["benchmarks"] if row["run_name"] == row_name), None) if written else None
        if written is None or row is None:
            return not_yet("bench/benchmarks --out bench/results")
        origins[origin(written)] = None
        lines.append([what, f"`{name}`, {row_name}", f"{row['real_time']:.4g} {row['time_unit']}"])
    return "\n\n".join([*origins, render(lines)])


def markdown(results: Results, name: str) -> str:
    """A table that a program wrote next to its document, of which it must be; without a title, since the page has one. Pictures in
    it are files next to it."""
    written, path = results.named(name), results.folder / f"{name}.md"
    if written is None and name in _TEXT_COMMANDS:
        return not_yet(_TEXT_COMMANDS[name], ", on a machine with a GPU" if name in _NEED_GPU else "")
    if written is None or not path.is_file():
        raise Fault(f"{name}.md and .json are not both in {results.folder.name}")
    text = path.read_text(encoding="utf-8")
    if origin(written) not in text:
        raise Fault(f"{name}.md is of another run than {name}.json")
    here = os.path.relpath(path.parent, results.page.parent)
    text = re.sub(r"\]\(([^)/:]+\.svg)\)", lambda match: f"]({here}/{match[1]})", text)
    return text.partition("\n")[2] if text.startswith("# ") else text
