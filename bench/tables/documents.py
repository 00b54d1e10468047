"""Reads and classifies the documents of bench/results, and rejects those that are no evidence."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from pages import Fault

GPU_CHECK = "hotpack-gpu-check"
TORCH = "hotpack-torch-compare"
AGREE = "hotpack-peers-agree"
SMALLEST = "hotpack-smallest-device"
PACKER = "hotpack-packer"
SOLVERS = "hotpack-solvers"
OUTPUT = "hotpack-output"
BENCHMARKS = "hotpack-benchmarks"
INSTRUCTIONS = "hotpack-instructions"
PLANNER = "hotpack-planner"
GOOGLE = "google-benchmark"


@dataclass
class Document:
    path: Path
    schema: str
    content: dict

    @property
    def date(self) -> str:
        return self.content["context"]["date"] if self.schema == GOOGLE else self.content["date"]


def read(path: Path) -> Document:
    """Reads any document that a program of the project or Google Benchmark writes. Raises Fault."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise Fault(f"{path}: {error.strerror}") from None
    except ValueError as error:
        raise Fault(f"{path}: no JSON: {error}") from None
    if isinstance(content, dict) and isinstance(content.get("schema"), str) and "date" in content:
        if content.get("schema_version") != 1:
            raise Fault(f"{path}: version {content.get('schema_version')} of {content['schema']} is not known here")
        return Document(path, content["schema"], content)
    if isinstance(content, dict) and "benchmarks" in content and "date" in content.get("context", {}):
        return Document(path, GOOGLE, content)
    raise Fault(f"{path}: neither a document of this project nor of Google Benchmark")


def refused(document: Document) -> str:
    """Returns why the document may not lie under bench/results; empty if it may."""
    if document.schema == GOOGLE:
        return "Google Benchmark names neither command nor commit; bench/benchmarks keeps what it measures"
    commit = document.content.get("hotpack", {}).get("commit", "unknown")
    if commit == "unknown" or commit.endswith("-changed"):
        return f"the commit is {commit}: its sources are not in the history"
    if "--smoke" in document.content.get("command", "").split():
        return "--smoke is of sizes that show nothing"
    if document.schema == GPU_CHECK:
        if document.content["simulated"]:
            return "the simulated device says nothing about a GPU"
        if not document.content["complete"]:
            return "the check was ended from outside"
    return ""


class Results:
    """All documents of a folder and its subfolders, the newest last."""

    def __init__(self, folder: Path):
        """Raises Fault."""
        self.folder = folder
        self.page = folder / "README.md"  # the one that tables are made for: links in them are relative to it
        self.documents = sorted((read(path) for path in sorted(folder.rglob("*.json"))), key=lambda each: each.date)
        for document in self.documents:
            why = refused(document)
            if why:
                raise Fault(f"{document.path}: {why}")

    def newest(self, schema: str, wanted=lambda content: True) -> dict | None:
        found = [each.content for each in self.documents if each.schema == schema and wanted(each.content)]
        return found[-1] if found else None

    def named(self, name: str) -> dict | None:
        """`name`: the file's name without .json, with its folder: paper/figure2."""
        return next((each.content for each in self.documents if each.path == self.folder / f"{name}.json"), None)
