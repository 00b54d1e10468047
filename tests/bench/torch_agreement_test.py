"""bench/torch/peers_agree without PyTorch: what counts as agreement, and the tables' text."""

import json
import os
import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench" / "torch"))
from agreement import PEERS, Agreement, Tight, missed, render, render_tight, take  # noqa: E402
from cells import Cell, Job, OutOfMemory  # noqa: E402
from device_size_case import MIB, DeviceSizeCase  # noqa: E402


class FakeMachine:
    """PyTorch reserves `real` MiB and needs `least` of them; the simulation says `simulated` and `needed`."""

    def __init__(self, real=100, simulated=100, least=60, needed=60):
        self.real, self.simulated, self.least, self.needed = real, simulated, least, needed
        self.memories, self.traces = [], []

    def run(self, job, allocator, trace=None):
        if trace is not None:
            self.traces.append(trace)
        memory = int(os.environ["SIMGPU_MEMORY"])
        self.memories.append(memory)
        if memory < self.least * MIB:
            raise OutOfMemory("full")
        return Cell({"batch": 4, "torch": "2.0"}, {"torch_reserved_peak": min(self.real * MIB, memory)})

    def compare(self, trace, peers, capacity=None):
        assert trace in self.traces
        rows = {}
        for peer in peers:
            full = capacity is not None and capacity < self.needed * MIB
            reserved = self.simulated * MIB if capacity is None else min(self.simulated * MIB, capacity)
            rows[peer] = {"out_of_memory": True} if full else {"reserved_peak": reserved}
        return {"live_peak": 40 * MIB, "rows": rows}


class AgreementTest(DeviceSizeCase):
    def agreement(self, tight=False, **figures):
        self.machine = FakeMachine(**figures)
        return take(self.machine, Job("vit"), Path("folder"), tight)

    def test_two_percent_either_way(self):
        for simulated, faults in ((100, 0), (98, 0), (102, 0), (97, 2), (103, 2)):
            with self.subTest(simulated):
                self.assertEqual(len(missed([self.agreement(simulated=simulated)])), faults)

    def test_the_recording_is_what_is_simulated(self):
        self.agreement()
        self.assertEqual(self.machine.traces, [Path("folder/vit.trace")])

    def test_a_tight_device_is_half_way_between_live_and_reserved(self):
        row = self.agreement(tight=True)
        self.assertEqual({allocator: tight.capacity for allocator, tight in row.tight.items()},
                         dict.fromkeys(PEERS, 70 * MIB))
        self.assertEqual(missed([row]), [])
        self.assertEqual(self.machine.memories.count(70 * MIB), 2)
        self.assertEqual(os.environ["SIMGPU_MEMORY"], str(1 << 40))

    def test_out_of_memory_must_agree_too(self):
        self.assertEqual(missed([self.agreement(tight=True, least=80, needed=80)]), [])
        for figures in ({"least": 80}, {"needed": 80}):
            with self.subTest(figures):
                faults = missed([self.agreement(tight=True, **figures)])
                self.assertEqual(len(faults), 2)
                self.assertIn("vit, default, with 70 MiB: they differ", faults[0])
        self.assertFalse(Tight(1, None, 5).agrees)

    def test_figures_stand_in_their_columns(self):
        rows = [self.agreement(tight=True, simulated=101, least=80, needed=80)]
        self.assertEqual([Agreement.from_json(json.loads(json.dumps(row.as_json()))) for row in rows], rows)
        self.assertEqual([part.strip() for part in render(rows).splitlines()[2].split("|")[1:-1]],
                         ["vit", "4", "100.0", "101.0", "+1.00%", "100.0", "101.0", "+1.00%"])
        self.assertEqual([part.strip() for part in render_tight(rows).splitlines()[2].split("|")[1:-1]],
                         ["vit", "70", "out of memory", "out of memory", "70", "out of memory", "out of memory"])
        for text in (render(rows), render_tight(rows)):
            self.assertEqual(len({len(line) for line in text.splitlines()}), 1, text)


class HelpTest(unittest.TestCase):
    def test_both_commands_explain_themselves(self):
        for command in ("compare", "peers_agree"):
            with self.subTest(command):
                path = Path(__file__).resolve().parents[2] / "bench" / "torch" / command
                done = subprocess.run([path, "--help"], capture_output=True, text=True)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assertIn("--check", done.stdout)


if __name__ == "__main__":
    unittest.main()
