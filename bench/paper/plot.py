"""Bar charts as SVG, without external resources."""

from __future__ import annotations

import math
from dataclasses import dataclass
from xml.sax.saxutils import escape

_HEIGHT, _TOP, _BOTTOM, _LEFT, _RIGHT = 260, 64, 62, 64, 16  # of the axes, and around them
_BAR, _GAP, _BETWEEN = 16, 3, 20
_TEXT, _LINE = "#333333", "#dddddd"


@dataclass
class Bars:
    """Bars next to each other, each made of parts from the bottom up."""

    label: str
    group: str
    bars: list[tuple[str, list[float]]]  # its name, its parts


def _step(most: float) -> float:
    """Returns a round number, four to eight of which reach `most`."""
    raw = most / 5
    power = 10 ** math.floor(math.log10(raw))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= raw)


class _Canvas:
    def __init__(self):
        self.parts: list[str] = []

    def text(self, x: float, y: float, text: str, anchor: str = "middle", size: int = 11, **more: str) -> None:
        attributes = "".join(f' {name.replace("_", "-")}="{value}"' for name, value in more.items())
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" fill="{_TEXT}"{attributes}>'
                          f"{escape(text)}</text>")

    def box(self, x: float, y: float, width: float, height: float, fill: str, title: str = "") -> None:
        inner = f"<title>{escape(title)}</title>" if title else ""
        self.parts.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.2f}" fill="{fill}">{inner}</rect>')

    def line(self, x1: float, y1: float, x2: float, y2: float) -> None:
        self.parts.append(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{_LINE}"/>')


def chart(title: str, unit: str, groups: list[Bars], parts: list[tuple[str, str]], logarithmic: bool = False) -> str:
    """`parts`: name and colour of each part of a bar. Groups of the same `group` share one name. A logarithmic axis is
    for bars of one part, all above 0."""
    heights = [sum(values) for group in groups for _, values in group.bars]
    most = max(heights, default=1.0) or 1.0
    low = math.floor(math.log10(min(heights))) if logarithmic else 0.0
    high = math.ceil(math.log10(most)) if logarithmic else math.ceil(most / _step(most)) * _step(most)
    high = max(high, low + 1) if logarithmic else high
    base = _TOP + _HEIGHT

    def y(value: float) -> float:
        value = math.log10(value) if logarithmic and value > 0 else (low if logarithmic else value)
        return base - (value - low) / (high - low) * _HEIGHT

    canvas, x, spans = _Canvas(), float(_LEFT), []
    width = _LEFT + _RIGHT + sum(len(group.bars) * (_BAR + _GAP) + _BETWEEN for group in groups)
    width = max(width, 420)
    ticks = [10.0**power for power in range(int(low), int(high) + 1)] if logarithmic else [
        index * _step(most) for index in range(round(high / _step(most)) + 1)]
    for tick in ticks:
        canvas.line(_LEFT, y(tick), width - _RIGHT, y(tick))
        canvas.text(_LEFT - 6, y(tick) + 4, f"{tick:g}", "end")
    for group in groups:
        begin = x = x + _BETWEEN / 2
        for name, values in group.bars:
            bottom = 0.0
            for value, (part, colour) in zip(values, parts):
                lower = base if logarithmic else y(bottom)
                bottom += value
                canvas.box(x, y(bottom), _BAR, max(0.0, lower - y(bottom)), colour,
                           f"{group.group} {group.label}, {name}: {part} {value:.4g} {unit}")
            canvas.text(x + _BAR / 2, base + 12, name, size=8)
            x += _BAR + _GAP
        canvas.text((begin + x - _GAP) / 2, base + 27, group.label)
        if spans and spans[-1][0] == group.group:
            spans[-1][2] = x
        else:
            spans.append([group.group, begin, x])
        x += _BETWEEN / 2
    for name, begin, end in spans:
        canvas.text((begin + end - _GAP) / 2, base + 46, name, font_weight="bold")
    canvas.text(_LEFT, 22, title, "start", 14, font_weight="bold")
    canvas.text(12, _TOP + _HEIGHT / 2, unit, transform=f"rotate(-90 12 {_TOP + _HEIGHT / 2:.0f})")
    at = float(_LEFT)
    for name, colour in parts:
        canvas.box(at, 34, 11, 11, colour)
        canvas.text(at + 16, 44, name, "start")
        at += 30 + 7 * len(name)
    height = base + _BOTTOM
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" width="{width:.0f}" height="{height}" '
            f'font-family="sans-serif">\n<rect width="100%" height="100%" fill="#ffffff"/>\n' + "\n".join(canvas.parts) + "\n</svg>\n")
