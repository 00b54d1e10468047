#!/usr/bin/env python3
"""Draws the pictures of docs/research/packing.md from placements that `hotpack pack ... --out FILE` wrote.

    hotpack pack docs/images/example.csv --algorithm best-fit --out best-fit.csv
    docs/images/draw.py skyline best-fit.csv docs/images/skyline.svg
    hotpack pack docs/images/example.csv --algorithm exact --out exact.csv
    docs/images/draw.py node exact.csv docs/images/node.svg
    hotpack pack tests/data/cnn-carried.csv --out packed.csv
    docs/images/draw.py packing packed.csv docs/images/packing.svg

The standard library is all it needs. The steps of best-fit and the node of the exact search are worked out here by the
rules of packer/skyline.h and packer/exact_search.h; where a step leads to another offset than the file's, it ends with
an error.
"""

import sys

import blocks as model
from svg import ACCENT, BLUE, FAINT, FILLS, INK, Frame, Picture


def fill_of(index):
    return FILLS[index % len(FILLS)]


def draw_placed(frame, blocks, indices):
    for i in indices:
        block = blocks[i]
        for begin, end in block.intervals:
            frame.box(begin, end, block.offset, block.offset + block.size, fill_of(i), block.name)


def draw_waiting(picture, frame, blocks, indices, note):
    """The lives of unplaced blocks as bars below the time axis, in as few rows as they need."""
    rows = []
    for i in sorted(indices, key=lambda i: blocks[i].intervals[0]):
        begin, end = blocks[i].intervals[0]
        row = next((r for r, last in enumerate(rows) if last <= begin), len(rows))
        rows[row:row + 1] = [end]
        y = frame.y(0) + 10 + 17 * row
        picture.rect(frame.x(begin) + 1, y, frame.x(end) - frame.x(begin) - 2, 14, fill_of(i), FAINT)
        picture.text((frame.x(begin) + frame.x(end)) / 2, y + 11, note(i), 10, "middle")


def skyline(blocks, path):
    """Two steps in a row: a placement, and the lift that follows it."""
    steps = model.best_fit(blocks)
    at = max(i for i, (a, b) in enumerate(zip(steps, steps[1:])) if a.block is not None and b.block is None
             and len(a.lines) >= 3 and sum(s.block is None for s in steps[i + 1:]) >= 2)
    placed = [[s.block for s in steps[:i] if s.block is not None] for i in (at, at + 1, at + 1)]
    lines = [steps[at].lines, steps[at + 1].lines, steps[at + 2].lines]
    chosen, next_chosen = steps[at].lines[steps[at].line], steps[at + 1].lines[steps[at + 1].line]
    top = model.height_of(blocks) * 1.05
    begin, end = lines[0][0][0], lines[0][-1][1]
    picture = Picture(960, 420, "One placement and one lift of the best-fit heuristic")
    titles = ("1  the lowest line, the leftmost of several", "2  on it the longest life that fits",
              "3  the next lowest takes nothing: lifted")
    for panel, title in enumerate(titles):
        frame = Frame(picture, 24 + 316 * panel, 52, 286, 250, begin, end, top)
        picture.text(frame.left, 26, title, 13, weight="bold")
        frame.axes()
        draw_placed(frame, blocks, placed[panel])
        if panel == 2:
            frame.box(next_chosen[0], next_chosen[1], next_chosen[2], steps[at + 1].to, "url(#hatch)", stroke="none")
        for line in lines[panel]:
            frame.level(*line)
        if panel == 0:
            frame.level(*chosen, stroke=ACCENT, width=5)
        elif panel == 1:
            block = blocks[steps[at].block]
            upper = block.offset + block.size
            frame.box(*block.intervals[0], block.offset, upper, "none", stroke=ACCENT, stroke_width=3)
            frame.level(*next_chosen, stroke=BLUE, width=5)
        else:
            lifted = next(line for line in lines[2] if line[0] <= next_chosen[0] and next_chosen[1] <= line[1])
            frame.level(*lifted, stroke=BLUE, width=5)
        waiting = [i for i in range(len(blocks)) if i not in placed[panel]]
        draw_waiting(picture, frame, blocks, waiting, lambda i: blocks[i].name)
    picture.text(24, 408, "Bold: offset lines. Below each axis: blocks that wait, by their lives. Hatched: bytes that "
                 "nothing can use any more.", 12, fill=INK)
    write(picture, path)


def packing(blocks, path):
    """The whole placement over its load."""
    steps = model.load(blocks)
    bound, top = max(now for _, now in steps), model.height_of(blocks)
    begin, end = steps[0][0], steps[-1][0]
    picture = Picture(960, 545, "A packed training step and its load")
    frame = Frame(picture, 60, 40, 880, 330, begin, end, top * 1.06)
    picture.text(60, 20, f"{len(blocks)} blocks, height {top:,} bytes", 13, weight="bold")
    frame.axes()
    for i, block in enumerate(blocks):
        for a, b in block.intervals:
            frame.box(a, b, block.offset, block.offset + block.size, fill_of(i), stroke=FAINT, stroke_width=0.6)
    frame.level(begin, end, bound, BLUE, 2, "7 4")
    picture.text(936, frame.y(bound) - 5, f"lower bound {bound:,}", 12, "end", BLUE)
    curve = Frame(picture, 60, 420, 880, 100, begin, end, top * 1.06)
    curve.axes()
    points = [(curve.x(begin), curve.y(0))]
    for (clock, now), (after, _) in zip(steps, steps[1:] + [(end, 0)]):
        points += [(curve.x(clock), curve.y(now)), (curve.x(after), curve.y(now))]
    picture.path(points + [(curve.x(end), curve.y(0))], BLUE, 1.2, "#dbe6f7")
    curve.level(begin, end, bound, BLUE, 2, "7 4")
    picture.text(60, 404, "load", 13, weight="bold")
    for under in (frame, curve):
        picture.text(936, under.y(0) + 17, "clock", 12, "end")
    picture.text(54, frame.y(top), "offset", 12, "end")
    write(picture, path)


