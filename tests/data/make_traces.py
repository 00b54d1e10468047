#!/usr/bin/env python3
"""Writes the recordings of this folder: what small networks ask for while they train. Deterministic.

    tests/data/make_traces.py [FOLDER]     (default: the folder of this script)

  mlp-adam.csv, .trace   a perceptron: weights before the first step, Adam's state in it, gradients released inside the step.
                         The trace file is the same with times, a backward thread and a stream for the input, encoded here
                         after docs/trace_format.md, independently of the writer
  cnn-carried.csv        a convolutional network whose gradients are released at the start of the next step
  mlp-adam.rmm.log       the perceptron in the format of RMM's event log: threads, times of day over midnight, pointers that are
                         used again, stream 0x2 where there is none; an allocation that failed
  lstm.csv               a recurrent network: many equal time steps within one training step

Not written here: resnet50.trace, what tools/demo plays. It is of a real job, recorded by
  hotpack run --simulate --trace tests/data/resnet50.trace -- \\
      /usr/bin/python3 bench/torch/train.py resnet50 --batch 8 --steps 4 --allocator hotpack
"""

import os
import struct
import sys

FLOAT = 4


class Recorder:
    """Collects events (kind, id, bytes, thread, stream) and checks that they make sense."""

    def __init__(self):
        self.events = []
        self.live = {}
        self.thread = 0

    def alloc(self, count, stream=0):
        block = sum(1 for e in self.events if e[0] == "alloc")
        self.live[block] = (count * FLOAT, stream)
        self.events.append(("alloc", block, count * FLOAT, self.thread, stream))
        return block

    def free(self, block):
        size, stream = self.live.pop(block)
        self.events.append(("free", block, size, self.thread, stream))

    def mark(self):
        self.events.append(("mark", 0, 0, self.thread, 0))


def mlp_adam(steps=4):
    layers, batch = [784, 512, 512, 256, 128, 10], 64
    r = Recorder()
    shapes = [s for a, b in zip(layers, layers[1:]) for s in (a * b, b)]
    for shape in shapes:
        r.alloc(shape)  # weights, kept
    for step in range(steps):
        r.mark()
        x = r.alloc(batch * layers[0], stream=1)
        activations = [x]
        for width in layers[1:]:
            product = r.alloc(batch * width)
            activations.append(r.alloc(batch * width))
            r.free(product)
        loss = r.alloc(1)
        delta = r.alloc(batch * layers[-1])
        r.thread = 1
        gradients = []
        for i in reversed(range(len(layers) - 1)):
            gradients += [r.alloc(layers[i] * layers[i + 1]), r.alloc(layers[i + 1])]
            if i > 0:
                workspace = r.alloc(batch * layers[i] * 2)
                below = r.alloc(batch * layers[i])
                r.free(workspace)
                r.free(delta)
                delta = below
            r.free(activations.pop())
        r.free(delta)
        r.free(activations.pop())
        r.thread = 0
        r.free(loss)
        for shape, gradient in zip(reversed(shapes), gradients):
            if step == 0:
                r.alloc(shape), r.alloc(shape)  # the two moments, kept
            update = r.alloc(shape)
            r.free(gradient)
            r.free(update)
    r.mark()
    return r.events


