#!/usr/bin/env python3
"""Writes the binary seeds of this folder: trace files, programs (ELF), files of figures, plans and
memory snapshots. Deterministic.

    tests/fuzz/corpus/make_seeds.py [FOLDER]     (default: the folder of this script)

They are encoded here after docs/trace_format.md, docs/plan_format.md, the System V ABI and runtime/stats_file.h, independently of the code.
"""

import os
import pickle
import struct
import sys

STATS_VERSION = 4  # kStatsVersion
SLOT_BYTES = 880   # sizeof(StatsSlot)
SLOTS = 16         # kStatsSlots


def varint(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def trace(records, state=1, committed=None, program=b"train", version=1):
    length = 256 + len(records) if committed is None else committed
    head = b"\x89hotpack" + struct.pack("<HHIQQII", version, 256, state, length, 1_700_000_000 * 10**9, 42, len(program))
    return (head + program).ljust(256, b"\0") + records


def traces():
    next_units, release_last, mark = b"\x61", b"\x02", b"\x03"
    step = mark + next_units + varint(19) + next_units + varint(3) + release_last + b"\x00" + release_last + b"\x02"
    timed = b"\x39" + b"\x01" + varint(7) + varint(2) + varint(200) + varint(700)
    plain = b"\x01" + varint(2 * 9) + varint(512)
    wide = b"\x01" + varint(2**64 - 2) + varint(2**40)
    name = b"\x06\x01\x04gemm" + b"\x06\x01\x0fmain (a.py:1)\nf"
    launch = b"\x1e\x02\x00\x01\x02" + varint(600) + b"\x01\x02\x00\x02"
    notes = (next_units + varint(19) + next_units + varint(3) + name + b"\x06\x05\x00\x02" + launch * 2 +
             b"\x06\x03\x02" + varint(2000) + varint(500) + b"\x00" + b"\x06\x04\x01\x01" + b"\x06\x04\x03\x07\x02" +
             b"\x06\x04\x04\x07" + b"\x06\x04\x02" + b"\x06\x04\x05\x00" + b"\x06\x06\x00\x03" + varint(2**40) +
             varint(4096) + b"\x01" + release_last + b"\x00" + b"\x06\x02\x00\x01\x02")
    return {
        "notes": trace(notes, version=2),
        "steps": trace(step * 6 + mark),
        "context": trace(timed + b"\x1a" + varint(9) + b"\x00" + b"\x04" + timed + b"\x05" + mark, state=2),
        "ids": trace(plain + b"\x02\x00" + wide + b"\x02\x00", state=3),
        "open": trace(step + b"\0" * 40, state=0, committed=256 + len(step)),
        "empty": trace(b""),
        "cut": trace(step)[:300],
        "header-only": trace(b"")[:100],
    }


def elf(rodata=b"", needed=None):
    """A program with the sections .rodata, .dynamic, .dynstr and .shstrtab."""
    names = b"\0.rodata\0.dynamic\0.dynstr\0.shstrtab\0"
    strings = b"\0" + (needed or b"libc.so.6") + b"\0"
    dynamic = struct.pack("<QQQQ", 1, 1, 0, 0)
    at, parts, headers = 64, b"", [b"\0" * 64]
    for name, kind, content in ((b".rodata", 1, rodata), (b".dynamic", 6, dynamic), (b".dynstr", 3, strings),
                                (b".shstrtab", 3, names)):
        headers.append(struct.pack("<IIQQQQIIQQ", names.index(name + b"\0"), kind, 0, 0, at + len(parts), len(content),
                                   0, 0, 1, 0))
        parts += content
    header = b"\x7fELF\x02\x01\x01".ljust(16, b"\0") + struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, 0, 0, at + len(parts), 0,
                                                                   64, 56, 0, 64, len(headers), len(headers) - 1)
    return header + parts + b"".join(headers)


def programs():
    texts = (b"cuGetExportTable", b"CUDA driver version is insufficient for CUDA runtime version",
             b"launch would exceed maximum depth of nested launches",
             b"launch failed because kernel uses unsupported, file-scoped textures (texture objects are supported)")
    runtime = b"\0" + b"\0".join(texts) + b"\0"
    return {"runtime-inside": elf(runtime), "runtime-shared": elf(runtime, b"libcudart.so.13"), "plain": elf(b"hello\0"),
            "header": elf()[:64], "script": b"#!/bin/sh\n"}


