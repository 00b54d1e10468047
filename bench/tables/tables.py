"""The tables that pages name, made from the documents of bench/results. If there is no document yet, the table says so
and names the command that measures it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import gpu_tables
import packer_table
import plan_tables
import program_tables
import solver_table
from documents import AGREE, OUTPUT, PACKER, SMALLEST, SOLVERS, TORCH, Results
from made import origin
from measures import HELD, refuse_mixed
from pages import Fault
from program_tables import not_yet

sys.path.insert(1, str(Path(__file__).resolve().parents[1] / "torch"))
import agreement  # noqa: E402
import largest  # noqa: E402
import smallest_rows  # noqa: E402
import table as torch_table  # noqa: E402
from rows import Row  # noqa: E402

_MIB = 1 << 20
_PEER = "'minimalloc --capacity={capacity} --input={instance} --output=/dev/null'"


def _simulated(content: dict) -> bool:
    return bool(content["rows"]) and content["rows"][0]["settings"]["simulated"]


def _torch_rows(results: Results) -> tuple[dict | None, list[Row]]:
    """All models on the simulated device, as far as on file, without searches for the largest batch."""
    written = results.newest(TORCH, lambda content: _simulated(content) and not content["rows"][0]["largest_batch"])
    return written, [Row.from_json(row) for row in written["rows"]] if written else []


_TORCH_COMMAND = "bench/torch/compare --simulate --hotpack enable --peers --json bench/results/pytorch_memory.json"


def torch_memory(results: Results, _: str) -> str:
    written, rows = _torch_rows(results)
    if written is None:
        return not_yet(_TORCH_COMMAND)
    failures = "".join(f"\nNot run: {failure}\n" for failure in written["failures"])
    header = torch_table.header(rows, written["hotpack_by"], written["steps"], written.get("logical_time", False))
    return "\n".join([origin(written) + "\n", header, torch_table.render(rows) + failures])


def torch_memory_brief(results: Results, _: str) -> str:
    written, rows = _torch_rows(results)
    if written is None:
        return not_yet(_TORCH_COMMAND)
    columns = torch_table.brief_columns()
    refuse_mixed(columns)
    lines = ["| " + " | ".join(column.title for column in columns) + " |",
             "|" + "|".join(":---" if i == 0 else "---:" for i in range(len(columns))) + "|"]
    lines += ["| " + " | ".join(column.show(row) for column in columns) + " |" for row in rows]
    return "\n".join([origin(written), "", *lines, "", torch_table.who_holds_less(rows)])


def _peers_by_the_whole_run(row: dict) -> bool:
    """Documents of before had the last step's, which is another measure."""
    return bool(row.get("peers")) and row.get("peers_measure") == HELD


def torch_peers(results: Results, _: str) -> str:
    def wanted(content: dict) -> bool:
        return _simulated(content) and any(_peers_by_the_whole_run(row) for row in content["rows"])

    written = results.newest(TORCH, wanted)
    if written is None:
        return not_yet(_TORCH_COMMAND)
    rows = [Row.from_json(row) for row in written["rows"] if _peers_by_the_whole_run(row)]
    return "\n".join([origin(written) + "\n", torch_table.peers_header(rows), torch_table.render_peers(rows)])


def largest_batch(results: Results, _: str) -> str:
    written = results.newest(TORCH, lambda content: any(row["largest_batch"] for row in content["rows"]))
    if written is None:
        return not_yet("bench/torch/compare --simulate --hotpack enable --steps 8 --largest-batch --capacity 16G,80G "
                       "--json bench/results/largest_batch.json")
    rows = [Row.from_json(row) for row in written["rows"]]
    found = [(row.job.name, row.largest_batch) for row in rows if row.largest_batch]
    return origin(written) + "\n\n" + largest.render(found)


def _agreements(results: Results, tight: bool) -> tuple[dict | None, list[agreement.Agreement]]:
    written = results.newest(AGREE, lambda content: any(row["tight"] for row in content["rows"]) or not tight)
    return written, [agreement.Agreement.from_json(row) for row in written["rows"]] if written else []


_AGREE_COMMAND = "bench/torch/peers_agree --simulate --tight --json bench/results/peers_agree.json"


def peers_agree(results: Results, _: str) -> str:
    written, found = _agreements(results, tight=False)
    if written is None:
        return not_yet(_AGREE_COMMAND)
    versions = ", ".join(sorted({each.torch for each in found}))
    return f"{origin(written)} PyTorch {versions}, {written['steps']} steps; MiB.\n\n{agreement.render(found)}"


def peers_agree_tight(results: Results, _: str) -> str:
    written, found = _agreements(results, tight=True)
    if written is None:
        return not_yet(_AGREE_COMMAND)
    return agreement.render_tight([each for each in found if each.tight])


