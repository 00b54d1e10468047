"""The page of a job and real runs of it agree on who holds less: Hugging Face's Trainer on the simulated device, under PyTorch's own
allocator (its defaults, expandable segments) and under hotpack.enable(), against `hotpack report` and `hotpack compare` of the
recording. Arguments: the build directory, then unittest's. Needs PyTorch (HOTPACK_TORCH_PYTHON) with transformers, and the jobs of
HOTPACK_SHARED; exit code 77, with the reason, where they are missing."""

import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(sys.argv.pop(1)).resolve()
JOBS = Path(os.environ.get("HOTPACK_SHARED", ROOT.parent / "shared")) / "jobs"
JOB = JOBS / "hf_trainer.py"
HOTPACK = str(BUILD / "bin" / "hotpack")
SIMGPU = BUILD / "lib" / "simgpu"
LIBRARIES = ("libcudart.so.13", "libcublas.so.13", "libcublasLt.so.13", "libcudnn.so.9", "libnvidia-ml.so.1")
MIB, CHUNK = 1 << 20, 2 << 20


def environment(scratch: str, **more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTORCH_", "HOTPACK_", "JOB_"))}
    return {**kept, "HOTPACK_HOME": str(BUILD), "SIMGPU_MEMORY": "16G", "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONPATH": f"{ROOT / 'python'}{os.pathsep}{JOBS}", "STEPS": "12", "JOB_OUT": str(Path(scratch, "out")), **more}


def reserved(done: subprocess.CompletedProcess) -> int:
    """torch.cuda.max_memory_reserved() as the job prints it at its end: bytes."""
    found = re.search(r"^JOB .* reserved ([0-9.]+) MiB", done.stdout, re.MULTILINE)
    if done.returncode != 0 or found is None:
        raise AssertionError(done.stdout[-2000:] + done.stderr[-2000:])
    return round(float(found[1]) * MIB)


def run(scratch: str, *command: str, **more: str) -> subprocess.CompletedProcess:
    return subprocess.run(command, env=environment(scratch, **more), cwd=scratch, capture_output=True, text=True, timeout=500)


def run_plainly(scratch: str, **more: str) -> int:
    return reserved(run(scratch, sys.executable, str(JOB), LD_PRELOAD=" ".join(str(SIMGPU / name) for name in LIBRARIES),
                        LD_LIBRARY_PATH=str(SIMGPU), **more))


class PageTest(unittest.TestCase):
    def test_the_page_and_real_runs_agree_on_who_holds_less(self):
        with tempfile.TemporaryDirectory() as scratch:
            trace, page = str(Path(scratch, "job.trace")), str(Path(scratch, "job.html"))
            real = {"pytorch": run_plainly(scratch), "pytorch-expandable": run_plainly(scratch, PYTORCH_ALLOC_CONF="expandable_segments:True")}
            done = run(scratch, HOTPACK, "run", "--simulate", "--trace", trace, "--", sys.executable, str(JOB), JOB_ALLOCATOR="enable")
            ours = reserved(done)
            compared = json.loads(run(scratch, HOTPACK, "compare", trace, "--json").stdout)
            rows = {row["name"]: row["reserved_peak"] for row in compared["rows"]}
            run(scratch, HOTPACK, "report", trace, "-o", page).check_returncode()
            cards = dict(re.findall(r"<dt>(.*?)</dt><dd>.*?</dd></dl><p>(.*?)</p>", Path(page).read_text()))
        self.assertLessEqual(abs(rows["hotpack"] - ours), CHUNK, "compare and the run itself")
        self.assertIn(f"hotpack: held at most {ours / MIB:.1f} MiB ", done.stderr)
        for name, title in (("pytorch", "PyTorch held at most"), ("pytorch-expandable", "... with expandable segments")):
            with self.subTest(name):
                self.assertLessEqual(abs(rows[name] - real[name]), real[name] // 50, "PyTorch, simulated and itself")
                who = "less than hotpack" if real[name] < ours else "more than hotpack" if real[name] > ours else "as much as hotpack"
                self.assertTrue(cards[title].endswith(who), f"{cards[title]}: really {real[name] / MIB} and {ours / MIB}")


if __name__ == "__main__":
    if importlib.util.find_spec("transformers") is None:
        print("skipped: no transformers")
        sys.exit(77)
    if not JOB.exists():
        print(f"skipped: no {JOB}")
        sys.exit(77)
    unittest.main()