def figures(arenas, requests):
    header = struct.pack("<QIIiIQ", 0x315454534B504F48, STATS_VERSION, SLOT_BYTES, 42, arenas, 3) + b"train".ljust(224, b"\0")
    slots = b"".join(struct.pack(f"<{SLOT_BYTES // 8}q", *([requests * (i + 1)] * 6), 4, *([7] * (SLOT_BYTES // 8 - 7)))
                     for i in range(SLOTS))
    return header + slots


def stats():
    whole = figures(2, 1000)
    return {"two-arenas": whole, "no-arena": figures(0, 0), "many-arenas": figures(40, 5), "cut": whole[:1000]}


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


NONE = 0xFFFFFFFF


def script(entries, height, load, unroll=1):
    """entries: (units, age, offset) each; age 0: not planned. height, load: units of 512 bytes."""
    head = struct.pack("<IIIIQQQ", len(entries), len(entries) // unroll, unroll, 0, height * 512, load * 512, load * 512)
    return head + b"".join(struct.pack("<IIII", units, age, age, offset) for units, age, offset in entries)


def plan(scripts, opening=(), before=0, program=b"/usr/bin/train", device=b"A device"):
    body = b"".join(scripts) + b"".join(struct.pack("<II", units, entry) for units, entry in opening)
    head = b"\x89hotplan" + struct.pack("<HHIQIIQQQQQIIII", 1, 512, len(scripts), 512 + len(body), 0, 100,
                                        1_700_000_000 * 10**9, 2 << 20, 80 << 30, 9 << 20, before, len(opening), 0,
                                        len(program), len(device))
    file = head + program.ljust(256, b"\0") + device.ljust(128, b"\0")
    file = file.ljust(512, b"\0") + body
    return file[:24] + struct.pack("<I", crc32c(file)) + file[28:]


def plans():
    three = script([(3, 2, 0), (5, 0, NONE), (4, 2, 3), (3, 1, 0)], 7, 7)
    carried = script([(8, 3, 0), (2, 1, 8), (2, 2, 8)], 10, 10)
    twice = script([(4, 2, 0), (1, 1, 4), (4, 3, 5), (1, 1, 4)], 9, 8, unroll=2)
    whole = plan([three, carried], [(9, NONE), (3, 0), (5, NONE), (4, 2)], 1)
    return {"two-scripts": whole, "carried": plan([carried]), "unrolled": plan([twice], [(1, 1)]), "cut": whole[:600],
            "header": whole[:512], "version": whole[:8] + b"\x02" + whole[9:]}


def snapshots():
    """Memory snapshots of PyTorch, in each protocol of pickle; and what is none."""
    frames = [{"filename": "train.py", "line": 7, "name": "step"}]
    blocks = [{"address": 4096, "size": 512, "requested_size": 500, "state": "active_allocated", "frames": frames},
              {"address": 4608, "size": 2048, "requested_size": 0, "state": "inactive", "frames": []},
              {"size": 512, "state": "active_allocated", "history": [{"addr": 6656, "real_size": 5}]}]
    segment = {"device": 0, "address": 4096, "total_size": 1 << 21, "stream": 0, "segment_pool_id": (0, 0),
               "is_expandable": False, "blocks": blocks, "frames": frames}
    steps = [("segment_alloc", 4096, 1 << 21, 0), ("free_completed", 9000, 8, 0), ("alloc", 4608, 700, 0),
             ("alloc", 1 << 46, 2**40, 0x55D000001000), ("free_requested", 4608, 700, 0), ("alloc", 5120, 1, 3),
             ("free_completed", 4608, 700, 0), ("free_requested", 8000, 30, 3), ("alloc", 5120, 2, 3)]
    history = [{"action": action, "addr": addr, "size": size, "stream": stream, "time_us": 10**15 + i, "frames": frames}
               for i, (action, addr, size, stream) in enumerate(steps)]
    history.append({"action": "oom", "size": 2**36, "device_free": 5, "stream": 0, "time_us": 10**15 + 99})
    history += [{"action": "snapshot", "addr": 0, "size": 0, "stream": 0, "user_metadata": f"hotpack {mark}"}
                for mark in ("step", "interrupt", "resume")]
    whole = {"segments": [segment], "device_traces": [[], history], "allocator_settings": {"threshold": 0.5, "on": True}}
    whole["segments"].append(dict(segment, device=1))
    seeds = {f"protocol{protocol}": pickle.dumps(whole, protocol) for protocol in (2, 3, 4, 5)}
    seeds["no-history"] = pickle.dumps({"segments": [segment], "device_traces": [[], []]}, 4)
    seeds["segments"] = pickle.dumps([segment], 2)
    seeds["cut"] = seeds["protocol4"][:200]
    seeds["call"] = b"\x80\x02cos\nsystem\nX\x04\0\0\0true\x85R."
    entry = b"X\x06\0\0\0actionX\x05\0\0\0allocX\x04\0\0\0addr%sX\x04\0\0\0size%s"
    seeds["operations"] = (b"\x80\x02}q\0X\x0d\0\0\0device_traces](](}(" + entry % (b"K\x09", b"J\0\x02\0\0") + b"u(" +
                           entry % (b"\x8a\x02\x01\x02", b"M\0\x04") + b"dN20(K\x01t\x8b\x01\0\0\0\x070(N1h\0ees.")
    return seeds


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__))
    for target, seeds in {"trace": traces(), "elf": programs(), "stats": stats(), "plan": plans(),
                          "snapshot": snapshots()}.items():
        os.makedirs(os.path.join(folder, target), exist_ok=True)
        for name, contents in seeds.items():
            with open(os.path.join(folder, target, name), "wb") as file:
                file.write(contents)


if __name__ == "__main__":
    main()