def draw_node(picture, frame, node, chosen=None):
    """Placed blocks at their offsets; the floor and ceiling of each clique in its own clock values."""
    frame.axes()
    if chosen:
        frame.box(chosen[0], chosen[1], 0, node.capacity, "#fff3c4", stroke="none")
    for i in set(range(len(node.blocks))) - node.waiting:
        for begin, end in node.blocks[i].intervals:
            frame.box(begin, end, node.heads[i], node.top(i), fill_of(i), node.blocks[i].name)
    frame.level(frame.begin, frame.end, node.capacity, INK, 1.5, "7 4")
    for clique in node.cliques:
        facts = node.facts(clique)
        if facts:
            frame.level(clique[0], clique[1], facts[0], BLUE, 4)
            frame.level(clique[0], clique[1], facts[1], ACCENT, 2, "3 2")


def node_to_draw(root):
    """The first one whose children are both alive and dead, with two choices or more."""
    for node in model.descend(root) or ():
        children = list(node.branches()) if node.waiting else []
        placed = len(node.blocks) - len(node.waiting)
        if len(children) >= 3 and placed >= 3 and {bool(child.fault) for _, child in children} == {True, False}:
            return node
    raise SystemExit("no node of this search has branches worth a picture")


def node(blocks, path):
    root = model.Node(blocks, model.height_of(blocks))
    if root.propagate().fault:
        raise SystemExit("the file's height cannot be reached: it is not the placement's")
    here = node_to_draw(root)
    chosen = here.choose()
    begin, end = min(b.intervals[0][0] for b in blocks), max(b.intervals[0][1] for b in blocks)
    picture = Picture(960, 622, "A node of the exact search and its branches")
    frame = Frame(picture, 40, 52, 400, 270, begin, end, here.capacity * 1.04)
    picture.text(40, 26, "a node: the highlighted clique is asked", 13, weight="bold")
    draw_node(picture, frame, here, chosen)
    picture.text(frame.left + frame.width, frame.y(here.capacity) - 6, f"height asked for: {here.capacity}", 12, "end")
    draw_waiting(picture, frame, blocks, here.waiting, lambda i: f"{blocks[i].name}: {blocks[i].size}")
    draw_table(picture, here, chosen)
    children = list(here.branches())
    width = (920 - 20 * (len(children) - 1)) / len(children)
    for number, (i, child) in enumerate(children):
        draw_branch(picture, here, i, child, Frame(picture, 24 + number * (width + 20), 482, width, 100, begin, end,
                                                   here.capacity * 1.04))
    picture.text(24, 610, "Blue: floors. Orange, dashed: ceilings. Below the axis: unplaced blocks, name: size.", 12)
    write(picture, path)


def draw_table(picture, here, chosen):
    columns = (492, 586, 644, 692, 744, 822, 930)
    for x, words in zip(columns, ("clique", "floor", "ceiling", "rest", "room", "branches", "may be asked")):
        picture.text(x, 66, words, 12, "start" if x == 492 else "end", weight="bold")
    facts = [(c, here.facts(c)) for c in here.cliques]
    lowest = min(fact[0] for _, fact in facts if fact)
    y = 66
    for clique, fact in facts:
        if not fact:
            continue
        y += 21
        if clique == chosen:
            picture.rect(484, y - 15, 446, 20, "#fff3c4", "none")
        allowed = fact[0] == lowest or all(map(here.closed, fact[3]))
        room = here.capacity - fact[0] - fact[2]
        members = len(fact[3]) + fact[4]
        cells = (f"[{clique[0]}, {clique[1]})", *fact[:3], room, members, "yes" if allowed else "no")
        for x, cell in zip(columns, cells):
            picture.text(x, y, str(cell), 12, "start" if x == 492 else "end")


def draw_branch(picture, here, i, child, frame):
    what = f"{here.blocks[i].name} lies lowest" if i is not None else "none of them"
    picture.text(frame.left, 450, what, 12, weight="bold")
    clique = here.choose()
    if child.fault:
        clique, members, height = child.fault
        names = ", ".join(here.blocks[member].name for member in members)
        said = f"dead end: in [{clique[0]}, {clique[1]}) {names} would reach {height}"
        picture.text(frame.left, 464, said, 11, fill=ACCENT)
        frame.box(clique[0], clique[1], 0, here.capacity, "#f6cfc4", stroke="none")
    elif i is None:
        frame.box(clique[0], clique[1], here.facts(clique)[0], child.facts(clique)[0], "url(#hatch)", stroke="none")
        picture.text(frame.left, 464, "what is hatched stays empty", 11)
    draw_node(picture, frame, child)


def write(picture, path):
    with open(path, "w", encoding="utf-8") as file:
        file.write(picture.svg())


def main():
    kinds = {"skyline": skyline, "packing": packing, "node": node}
    if len(sys.argv) != 4 or sys.argv[1] not in kinds:
        sys.exit("usage: draw.py skyline|packing|node PLACEMENT.csv PICTURE.svg")
    kinds[sys.argv[1]](model.read(sys.argv[2]), sys.argv[3])


if __name__ == "__main__":
    main()
