"""How a result came about: command, date, machine, versions. The same keys at the head of every document that a program
of bench/ writes, so that one reader (tools/results) understands them all."""

from __future__ import annotations

import datetime
import json
import os
import platform
import shlex
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SCHEMA_VERSION = 1


def _output(*command: str) -> str:
    """What it prints; nothing if it cannot be run or fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def machine() -> dict[str, object]:
    processor = "unknown"
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        processor = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), processor)
    except OSError:
        pass
    gpus = _output("nvidia-smi", "--query-gpu=name", "--format=csv,noheader").splitlines()
    return {"processor": processor, "cores": os.cpu_count(), "gpu": gpus[0].strip() if gpus else None,
            "system": platform.platform()}


def version(hotpack: Path | str) -> dict[str, str]:
    """Of the built command, and of the sources of its tree: a commit, with `-changed` behind it if they differ from it."""
    commit = _output("git", "-C", str(ROOT), "rev-parse", "HEAD")
    # Results themselves and pages that tools/results writes are no sources.
    changed = _output("git", "-C", str(ROOT), "status", "--porcelain", "--untracked-files=no", "--", ".",
                      ":!bench/results", ":!*.md")
    return {"version": _output(str(hotpack), "--version") or "unknown",
            "commit": commit + ("-changed" if changed else "") if commit else "unknown"}


def made(schema: str, program: str, arguments: list[str], hotpack: Path | str) -> dict[str, object]:
    """The first keys of a document. `program`: as it is called from the root, such as "bench/torch/compare"."""
    return {"schema": schema, "schema_version": SCHEMA_VERSION, "command": shlex.join([program, *arguments]),
            "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"), "machine": machine(),
            "hotpack": version(hotpack)}


def text_of(document: dict) -> str:
    """The document as JSON: what has no object or list in it is one line, so that a row of a table is one."""

    def write(value: object, indent: str) -> str:
        parts = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
        if not any(isinstance(part, (dict, list, tuple)) for part in parts):
            return json.dumps(value, ensure_ascii=False)
        deeper = indent + " "
        if isinstance(value, dict):
            lines = [f"{json.dumps(str(key))}: {write(part, deeper)}" for key, part in value.items()]
        else:
            lines = [write(part, deeper) for part in value]
        first, last = "{}" if isinstance(value, dict) else "[]"
        return f"{first}\n{deeper}" + f",\n{deeper}".join(lines) + f"\n{indent}{last}"

    return write(document, "") + "\n"


def origin(document: dict) -> str:
    """A paragraph in a page: what the figures below it come from."""
    machine, hotpack = document["machine"], document["hotpack"]
    gpu = f", {machine['gpu']}" if machine.get("gpu") else ", no GPU"
    commit = hotpack["commit"][:12] + ("-changed" if hotpack["commit"].endswith("-changed") else "")
    return (f"By `{document['command']}`, {document['date'][:10]}: {machine['processor']}, {machine['cores']} "
            f"cores{gpu}; {hotpack['version']}, commit `{commit}`.")
