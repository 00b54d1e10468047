#!/usr/bin/env python3
"""Compares the hook lists with the driver's newest header.

    hook_list_test.py SOURCE_DIR INCLUDE_DIR...

A driver function that takes a device pointer or a stream, in a parameter or inside a structure, is hooked or has a
reason in preload/hooks/unhooked.txt. The signatures are those of cudaTypedefs.h, one for each version and each kind of
default stream, as cuGetProcAddress knows them. Of several include directories the newest header counts.
"""

import re
import sys
import unittest
from pathlib import Path

SOURCE = Path(sys.argv[1])
INCLUDES = [Path(folder) for folder in sys.argv[2:]]
POINTERS = {"CUdeviceptr", "CUdeviceptr_v1", "CUdeviceptr_v2", "CUstream"}
Signature = tuple[str, int, int]  # base name, version, default stream: 1 legacy or any, 2 per thread


def read(path: Path) -> str:
    text = re.sub(r"/\*.*?\*/", " ", path.read_text(errors="replace"), flags=re.S)
    return re.sub(r"//[^\n]*", " ", text)


def version_of(folder: Path) -> int:
    found = re.search(r"#define\s+CUDA_VERSION\s+(\d+)", (folder / "cuda.h").read_text(errors="replace"))
    return int(found[1]) if found else 0


def words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text))


def carriers(header: str) -> set[str]:
    """The type names that are a device pointer or a stream, or have one inside."""
    bodies: dict[str, set[str]] = {}
    for start in re.finditer(r"typedef\s+struct\s+\w*\s*\{", header):
        depth, end = 1, start.end()
        while depth > 0:
            depth += {"{": 1, "}": -1}.get(header[end], 0)
            end += 1
        if name := re.match(r"\s*(\w+)\s*;", header[end:]):
            bodies[name[1]] = words(header[start.end() : end])
    for alias in re.finditer(r"typedef\s+(?:struct\s+)?(\w+)\s+\*?\s*(\w+)\s*;", header):
        bodies.setdefault(alias[2], {alias[1]})
    found = set(POINTERS)
    while more := {name for name, body in bodies.items() if name not in found and body & found}:
        found |= more
    return found


def signatures(folder: Path) -> dict[Signature, set[str]]:
    """Every function of the header -> the carriers among its parameters."""
    carry = carriers(read(folder / "cuda.h"))
    pattern = r"\(\s*CUDAAPI\s*\*\s*PFN_(cu\w+?)_v(\d+)(_ptsz|_ptds)?\s*\)\s*\((.*?)\)\s*;"
    found = re.findall(pattern, read(folder / "cudaTypedefs.h"), flags=re.S)
    return {(name, int(version), 2 if kind else 1): words(text) & carry for name, version, kind, text in found}


def hooked() -> set[Signature]:
    rows = set()
    for name in ("hook_list.h", "work_list.h"):
        text = (SOURCE / "preload/hooks" / name).read_text()
        for base, version, stream in re.findall(r"X\(\w+,\s*\"(\w+)\",\s*(\d+),\s*(\d)", text):
            rows.add((base, int(version), int(stream)))
    return rows


def reasons() -> dict[str, str]:
    """A name or NAME/VERSION -> why it has no hook."""
    table: dict[str, str] = {}
    reason = ""
    for line in (SOURCE / "preload/hooks/unhooked.txt").read_text().splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        if not line.startswith(" "):
            reason = line
            continue
        for name in line.split():
            assert reason, f"{name} has no reason"
            assert name not in table, f"{name} is listed twice"
            table[name] = reason
    return table


class HookList(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        folders = [folder for folder in INCLUDES if (folder / "cudaTypedefs.h").exists()]
        if not folders:
            raise unittest.SkipTest("no include directory has cudaTypedefs.h")
        cls.folder = max(folders, key=version_of)
        cls.signatures = signatures(cls.folder)
        cls.hooked = hooked()
        cls.reasons = reasons()
        print(f"CUDA {version_of(cls.folder)}, {len(cls.signatures)} signatures", file=sys.stderr)

    def reason(self, signature: Signature) -> str | None:
        name, version, _ = signature
        return self.reasons.get(f"{name}/{version}") or self.reasons.get(name)

    def test_the_header_is_understood(self) -> None:
        found = {name for (name, _, _), carry in self.signatures.items() if carry}
        self.assertGreater(len(self.signatures), 600)
        self.assertGreater(len(found), 140)
        # By value, by pointer, inside a structure, inside a union of a structure.
        for name in ("cuMemFree", "cuMemAlloc", "cuStreamQuery", "cuMemcpy3D", "cuLaunchKernelEx", "cuGraphAddNode"):
            self.assertIn(name, found)
        for name in ("cuInit", "cuEventQuery", "cuModuleLoadData", "cuMemGetInfo"):
            self.assertNotIn(name, found)

    def test_every_function_is_hooked_or_has_a_reason(self) -> None:
        missing = sorted(
            f"{name} of {version}, default stream {stream}: {', '.join(sorted(carry))}"
            for (name, version, stream), carry in self.signatures.items()
            if carry and (name, version, stream) not in self.hooked and not self.reason((name, version, stream))
        )
        self.assertEqual(missing, [], "hook these, or give a reason in preload/hooks/unhooked.txt")

    def test_no_reason_is_stale(self) -> None:
        stale = []
        for entry in self.reasons:
            name, _, version = entry.partition("/")
            known = [s for s in self.signatures if s[0] == name and version in ("", str(s[1]))]
            # A row of a newer header than this one is not stale.
            if known and all(signature in self.hooked for signature in known):
                stale.append(entry)
        self.assertEqual(stale, [], "these are hooked")

    def test_the_hooks_are_in_the_header(self) -> None:
        unknown = sorted(f"{s[0]} of {s[1]}, default stream {s[2]}" for s in self.hooked if s not in self.signatures)
        newest = version_of(self.folder)
        unknown = [row for row in unknown if int(row.split(" of ")[1].split(",")[0]) <= newest]
        self.assertEqual(unknown, [], "cuGetProcAddress answers no such look-up")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
