"""Findings of a check, in the form of tests/gpu/findings.h: each as a line on stderr at once, and all as one JSON object
on stdout at the end."""

from __future__ import annotations

import json
import sys


class Findings:
    def __init__(self, program: str):
        self._program = program
        self._findings: list[dict[str, str]] = []
        self._figures: list[dict[str, object]] = []

    def check(self, passed: bool, name: str, expected: str, seen: str) -> bool:
        self._add(name, "pass" if passed else "fail", expected, seen)
        return passed

    def skip(self, name: str, reason: str) -> None:
        self._add(name, "skip", "", reason)

    def figure(self, name: str, unit: str, samples: list[float]) -> None:
        """Adds the median with the least and the largest sample; nothing without samples."""
        if not samples:
            return
        ordered = sorted(samples)
        middle = len(ordered) // 2
        median = ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
        self._figures.append({"name": name, "unit": unit, "median": median, "low": ordered[0], "high": ordered[-1],
                              "samples": len(ordered)})

    def finish(self) -> int:
        """Writes the object. Returns the exit status: 1 if a finding failed, else 0."""
        print(json.dumps({"program": self._program, "findings": self._findings, "figures": self._figures}), flush=True)
        return 1 if any(finding["result"] == "fail" for finding in self._findings) else 0

    def _add(self, name: str, result: str, expected: str, seen: str) -> None:
        expected, seen = (" ".join(text.split()) for text in (expected, seen))  # one line
        self._findings.append({"name": name, "result": result, "expected": expected, "seen": seen})
        print(f"finding: {result} {name}" + (f"; expected {expected}" if expected else "") + (f"; seen {seen}" if seen else ""),
              file=sys.stderr, flush=True)
