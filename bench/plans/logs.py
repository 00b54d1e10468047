"""The section `logs`: operator logs of the DTR prototype, with its authors' measurements."""

from __future__ import annotations

import sys

from published import DTR_RATIOS, GB, MB, PEAK_TOLERANCE, PEAKS_MB
from runs import Context, Graph, Skipped, logs, plan
from text_table import render


def _peak(context: Context, log: Graph) -> dict:
    whole = plan(context, log)
    return {"log": log.name, "operators": whole["operators"], "peak_bytes": whole["program_peak"], "published_mb": PEAKS_MB.get(log.name),
            "live_bytes": whole["live_peak"], "arena_bytes": whole["arena"]}


def _ratio(answer: dict | None, key: str = "time") -> float | None:
    return answer[key] / answer["baseline_time"] if answer else None


def _at(context: Context, log: Graph, gigabytes: int, listed: float) -> dict:
    ours, dtr = (plan(context, log, algorithm, gigabytes * GB) for algorithm in ("search", "dtr"))
    print(f"planner: {log.name}, {gigabytes} GB: {show(_ratio(ours))}, DTR {show(_ratio(dtr))}", file=sys.stderr)
    return {"log": log.name, "budget": f"{gigabytes} GB", "search_ratio": _ratio(ours), "dtr_ratio": _ratio(dtr), "listed": listed,
            "bound": _ratio(ours or dtr, "lower_bound_time"), "arena": ours and ours["arena"]}


def missed(peaks: list[dict], rows: list[dict]) -> list[str]:
    found = []
    for row in peaks:
        if row["published_mb"] is not None and abs(row["peak_bytes"] / MB / row["published_mb"] - 1) > PEAK_TOLERANCE:
            found.append(f"{row['log']}: replayed peak {row['peak_bytes'] / MB:.0f} MB, measured {row['published_mb']} MB")
    for row in rows:
        where, ours = f"{row['log']} at {row['budget']}", row["search_ratio"]
        if ours is None:
            found.append(f"{where}: search has no plan")
            continue
        if ours >= row["listed"]:
            found.append(f"{where}: search {ours:.4f}, listed {row['listed']}")
        if row["dtr_ratio"] is not None and ours >= row["dtr_ratio"]:
            found.append(f"{where}: search {ours:.4f}, dtr {row['dtr_ratio']:.4f}")
    return found


def take(context: Context) -> dict:
    there = logs(context)
    if context.smoke:
        there = [log for log in there if log.name == "unet-6"]
    if not there:
        raise Skipped("no operator logs: HOTPACK_SHARED names the folder above dtr/")
    peaks = [_peak(context, log) for log in there]
    rows = [_at(context, log, gigabytes, listed) for log in there for gigabytes, listed in DTR_RATIOS.get(log.name, {}).items()]
    return {"peaks": peaks, "rows": rows, "missed": missed(peaks, rows)}


def show(ratio: float | None) -> str:
    return "none" if ratio is None else f"{ratio:.4f}"


def markdown(document: dict) -> str:
    peaks = [["log", "operators", "replayed peak, MB", "measured, MB", "off by", "released after the last use, MB", "packed, MB"]]
    for row in document["peaks"]:
        published = row["published_mb"]
        peaks.append([row["log"], str(row["operators"]), f"{row['peak_bytes'] / MB:.1f}", str(published) if published else "",
                      f"{row['peak_bytes'] / MB / published - 1:+.2%}" if published else "", f"{row['live_bytes'] / MB:.1f}",
                      f"{row['arena_bytes'] / MB:.1f}"])
    lines = [["log", "budget", "search", "DTR here", "DTR as listed", "bound", "search over bound"]]
    for row in document["rows"]:
        gap = row["search_ratio"] and f"{row['search_ratio'] / row['bound'] - 1:.2%}"
        lines.append([row["log"], row["budget"], show(row["search_ratio"]), show(row["dtr_ratio"]), f"{row['listed']:.3f}",
                      show(row["bound"]), gap or ""])
    return "\n\n".join([
        "Peaks, storages released where the program does; MB is 10^6 bytes.", render(peaks),
        f"Time over the time with all memory, at budgets of the packed arena (GB is 10^9); {document['time_limit']} for each search. DTR here: its "
        "heuristic offline, judged by the same simulator. Listed: its authors' own run. Bound: no plan takes less.", render(lines)])
