#!/usr/bin/env python3
"""NVIDIA's own CUDA runtimes under the preload, on a stub driver that only logs what they look up.

    runtimes_test.py SOURCE_DIR BUILD_DIR PRELOAD

The runtimes are those of PyPI's packages at pinned versions (docs/dependencies.md), and of PyTorch's environment. They
fail to start on the stub, which is no driver of NVIDIA's. Only their look-ups matter: each that the hook lists cover,
by name, version and flags, must be answered by hotpack's hook.
"""

import os
import re
import subprocess
import sys
import unittest
from pathlib import Path

SOURCE, BUILD, PRELOAD = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
SKIPPED = 77
# What a runtime needs for allocations, copies, launches and streams.
WANTED = {
    "cuMemAlloc", "cuMemAllocPitch", "cuMemFree", "cuMemAllocAsync", "cuMemAllocFromPoolAsync", "cuMemFreeAsync",
    "cuMemGetInfo", "cuPointerGetAttributes", "cuIpcGetMemHandle", "cuMemcpyAsync", "cuMemcpyHtoDAsync",
    "cuMemcpyPeerAsync", "cuMemsetD8Async", "cuMemsetD2D8Async", "cuLaunchKernel", "cuLaunchCooperativeKernel",
    "cuLaunchHostFunc", "cuGraphLaunch", "cuStreamDestroy", "cuStreamBeginCapture", "cuStreamEndCapture",
    "cuDevicePrimaryCtxRetain", "cuDevicePrimaryCtxRelease", "cuDevicePrimaryCtxReset",
}  # fmt: skip


def runtimes() -> dict[str, Path]:
    """Version of the package -> its libcudart."""
    folder = BUILD / "cuda-runtimes"
    install = [sys.executable, SOURCE / "tools/pins", "--install", "cuda-runtimes", folder]
    done = subprocess.run(install, capture_output=True, text=True)
    if done.returncode != 0:
        print(done.stdout + done.stderr, file=sys.stderr)
    found = {}
    for base in (folder, BUILD / "torch-venv"):
        for path in sorted(base.glob("lib/python3*/site-packages/nvidia/*/lib/libcudart.so.*")):
            found[f"{base.name}/{path.parts[-3]}/{path.name}"] = path
    return found


class Runtimes(unittest.TestCase):
    def rows(self, runtime: Path, enabled: str) -> list[list[str]]:
        environment = dict(os.environ, LD_PRELOAD=PRELOAD, HOTPACK=enabled, STUB_ALL_HOOKS="1",
                           LD_LIBRARY_PATH=str(BUILD / "tests/preload/stub"))  # fmt: skip
        client = BUILD / "tests/preload/runtimes_client"
        done = subprocess.run([client, runtime], env=environment, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [line.split() for line in done.stdout.splitlines()]

    def test_listed_look_ups_are_hooked(self) -> None:
        for name, runtime in RUNTIMES.items():
            with self.subTest(name):
                rows = self.rows(runtime, "1")
                self.assertGreater(len(rows), 350)
                wrong = [row for row in rows if row[4] == "listed" and row[5] != "hook"]
                self.assertEqual(wrong, [], "answered past the hook")
                self.assertEqual([row for row in rows if row[4] == "unlisted" and row[5] == "hook"], [])
                self.assertEqual(WANTED - {row[0] for row in rows if row[5] == "hook"}, set())
                # Both kinds of default stream: flags 0 or 1, and 2.
                flags = {row[2] for row in rows if row[0] == "cuLaunchKernel"}
                self.assertIn("2", flags)

    def test_every_version_that_they_ask_for_is_listed(self) -> None:
        """A look-up of a hooked name whose version is older than every row would be answered without a hook."""
        oldest: dict[str, int] = {}
        for name in ("hook_list.h", "work_list.h"):
            text = (SOURCE / "preload/hooks" / name).read_text()
            for base, version in re.findall(r"X\(\w+,\s*\"(\w+)\",\s*(\d+),", text):
                oldest[base] = min(oldest.get(base, 1 << 30), int(version))
        for name, runtime in RUNTIMES.items():
            with self.subTest(name):
                below = [row for row in self.rows(runtime, "1") if int(row[1]) < oldest.get(row[0], 0)]
                self.assertEqual(below, [])

    def test_without_hotpack_none_is_hooked(self) -> None:
        for name, runtime in RUNTIMES.items():
            with self.subTest(name):
                self.assertEqual([row for row in self.rows(runtime, "0") if row[5] == "hook"], [])


if __name__ == "__main__":
    RUNTIMES = runtimes()
    if not RUNTIMES:
        print("skipped: NVIDIA's runtimes are not installed and could not be fetched", file=sys.stderr)
        sys.exit(SKIPPED)
    print(", ".join(RUNTIMES), file=sys.stderr)
    unittest.main(argv=sys.argv[:1])
