"""Placements from minimalloc CSVs, and the two procedures that are drawn, done over in the plainest way."""

import collections
import csv

# intervals: of residency, half-open, ascending.
Block = collections.namedtuple("Block", "name size intervals offset")


def read(path):
    """What `hotpack pack ... --out PATH` wrote."""
    blocks = []
    with open(path, newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            begin, intervals = int(row["lower"]), []
            for gap in (row.get("gaps") or "").split():
                gap_begin, gap_end = map(int, gap.split("-"))
                intervals.append((begin, gap_begin))
                begin = gap_end
            intervals.append((begin, int(row["upper"])))
            blocks.append(Block(row["id"], int(row["size"]), intervals, int(row["offset"])))
    return blocks


def height_of(blocks):
    return max(block.offset + block.size for block in blocks)


def load(blocks):
    """(clock, load from there on), ascending."""
    changes = collections.Counter()
    for block in blocks:
        for begin, end in block.intervals:
            changes[begin] += block.size
            changes[end] -= block.size
    steps, now = [], 0
    for clock in sorted(changes):
        now += changes[clock]
        steps.append((clock, now))
    return steps


# One step of best-fit. lines: [begin, end, height] before it. line: index of the chosen one. block: index, or None for
# a lift. to: top of the block, or the height lifted to.
Step = collections.namedtuple("Step", "lines line block to")


def _life(block):
    return block.intervals[0][1] - block.intervals[0][0]


def best_fit(blocks):
    """The published procedure for blocks of one interval each: its steps. Checked against the offsets in `blocks`."""
    lines = [[min(b.intervals[0][0] for b in blocks), max(b.intervals[0][1] for b in blocks), 0]]
    waiting, steps = set(range(len(blocks))), []
    while waiting:
        at = min(range(len(lines)), key=lambda i: (lines[i][2], i))
        begin, end, height = lines[at]
        before = [list(line) for line in lines]
        fits = [i for i in waiting if begin <= blocks[i].intervals[0][0] and blocks[i].intervals[0][1] <= end]
        if fits:
            chosen = min(fits, key=lambda i: (-_life(blocks[i]), -blocks[i].size, i))
            waiting.remove(chosen)
            if blocks[chosen].offset != height:
                raise SystemExit(f"block {blocks[chosen].name}: the file is not the published best-fit's placement")
            to = height + blocks[chosen].size
            first, last = blocks[chosen].intervals[0]
            lines[at:at + 1] = [part for part in ([begin, first, height], [first, last, to], [last, end, height])
                                if part[0] < part[1]]
        else:
            chosen = None
            to = min(line[2] for line in lines[max(at - 1, 0):at + 2] if line[2] > height)
            lines[at][2] = to
        steps.append(Step(before, at, chosen, to))
        merged = []
        for line in lines:
            if merged and merged[-1][2] == line[2]:
                merged[-1][1] = line[1]
            else:
                merged.append(line)
        lines = merged
    return steps


class Node:
    """A node of the exact search (packer/exact_search.h) for blocks of one interval, without alignment and pins."""

    def __init__(self, blocks, capacity):
        self.blocks, self.capacity = blocks, capacity
        self.fault = None  # of a dead end: what exceeds the capacity, as (clique, indices in order, height)
        self.heads = [0] * len(blocks)
        self.waiting = set(range(len(blocks)))
        spans = [block.intervals[0] for block in blocks]
        self.meets = [[j for j, (b, e) in enumerate(spans) if j != i and b < spans[i][1] and spans[i][0] < e]
                      for i in range(len(blocks))]
        self.cliques = []  # (begin, end of a stretch of clock values, indices of the blocks resident there)
        clocks = sorted({clock for span in spans for clock in span})
        sets = [(a, b, frozenset(i for i, (begin, end) in enumerate(spans) if begin <= a and b <= end))
                for a, b in zip(clocks, clocks[1:])]
        for stretch in sets:
            if not any(stretch[2] < other[2] for other in sets):
                self.cliques.append(stretch)

    def copy(self):
        other = object.__new__(Node)
        other.__dict__.update(self.__dict__, heads=list(self.heads), waiting=set(self.waiting))
        return other

    def top(self, i):
        return self.heads[i] + self.blocks[i].size

    def of(self, clique):
        return sorted((i for i in clique[2] if i in self.waiting), key=lambda i: self.heads[i])

    def propagate(self):
        """One-machine bound and not-first, until nothing changes. A dead end leaves `fault`."""
        changed = True
        while changed:
            changed = False
            for clique in self.cliques:
                members, stack = self.of(clique), 0
                for i in members:
                    stack = max(stack, self.heads[i]) + self.blocks[i].size
                if stack > self.capacity:
                    self.fault = (clique, members, stack)
                    return self
                rest = sum(self.blocks[i].size for i in members)
                first = [i for i in members if self.heads[i] <= self.capacity - rest]
                for i in members:
                    lowest = min(map(self.top, first))
                    if i not in first and self.heads[i] < lowest:
                        self.heads[i], changed = lowest, True
        return self

    def facts(self, clique):
        """floor, ceiling, rest, choices, whether the branch without a choice is open; None where all is placed."""
        members = self.of(clique)
        if not members:
            return None
        floor = self.heads[members[0]]
        ceiling = min(map(self.top, members))
        choices = [i for i in members if self.heads[i] == floor]
        higher = [self.heads[i] for i in members if self.heads[i] > floor]
        rest = sum(self.blocks[i].size for i in members)
        return floor, ceiling, rest, choices, min([ceiling] + higher) - floor <= self.capacity - floor - rest

    def closed(self, i):
        """Nothing can come to lie under it any more."""
        return all(self.facts(clique)[1] > self.heads[i] for clique in self.cliques if i in clique[2])

    def choose(self):
        """The clique that the node branches on, all weights equal."""
        facts = {c: self.facts(c) for c in self.cliques if self.of(c)}
        lowest = min(fact[0] for fact in facts.values())
        allowed = [c for c, fact in facts.items() if fact[0] == lowest or all(map(self.closed, fact[3]))]
        return min(allowed, key=lambda c: (len(facts[c][3]) + facts[c][4], self.capacity - facts[c][0] - facts[c][2]))

    def place(self, i):
        node = self.copy()
        node.waiting.remove(i)
        for other in self.meets[i]:
            if other in node.waiting:
                node.heads[other] = max(node.heads[other], self.top(i))
        return node.propagate()

    def skip(self, choices):
        """None of them lies at its head."""
        node = self.copy()
        for i in choices:
            tops = [self.top(j) for j in self.meets[i] if j in self.waiting] or [self.capacity]
            node.heads[i] = max(self.heads[i], min(tops))
        return node.propagate()

    def branches(self):
        """(index placed or None, the node there), the largest block first, none of them last."""
        choices = self.facts(self.choose())[3]
        for i in sorted(choices, key=lambda i: -self.blocks[i].size):
            yield i, self.place(i)
        yield None, self.skip(choices)


def descend(node, path=()):
    """The nodes from the root to a placement, or None if there is none."""
    path += (node,)
    if not node.waiting:
        return path
    for _, child in node.branches():
        found = None if child.fault else descend(child, path)
        if found:
            return found
    return None