_SMALLEST_COMMANDS = {
    "models": "bench/torch/smallest --json bench/results/smallest_device.json",
    "programs": "bench/torch/smallest --script COMMAND --json bench/results/smallest_device_programs.json",
}


def smallest_device(results: Results, which: str) -> str:
    if which not in _SMALLEST_COMMANDS:
        raise Fault(f"smallest_device {which}: there are {' and '.join(_SMALLEST_COMMANDS)}")
    written = results.newest(SMALLEST, lambda content: any((row["batch"] is None) == (which == "programs") for row in content["rows"]))
    if written is None:
        return not_yet(_SMALLEST_COMMANDS[which])
    found = [smallest_rows.Smallest.from_json(row) for row in written["rows"]]
    versions = "".join(f" PyTorch {version}," for version in sorted({each.torch for each in found if each.torch is not None}))
    steps = f" {written['steps']} steps;" if which == "models" else ""
    return f"{origin(written)}{versions}{steps} MiB.\n\n{smallest_rows.render(found)}"


def _packed(results: Results, section: str) -> dict | None:
    return results.newest(PACKER, lambda content: "rows" in content["sections"].get(section, {}))


def _packer_command(section: str) -> str:
    peer = f" --peer {_PEER}" if section == "capacity" else ""
    return f"bench/packer {section}{peer} --json bench/results/packer_{section}.json"


def packer(results: Results, section: str) -> str:
    written = _packed(results, section)
    if written is None:
        return not_yet(_packer_command(section))
    return packer_table.head(written, [section]) + "\n\n" + packer_table.section(written["sections"][section])


def packer_brief(results: Results, _: str) -> str:
    """A row for each section: of which run, and its summary."""
    lines = ["| section | instances | result | date | commit |", "|---|---:|---|---|---|"]
    machines: dict[str, None] = {}
    for section in packer_table.SECTIONS:
        written = _packed(results, section)
        if written is None:
            return not_yet(_packer_command(section))
        machines[f"{written['machine']['processor']}, {written['machine']['cores']} cores"] = None
        found = written["sections"][section]
        lines.append(f"| {section} | {len(found['rows'])} | {found['summary']} | {written['date'][:10]} "
                     f"| `{written['hotpack']['commit'][:12]}` |")
    return "\n".join([f"By `bench/packer SECTION` on {'; '.join(machines)}.", "", *lines])


def solvers(results: Results, _: str) -> str:
    written = results.newest(SOLVERS)
    if written is None:
        return not_yet("bench/solvers --json bench/results/solvers.json")
    return solver_table.render(written)


_KEPT = {  # name -> the command whose output a page shows
    "demo": "tools/demo --no-install",
    "torch_jobs": "bench/torch/jobs '$HOTPACK_SHARED/jobs'",
}


def output(results: Results, name: str) -> str:
    written = results.named(name)
    if written is None and name in _KEPT:
        return not_yet(f"tools/results --keep {name} -- {_KEPT[name]}")
    if written is None or written["schema"] != OUTPUT:
        raise Fault(f"no output '{name}' is kept: tools/results --keep {name} -- COMMAND")
    return f"{origin(written)}\n\n```\n{written['output'].rstrip()}\n```"


_Maker = Callable[[Results, str], str]
_TABLES: dict[str, tuple[_Maker, bool]] = {  # name -> what makes it, and whether a word follows the name
    "torch_memory": (torch_memory, False),
    "torch_memory_brief": (torch_memory_brief, False),
    "torch_peers": (torch_peers, False),
    "largest_batch": (largest_batch, False),
    "peers_agree": (peers_agree, False),
    "peers_agree_tight": (peers_agree_tight, False),
    "smallest_device": (smallest_device, True),
    "packer": (packer, True),
    "packer_brief": (packer_brief, False),
    "planner_brief": (plan_tables.planner_brief, False),
    "planner_papers": (plan_tables.planner_papers, False),
    "solvers": (solvers, False),
    "output": (output, True),
    "benchmark": (program_tables.benchmark, True),
    "benchmarks_brief": (program_tables.benchmarks_brief, False),
    "markdown": (program_tables.markdown, True),
    "instructions": (program_tables.instructions, False),
    "pack_check": (program_tables.pack_check, False),
    "gpu_timing": (gpu_tables.timing, False),
    "gpu_differences": (gpu_tables.differences, False),
}


def make(results: Results, name: str) -> str:
    """The text of the table that a page calls `name`. Raises Fault."""
    first, _, word = name.partition(" ")
    if first not in _TABLES or bool(word) != _TABLES[first][1]:
        known = ", ".join(key + (" NAME" if named else "") for key, (_, named) in _TABLES.items())
        raise Fault(f"'{name}' is no table; there are {known}")
    return _TABLES[first][0](results, word)
