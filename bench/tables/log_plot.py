"""A small SVG: points and curves on two logarithmic axes."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from html import escape

WIDTH, HEIGHT = 760, 460
LEFT, RIGHT, TOP, BOTTOM = 70, 230, 40, 50
COLOURS = ("#1f5fa8", "#c2410c", "#15803d", "#7e22ce", "#a16207", "#0e7490", "#be123c", "#4d4d4d", "#65a30d", "#9d174d")


@dataclasses.dataclass(frozen=True)
class Series:
    name: str
    points: Sequence[tuple[float, float]]
    curve: Callable[[float], float] | None = None  # None: the points are joined


def _decades(values: Sequence[float]) -> tuple[int, int]:
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return low, max(high, low + 1)


def _tick(decade: int) -> str:
    return f"{10 ** decade:,}" if 0 <= decade <= 7 else f"1e{decade}"


def render(title: str, across: str, up: str, series: Sequence[Series]) -> str:
    """Each series needs a point; all numbers are positive."""
    every = [point for one in series for point in one.points]
    (x_low, x_high), (y_low, y_high) = _decades([x for x, _ in every]), _decades([y for _, y in every])

    def x_at(value: float) -> float:
        return LEFT + (math.log10(value) - x_low) / (x_high - x_low) * (WIDTH - LEFT - RIGHT)

    def y_at(value: float) -> float:
        return HEIGHT - BOTTOM - (math.log10(value) - y_low) / (y_high - y_low) * (HEIGHT - TOP - BOTTOM)

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
           f'<text x="{LEFT}" y="22" font-size="14">{escape(title)}</text>']
    for decade in range(x_low, x_high + 1):
        x = x_at(10.0 ** decade)
        out.append(f'<path d="M{x:.1f} {TOP}V{HEIGHT - BOTTOM}" stroke="#ddd"/>')
        out.append(f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{_tick(decade)}</text>')
    for decade in range(y_low, y_high + 1):
        y = y_at(10.0 ** decade)
        out.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="#ddd"/>')
        out.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{_tick(decade)}</text>')
    out.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 12}" text-anchor="middle">{escape(across)}</text>')
    out.append(f'<text x="16" y="{HEIGHT / 2}" text-anchor="middle" transform="rotate(-90 16 {HEIGHT / 2})">{escape(up)}</text>')
    for index, one in enumerate(series):
        colour = COLOURS[index % len(COLOURS)]
        points = sorted(one.points)
        line = points
        if one.curve is not None:
            first, last = points[0][0], points[-1][0]
            steps = [first * (last / first) ** (k / 40) for k in range(41)]
            line = [(n, max(one.curve(n), 10.0 ** y_low)) for n in steps]
        path = "L".join(f"{x_at(x):.1f} {y_at(y):.1f}" for x, y in line)
        out.append(f'<path d="M{path}" fill="none" stroke="{colour}"/>')
        out += [f'<circle cx="{x_at(x):.1f}" cy="{y_at(y):.1f}" r="3" fill="{colour}"/>' for x, y in points]
        y = TOP + 10 + 18 * index
        out.append(f'<path d="M{WIDTH - RIGHT + 12} {y - 4}h16" stroke="{colour}" stroke-width="2"/>')
        out.append(f'<text x="{WIDTH - RIGHT + 34}" y="{y}">{escape(one.name)}</text>')
    return "\n".join([*out, "</svg>"]) + "\n"
