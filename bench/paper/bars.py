"""One bar of Figure 2: the memory of each way of allocating for the requests of one recording."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, dataclass
from pathlib import Path

from cases import Case, Failure, hotpack
from shares import shares_of

POOL, SINGLE = "chainer", "cudamalloc"  # of `hotpack compare`


@dataclass
class Bar:
    """Bytes. All except `served` are of the whole run."""

    network: str
    mode: str
    batch: int
    requests: int  # of the last iteration
    live: int  # no allocator takes less
    retained: int
    carried: int
    naive: int  # one allocation per request, freed when it is released
    kept: int  # ... freed at the end of the iteration
    orig: int  # the paper's pool
    hotpack: int  # the most that its engine holds
    served: int | None  # ... while it serves by the plan; None where no iteration is served as a whole
    plan: int | None  # what is retained, and the height of the published best-fit; None where no iteration repeats
    plan_height: int | None

    def saved(self, way: str) -> float | None:
        """The share of orig's memory that this way saves."""
        taken = getattr(self, way)
        return None if taken is None else 1 - taken / self.orig

    def packed(self, way: str) -> int:
        """What this way takes in addition to the two other shares."""
        return getattr(self, way) - self.retained - self.carried

    def as_json(self) -> dict:
        return {**asdict(self), "hotpack_orig_ratio": self.hotpack / self.orig,
                "plan_orig_ratio": None if self.plan is None else self.plan / self.orig, "hotpack_live_ratio": self.hotpack / self.live}


def compare(options: argparse.Namespace, recording: Path, *more: str) -> dict:
    compared = json.loads(hotpack(options, "compare", recording, "--json", "--repeat", 0, "--peers", f"{SINGLE},{POOL}", *more))
    compared["rows"] = {row["name"]: row for row in compared["rows"]}
    return compared


def take_bar(options: argparse.Namespace, case: Case, recording: Path) -> Bar:
    """Raises Failure."""
    compared = compare(options, recording)
    shares = shares_of(hotpack(options, "export", recording, "--format", "event-csv"))
    if shares is None:
        raise Failure(f"{case.name}: a recording without iterations")
    rows, iteration = compared["rows"], compared["iteration"]
    if rows["hotpack"]["reserved_peak"] < compared["live_peak"]:
        raise Failure(f"{case.name}: less memory than what is live")
    # In seq2seq iterations differ, so the last one's need alone says nothing about the run.
    repeats = iteration is not None and not case.is_seq2seq
    height = json.loads(hotpack(options, "pack", recording, "--algorithm", "best-fit", "--time-limit", "10m", "--json"))[
        "height"] if repeats else None
    return Bar(case.network, case.mode, case.batch, shares.requests, compared["live_peak"], shares.retained, shares.carried,
               rows[SINGLE]["reserved_peak"], shares.kept_to_the_end, rows[POOL]["reserved_peak"],
               rows["hotpack"]["reserved_peak"], rows["hotpack"]["held_while_served"],
               None if height is None else shares.retained + height, height)