def cnn_carried(steps=3):
    channels, side, batch = [3, 32, 64, 64, 128, 128], 32, 8
    r = Recorder()
    carried = []
    for _ in range(steps):
        r.mark()
        for gradient in carried:  # zero_grad(set_to_none=True)
            r.free(gradient)
        carried = []
        maps = [r.alloc(batch * channels[0] * side * side)]
        sizes = []
        at = side
        for a, b in zip(channels, channels[1:]):
            columns = r.alloc(batch * a * 9 * at * at)  # im2col workspace
            out = r.alloc(batch * b * at * at)
            r.free(columns)
            norm = r.alloc(batch * b * at * at)
            r.free(out)
            statistics = r.alloc(2 * b)
            at = max(at // 2, 4)
            pooled = r.alloc(batch * b * at * at)
            maps += [norm, statistics, pooled]
            sizes.append((a, b, at))
        logits = r.alloc(batch * 10)
        loss = r.alloc(1)
        delta = r.alloc(batch * sizes[-1][1] * at * at)
        r.free(logits)
        for a, b, at in reversed(sizes):
            pooled, statistics, norm = maps.pop(), maps.pop(), maps.pop()
            unpooled = r.alloc(batch * b * 4 * at * at)
            r.free(pooled)
            r.free(delta)
            carried += [r.alloc(2 * b), r.alloc(a * b * 9)]
            workspace = r.alloc(batch * a * 9 * 4 * at * at)
            delta = r.alloc(batch * a * 4 * at * at)
            r.free(workspace)
            r.free(unpooled)
            r.free(statistics)
            r.free(norm)
        r.free(maps.pop())
        r.free(delta)
        r.free(loss)
    r.mark()
    return r.events


def lstm(steps=3, length=24):
    hidden, batch, depth = 256, 16, 2
    r = Recorder()
    for _ in range(steps):
        r.mark()
        tokens = r.alloc(batch * length)
        saved = []
        state = [(r.alloc(batch * hidden), r.alloc(batch * hidden)) for _ in range(depth)]
        first = list(state)
        for _ in range(length):
            for layer in range(depth):
                gates = r.alloc(batch * hidden * 4)
                product = r.alloc(batch * hidden * 4)
                cell, out = r.alloc(batch * hidden), r.alloc(batch * hidden)
                r.free(product)
                saved.append((gates, cell, out))
                state[layer] = (cell, out)
        loss = r.alloc(1)
        gradients = [r.alloc(2 * hidden * hidden * 4) for _ in range(depth)]
        delta = r.alloc(batch * hidden)
        for gates, cell, out in reversed(saved):
            change = r.alloc(batch * hidden * 4)
            below = r.alloc(batch * hidden)
            partial = r.alloc(2 * hidden * hidden * 4)
            for block in (delta, gates, cell, out, change, partial):
                r.free(block)
            delta = below
        r.free(delta)
        for pair in first:
            r.free(pair[0]), r.free(pair[1])
        for gradient in gradients:
            r.free(gradient)
        r.free(loss)
        r.free(tokens)
    r.mark()
    return r.events


def to_csv(events):
    lines = ["event,id,bytes"]
    for i, (kind, block, size, _, _) in enumerate(events):
        if kind == "mark":
            lines.append("mark,end," if i + 1 == len(events) else "mark,step,")
        else:
            lines.append(f"alloc,{block},{size}" if kind == "alloc" else f"free,{block},")
    return "".join(line + "\n" for line in lines).encode()


def varint(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def zigzag(value):
    return varint(2 * value if value >= 0 else -2 * value - 1)


def to_trace(events, program=b"/usr/bin/mlp", process=4711, created_ns=1_700_000_000_000_000_000):
    records = bytearray()
    context, last_id, last_time = (0, 0, 0), -1, 0
    for i, (kind, block, size, thread, stream) in enumerate(events):
        tag = {"alloc": 1, "free": 2, "mark": 3}[kind]
        body = b""
        now, flags = 1000 * i + i * i % 977, 0
        if (flags, thread, stream) != context:
            context = (flags, thread, stream)
            tag |= 0x08
            body += bytes([flags]) + varint(thread) + varint(stream)
        if now != last_time:
            tag |= 0x10
            body += zigzag(now - last_time)
            last_time = now
        if kind == "alloc":
            assert block == last_id + 1
            last_id = block
            tag |= 0x20
            if size % 512 == 0:
                tag |= 0x40
                size //= 512
            body += varint(size)
        elif kind == "free":
            body += zigzag(last_id - block)
        records += bytes([tag]) + body
    header = b"\x89hotpack" + struct.pack("<HHIQQII", 1, 256, 1, 256 + len(records), created_ns, process, len(program))
    return (header + program).ljust(256, b"\0") + bytes(records)


def to_rmm_log(events):
    lines = ["Thread,Time,Action,Pointer,Size,Stream"]
    idle, pointers, top = {}, {}, 0x7F40_0000_0000
    for i, (kind, block, size, thread, stream) in enumerate(events):
        if kind == "mark":
            if i % 3 == 0:
                lines.append(f"{4711 + thread},{clock(i)},allocate failure,(nil),{1 << 50},0x2")
            continue
        if kind == "alloc":
            free = idle.setdefault(size, [])
            pointers[block] = free.pop() if free else top
            if pointers[block] == top:
                top += -(-size // 256) * 256
        else:
            idle[size].append(pointers[block])
        action = {"alloc": "allocate", "free": "free"}[kind]
        handle = 0x55D0_0000_1000 if stream else 0x2
        lines.append(f"{4711 + thread},{clock(i)},{action},{hex(pointers[block])},{size},{hex(handle)}")
    return "".join(line + "\n" for line in lines).encode()


def clock(i):
    us = (86_399_999_000 + 37 * i) % 86_400_000_000
    seconds = us // 1_000_000
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{us % 1_000_000:06}"


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__))
    files = {
        "mlp-adam.csv": to_csv(mlp_adam()),
        "mlp-adam.trace": to_trace(mlp_adam()),
        "mlp-adam.rmm.log": to_rmm_log(mlp_adam()),
        "cnn-carried.csv": to_csv(cnn_carried()),
        "lstm.csv": to_csv(lstm()),
    }
    for name, contents in files.items():
        with open(os.path.join(folder, name), "wb") as out:
            out.write(contents)


if __name__ == "__main__":
    main()
