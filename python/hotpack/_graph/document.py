"""From a recorded step to its document (docs/graph_format.md)."""

import json
from typing import Any, Optional, Union

from . import costs, places
from .blocks import Block, Blocks
from .kinds import Kinds
from .recorder import Operator, Recorder
from .values import BEFORE, Value

FORMAT, VERSION = "hotpack-step", 1
GIVEN_LINE = "(before the step)"
NO_MODULE = "(no module)"


class Step:
    """A recorded step. device: that of the document; values elsewhere have no bytes. blocks: None without hotpack's
    allocator, then a value's life is its storage's, and what no tensor shows is not known."""

    def __init__(self, recorder: Recorder, kinds: Kinds, number: int, device: Any,
                 blocks: "Optional[Blocks]", gpu: str, measured: bool) -> None:
        self.recorder = recorder
        self.number = number
        self.device = device
        self.gpu = gpu
        self.measured = measured
        self._operators = recorder.operators
        self._values = recorder.values.all
        self._blocks = blocks
        for number_of, operator in enumerate(self._operators):  # what follows the last backward belongs to the update
            if operator.phase == "forward" and 0 <= recorder.last_backward < number_of:
                operator.phase = "update"
        self._outside = {value.number: value.bytes for value in self._values if value.device != device}
        for value in self._values:
            if value.number in self._outside:
                value.bytes = 0
        self._workspaces: list[Block] = []
        if blocks is not None:
            self._use_blocks(blocks)
        kinds.finish(self._outside)
        self._name()
        self.optimizers = kinds.optimizers()
        self._cost()
        self._loads = self._live()

    def _use_blocks(self, blocks: Blocks) -> None:
        inside = [value for value in self._values if value.number not in self._outside]
        blocks.match(inside)
        matched = set()
        for block in blocks.all:
            value = block.value
            if value is None:
                if block.born == BEFORE or block.released is None or block.released > block.born:
                    self._workspaces.append(block)
                continue
            matched.add(value.number)
            value.bytes = block.bytes
            value.born = min(value.born, block.born) if block.born != BEFORE else BEFORE
            value.released = block.released
        for value in inside:
            if value.number not in matched:  # memory of another allocator, such as a captured graph's
                self._outside[value.number] = value.bytes
                value.bytes = 0

    def _live(self) -> "list[int]":
        """By operator: the bytes that values, and blocks of no tensor, take while it runs. Sets the workspaces."""
        count = len(self._operators)
        change = [0] * (count + 1)
        lives: list[Union[Value, Block]] = [*self._values, *self._workspaces]
        for life in lives:
            if life.released is not None and life.released < 0:
                continue
            change[max(life.born, 0)] += life.bytes
            change[count if life.released is None else life.released + 1] -= life.bytes
        loads, live = [], 0
        for number, operator in enumerate(self._operators):
            live += change[number]
            if self._blocks is not None:
                operator.workspace = max(0, self._blocks.peak_of(self._operators, number)[0] - live)
            loads.append(live + operator.workspace)
        return loads

    def _name(self) -> None:
        taken: set[str] = set()
        for value in self._values:
            name = value.name
            if name is None:
                maker = self._operators[value.maker].name if value.maker is not None else value.kind or "value"
                name = f"{maker.rpartition('::')[2]}.{value.number}"
            value.name, again = name, 2
            while value.name in taken:
                value.name = f"{name}#{again}"
                again += 1
            taken.add(value.name)

    def _cost(self) -> None:
        half = {self.recorder.torch.float16, self.recorder.torch.bfloat16}
        values_of_half = {entry[0] for entry in self.recorder.tensors if entry[1] in half}
        for operator in self._operators:
            if operator.name == "input" or self._is_outside(operator):
                continue
            if self.measured and operator.timer is not None:
                operator.cost = self.recorder.timers.nanoseconds(operator.timer)
                continue
            uses_half = any(number in values_of_half for number in operator.reads)
            operator.cost = costs.roofline(self.gpu, operator.flops, operator.bytes, uses_half)

    def _is_outside(self, operator: Operator) -> bool:
        used = operator.reads + operator.writes + operator.updates
        return bool(used) and all(number in self._outside for number in used)

    def _comes_in(self, operator: Operator) -> bool:
        """It copies from another device, where the program may let go of the source."""
        return (any(number in self._outside for number in operator.reads)
                and any(number not in self._outside for number in operator.writes + operator.updates))

    # The peak.

    def peak(self) -> "dict[str, Any]":
        """The composition of what is live at the peak; each list adds up to `bytes`."""
        if not self._operators:
            return {"bytes": 0, "step": self.number, "by_kind": {}, "by_module": [], "by_line": []}
        top = max(range(len(self._operators)), key=lambda number: (self._peak_at(number), -number))
        operator = self._operators[top]
        parts: list[tuple[str, str, str, int]] = []  # kind, module, line, bytes
        if self._blocks is not None:
            moment = self._blocks.peak_of(self._operators, top)[1]
            for block in self._blocks.live_at(moment):
                if block.value is not None:
                    parts.append(self._part(block.value, block.bytes))
                elif block.born == BEFORE or block in self._workspaces:
                    maker = self._operators[block.born] if block.born != BEFORE else None
                    parts.append(("workspace", *self._where(maker), block.bytes))
                else:
                    parts.append(("workspace", *self._where(operator), block.bytes))
        else:
            parts = [self._part(value, value.bytes) for value in self._values
                     if value.bytes and max(value.born, 0) <= top and (value.released is None or value.released >= top)]
        by_kind: dict[str, int] = {}
        for kind, _, _, size in parts:
            by_kind[kind] = by_kind.get(kind, 0) + size
        place = operator.place
        return {
            "bytes": sum(part[3] for part in parts), "step": self.number, "phase": operator.phase,
            "operator": operator.name, "line": self._line(place), "module": self.recorder.modules.name(place.module),
            "node": top, "by_kind": dict(sorted(by_kind.items(), key=lambda entry: -entry[1])),
            "by_module": _grouped("module", [(part[1], part[0], part[3]) for part in parts]),
            "by_line": _grouped("line", [(part[2], part[0], part[3]) for part in parts]),
        }

    def end(self) -> int:
        """Bytes that are live after the step."""
        if self._blocks is not None:
            return self._blocks.loads[-1]
        return sum(value.bytes for value in self._values if value.released is None)

    def _peak_at(self, number: int) -> int:
        if self._blocks is not None:
            return self._blocks.peak_of(self._operators, number)[0]
        return self._loads[number]

    def _part(self, value: Value, size: int) -> "tuple[str, str, str, int]":
        module, line = NO_MODULE, GIVEN_LINE
        if value.place is not None:
            module = self.recorder.modules.name(value.place.module) or NO_MODULE
            line = self._line(value.place) or GIVEN_LINE
        return value.kind or "temporary", module, line, size

    def _where(self, operator: "Optional[Operator]") -> "tuple[str, str]":
        if operator is None:
            return NO_MODULE, GIVEN_LINE
        place = operator.place
        return self.recorder.modules.name(place.module) or NO_MODULE, self._line(place) or GIVEN_LINE

    @staticmethod
    def _line(place: places.Place) -> "Optional[str]":
        return places.text(place.line) or places.text(place.library_line)

    # The document.

    def storages(self) -> "list[dict[str, Any]]":
        listed = []
        for value in self._values:
            entry: dict[str, Any] = {"name": value.name, "bytes": value.bytes, "kind": value.kind}
            if value.maker is None and value.born == BEFORE:
                entry["given"] = True
            if value.released is None:
                entry["kept"] = True
            if value.held:
                entry["held"] = True
            if value.number in self._outside:
                entry["device"], entry["bytes_there"] = str(value.device), self._outside[value.number]
            entry["born"] = value.born
            entry["released"] = value.released
            self._add_place(entry, value.place)
            if value.saves:
                entry["saved"] = [self._save(save) for save in value.saves]
            listed.append(entry)
        taken = {entry["name"] for entry in listed}
        for number, block in enumerate(self._workspaces):
            name = f"workspace.{number}"
            while name in taken:
                name += "#"
            entry = {"name": name, "bytes": block.bytes, "kind": "workspace", "held": True, "born": block.born,
                     "released": block.released}
            if block.born == BEFORE:
                entry["given"] = True
            else:
                self._add_place(entry, self._operators[block.born].place)
            if block.released is None:
                entry["kept"] = True
            listed.append(entry)
        return listed

    def _add_place(self, entry: "dict[str, Any]", place: "Optional[places.Place]") -> None:
        if place is None:
            return
        for key, found in (("module", self.recorder.modules.name(place.module)), ("line", places.text(place.line)),
                           ("library_line", places.text(place.library_line))):
            if found is not None:
                entry[key] = found

    def _save(self, save: Any) -> "dict[str, Any]":
        entry: dict[str, Any] = {"by": self.recorder.forward_of(save.sequence), "node": save.node}
        last = len(self._operators) - 1
        entry["unpacked"] = [min(number, last) for number in save.unpacked]
        return entry

    def operators(self) -> "list[dict[str, Any]]":
        names = [value.name for value in self._values]
        workspaces: dict[int, list[str]] = {}
        for number, block in enumerate(self._workspaces):
            if block.born != BEFORE:
                workspaces.setdefault(block.born, []).append(f"workspace.{number}")
        listed = []
        for number, operator in enumerate(self._operators):
            entry: dict[str, Any] = {"name": operator.name, "cost_ns": operator.cost, "phase": operator.phase}
            for key, used in (("reads", operator.reads), ("writes", operator.writes), ("updates", operator.updates),
                              ("statistics", operator.statistics)):
                if used:
                    entry[key] = [names[value] for value in used]
            if number in workspaces:
                entry.setdefault("writes", []).extend(workspaces[number])
            if operator.workspace:
                entry["workspace"] = operator.workspace
            traits = operator.traits
            if traits is None:
                entry["once"] = True
            else:
                flags = {"heavy": traits.heavy, "random": traits.random, "collective": traits.collective,
                         "once": traits.foreign or self._comes_in(operator), "unrepeatable": traits.atomic}
                entry.update({key: True for key, is_so in flags.items() if is_so})
            if operator.flops:
                entry["flops"] = int(operator.flops)
            if operator.node is not None:
                entry["node"] = operator.node
            if operator.forward is not None:
                entry["forward"] = operator.forward
            self._add_place(entry, operator.place)
            if operator.call is not None:
                entry["call"] = dict(operator.call, results=operator.results)
            listed.append(entry)
        return listed

    def tensors(self) -> "list[list[Any]]":
        values = self._values
        return [[values[value].name, str(dtype).replace("torch.", ""), list(size), list(stride), offset]
                for value, dtype, size, stride, offset in self.recorder.tensors]

    def facts(self, allocator: "Optional[str]", simulated: bool) -> "dict[str, Any]":
        torch = self.recorder.torch
        return {"format": FORMAT, "version": VERSION, "torch": torch.__version__, "device": str(self.device),
                "allocator": allocator, "simulated": simulated,
                "costs": "measured" if self.measured else f"roofline: {self.gpu}", "step": self.number}


