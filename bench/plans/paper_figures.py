"""The sections `chen`, `echo`, `dqn` and `exact`: the output of the programs *_figures in this folder, as tables."""

from __future__ import annotations

import json
import subprocess

from runs import Context, Failure, Skipped, seconds_of
from text_table import render


def take(context: Context, section: str) -> dict:
    program = context.program(f"{section}_figures")
    if not program.is_file():
        raise Skipped(f"no program {program.name}: it is not built")
    command = [str(program), *(["--smoke"] if context.smoke else [])]
    if section == "exact" and not context.smoke:
        command += ["--time-limit", str(seconds_of(context.time_limit)), *(["--shared", str(context.shared)] if context.shared else [])]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode != 0:
        raise Failure((done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1])
    try:
        printed = json.loads(done.stdout)
        rows, orderings = printed["rows"], printed["orderings"]
        missed = [f"{section}: not so: {each['says']} ({figures(each['figures'])})" for each in orderings if not each["holds"]]
    except (KeyError, TypeError, ValueError) as error:
        raise Failure(f"{program.name} printed what is no table of figures: {error}") from None
    return {"rows": rows, "orderings": orderings, "missed": missed}


def number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def figures(values: list) -> str:
    return ", ".join(number(value) for value in values)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def markdown(document: dict) -> str:
    lines = [["case", "what", "ours", "published", "ours / published", "unit", "note"]]
    for row in document["rows"]:
        ours, published = row["ours"], row["published"]
        ratio = f"{ours / published:.3f}" if published and ours is not None else ""
        lines.append([_cell(row["case"]), _cell(row["what"]), number(ours), number(published), ratio, _cell(row["unit"]), _cell(row.get("note", ""))])
    said = [f"- {'yes' if each['holds'] else 'no'}: {_cell(each['says'])} ({figures(each['figures'])})" for each in document["orderings"]]
    return "\n\n".join([render(lines), *(["Whether what the paper says holds here:", "\n".join(said)] if said else [])])
