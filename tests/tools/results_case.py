"""Made documents, and a folder for tools/results to work in: for the tests of tools/results."""

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

MIB = 1 << 20
HEAD = {"schema_version": 1, "command": "bench/some --json FILE", "date": "2026-03-01T12:00:00Z",
        "machine": {"processor": "A processor", "cores": 4, "gpu": None, "system": "Linux"},
        "hotpack": {"version": "hotpack 0.1.0", "commit": "0123456789abcdef0123456789abcdef01234567"}}


def torch_row(job: str = "vit", **more) -> dict:
    stats = {"reserved_peak": 1100 * MIB, "reserved_steady": 1010 * MIB, "live_peak": 1000 * MIB, "plan_height": 700 * MIB,
             "plan_lower_bound": 700 * MIB, "planned_steady": 1000, "requests_steady": 1000, **more.pop("stats", {})}
    settings = {"batch": 4, "optimizer": "sgd", "precision": "fp32", "simulated": True, "device": "a device",
                "device_memory": 16 << 30, "torch": "2.0", "cuda": "13", "cudnn": "9", "cudnn_benchmark": False,
                "cudnn_deterministic": False, "tf32": False, "cublas_workspace": "w", "cublaslt_workspace": "w", "seed": 1}
    train = {"default": {"torch_reserved_peak": 1300 * MIB, "step_ms": 2.0},
             "expandable": {"torch_reserved_peak": 1200 * MIB, "step_ms": 2.0}, "hotpack": {"step_ms": 2.0}}
    return {"job": job, "static": True, "settings": {**settings, **more.pop("settings", {})}, "hotpack": stats, "reports": 0,
            "launches_known_and_not": [7, 0], "losses": "", "largest_batch": None, "train": train, **more}


def torch_document(*rows: dict, **more) -> dict:
    return {**HEAD, "schema": "hotpack-torch-compare", "steps": 30, "hotpack_by": "enable", "rows": list(rows) or [torch_row()],
            "failures": [], "missed": [], **more}


def gpu_document(ratio: float = 3.0, time: float = 700.0, result: str = "pass", **more) -> dict:
    figures = [{"name": "cuda-preloaded", "unit": "ns a pair", "median": time, "low": time, "high": time, "samples": 3},
               {"name": "cuda over cuda-preloaded", "unit": "ratio", "median": ratio, "low": ratio, "high": ratio, "samples": 3}]
    finding = {"name": "zeroed", "result": result, "expected": "zeros", "seen": "a | b"}
    return {"schema": "hotpack-gpu-check", "schema_version": 1, "date": "2026-03-01T12:00:00Z", "simulated": False,
            "complete": True, "hotpack": {"version": "0.1.0", "commit": HEAD["hotpack"]["commit"]},
            "options": {"mode": "full", "only": []}, "device": {"name": "A GPU"}, "versions": {"driver": "580.1"},
            "host": {"cpu": "A processor", "cores": 4}, "summary": {"pass": 9, "fail": 0, "skip": 1},
            "steps": [{"group": "probes", "name": "gpu_probe/vmm/without", "findings": [finding]},
                      {"group": "timing", "name": "rounds", "findings": [], "figures": figures}], **more}


def with_models(document: dict, memory: float = 0.9, step: float = 1.02, over: float = 3.0, losses: str = "pass") -> dict:
    """A GPU document in which the benchmarks and a PyTorch model were run as well."""
    def figure(name: str, unit: str, value: float) -> dict:
        return {"name": name, "unit": unit, "median": value, "low": value, "high": value, "samples": 1}

    finding = {"name": "losses", "result": losses, "expected": "", "seen": ""}
    more = [{"group": "pytorch", "name": "vit/preload", "findings": [finding], "figures": [figure("serving_over_live", "ratio", 1.005)]},
            {"group": "pytorch", "name": "vit/ratios", "findings": [], "figures": [
                figure("memory, preload / default", "ratio", memory), figure("step time, preload / default", "ratio", step),
                figure("memory, preload / expandable", "ratio", 0.95)]},
            {"group": "benchmarks", "name": "serving_bench", "findings": [], "figures": [
                figure("OnScriptPair", "ns", 21.5), figure("MallocPair over OnScriptPair", "ratio", over)]},
            {"group": "benchmarks", "name": "packer_bench", "findings": [], "figures": [figure("net/auto, ratio", "ratio", 1.0)]}]
    return {**document, "steps": [*document["steps"], *more]}


def google_document(script: float = 20.0, mutex: float = 10.0, host: str = "a", **counters) -> dict:
    def line(name: str, time: float, **more) -> dict:
        return {"name": name, "run_name": name, "run_type": "iteration", "real_time": time, "cpu_time": time, "time_unit": "ns",
                **more}

    return {"context": {"date": "2026-03-01T12:00:00+00:00", "host_name": host, "executable": "bin/serving_bench", "num_cpus": 4,
                        "mhz_per_cpu": 3000},
            "benchmarks": [line("OnScriptPair", script, **counters), line("MutexPair", mutex)]}


class ResultsCase(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        (self.root / "docs").mkdir()
        (self.root / "bench" / "results").mkdir(parents=True)

    def put(self, name: str, document: dict) -> Path:
        path = self.root / "bench" / "results" / f"{name}.json"
        path.write_text(json.dumps(document))
        return path

    def page(self, text: str) -> Path:
        path = self.root / "docs" / "page.md"
        path.write_text(text)
        return path

    def run_it(self, *arguments: str, code: int = 0, printed: str = "") -> str:
        """printed: on stdout, although it fails."""
        done = subprocess.run([sys.executable, str(ROOT / "tools" / "results"), "--root", str(self.root), *arguments],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        if code == 2:
            self.assertEqual((done.stdout, done.stderr.count("\n")), (printed, 1), done.stderr)
        return done.stdout + done.stderr