def _grouped(key: str, parts: "list[tuple[str, str, int]]") -> "list[dict[str, Any]]":
    groups: dict[str, dict[str, int]] = {}
    for group, kind, size in parts:
        of = groups.setdefault(group, {})
        of[kind] = of.get(kind, 0) + size
    rows = [{key: group, "bytes": sum(of.values()), "kinds": dict(sorted(of.items(), key=lambda entry: -entry[1]))}
            for group, of in groups.items()]
    return sorted(rows, key=lambda row: -int(str(row["bytes"])))


def write_text(step: Step, facts: "dict[str, Any]") -> str:
    """The document without its end: the list of steps, which grows (see end_text)."""
    lines = [f"{json.dumps(key)}: {_dump(value)}" for key, value in facts.items()]
    for key, items in (("storages", step.storages()), ("operators", step.operators()), ("tensors", step.tensors()),
                       ("optimizers", step.optimizers)):
        lines.append(f"{json.dumps(key)}: [\n  " + ",\n  ".join(_dump(item) for item in items) + "\n ]")
    lines.append(f'"peak": {_dump(step.peak())}')
    return "{" + ",\n ".join(lines) + ",\n "


def end_text(steps: "list[dict[str, Any]]") -> str:
    return '"steps": [\n  ' + ",\n  ".join(_dump(step) for step in steps) + "\n ]}\n"


def _dump(value: Any) -> str:
    return json.dumps(value, separators=(", ", ": "), allow_nan=False)
